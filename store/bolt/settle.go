package bolt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// current reads the job if token is its current one: the lease lives, or it ran out and
// nobody took the job since. store.ErrLeaseLost otherwise.
func (x *tx) current(id, token int64) (job, error) {
	j, err := x.job(id)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && (token == 0 || j.token != token || (j.state != store.Queued && j.state != store.Leased)):
		return job{}, fmt.Errorf("job %d: %w", id, store.ErrLeaseLost)
	}
	return j, err
}

// attempt reads one of a job's; a missing one is damage.
func (x *tx) attempt(job, id int64) (attempt, error) {
	k := attemptKey(job, id)
	v := x.get(tAttempts, k)
	if v == nil {
		return attempt{}, fault{where: "attempts", err: fmt.Errorf("attempt %d of job %d is missing", id, job)}
	}
	return decodeAttempt(k, v)
}

func (w *writer) putAttempt(a *attempt) error {
	return w.put(tAttempts, attemptKey(a.job, a.id), a.encode())
}

// Renew moves a lease's deadline; see store.Jobs.
func (d *DB) Renew(ctx context.Context, id, token int64, until time.Time) error {
	return d.do(ctx, func(w *writer) error {
		j, err := w.current(id, token)
		if err != nil {
			return err
		}
		if j.state == store.Queued {
			a, err := w.attempt(id, token)
			if err != nil {
				return err
			}
			a.result.Outcome, a.result.Duration = store.Running, 0
			if err := w.putAttempt(&a); err != nil {
				return err
			}
		}
		old := j
		j.state, j.until = store.Leased, engine.Milli(until)
		return w.change(&old, &j)
	})
}

// How much of an answer is kept: of the latest attempt, of those before.
const (
	latestAnswer = 64 << 10
	olderAnswer  = 4 << 10
)

// Settle writes an outcome; see store.Jobs.
func (d *DB) Settle(ctx context.Context, s store.Settlement) error {
	if s.State != store.Delivered && s.State != store.Dead && s.State != store.Queued {
		return fmt.Errorf("settle job %d: %w: to state %d", s.Job, store.ErrRefused, s.State)
	}
	if s.Result.Outcome == 0 {
		s.Result.Outcome = store.Failed
		if s.State == store.Delivered {
			s.Result.Outcome = store.Succeeded
		}
	}
	if len(s.Result.Body) > latestAnswer {
		s.Result.Body = s.Result.Body[:latestAnswer]
	}
	return d.submit(ctx, &write{do: func(w *writer) error { return w.settle(&s) }}, len(s.Result.Body)+len(s.Result.Header))
}

func (w *writer) settle(s *store.Settlement) error {
	j, err := w.current(s.Job, s.Token)
	if err != nil {
		return err
	}
	a, err := w.attempt(s.Job, s.Token)
	if err != nil {
		return err
	}
	old, r := j, &s.Result
	j.state, j.due, j.settled, j.reason, j.token, j.until = s.State, 0, engine.Milli(s.At), 0, 0, 0
	switch s.State {
	case store.Queued:
		j.due, j.settled = engine.Milli(s.Due), 0
	case store.Dead:
		j.reason = s.Reason
	}
	j.lastStatus, j.lastClass, j.lastError, j.lastMicros = int64(r.Status), r.Class, r.Error, r.Duration.Microseconds()
	if err := w.leaves(&old, &j, engine.Milli(s.At)); err != nil {
		return err
	}
	a.result = s.Result
	if err := w.putAttempt(&a); err != nil || j.attempts == 1 {
		return err
	}
	return w.trimAnswers(s.Job, s.Token)
}

// trimAnswers cuts the answers of the attempts before.
func (w *writer) trimAnswers(job, before int64) error {
	var long []attempt
	for k, v := range w.pairs(tAttempts, num(job), false) {
		if numAt(k, 8) >= before || len(v) <= olderAnswer {
			continue
		}
		a, err := decodeAttempt(k, v)
		if err != nil {
			return err
		}
		if len(a.result.Body) > olderAnswer {
			a.result.Body = a.result.Body[:olderAnswer]
			long = append(long, a)
		}
	}
	for i := range long {
		if err := w.putAttempt(&long[i]); err != nil {
			return err
		}
	}
	return nil
}

// Expire ends the leases that ran out; see store.Jobs.
func (d *DB) Expire(ctx context.Context, now time.Time) (map[string]int, error) {
	counts := map[string]int{}
	for {
		var part []string
		err := d.do(ctx, func(w *writer) error {
			part = nil
			list, err := w.leased(func(until int64, _ *job) (bool, bool) { return until < engine.Milli(now), until < engine.Milli(now) })
			if err != nil {
				return err
			}
			for _, j := range list {
				part = append(part, w.name(j.destination))
			}
			return w.end(list, true, now)
		})
		if err != nil {
			return counts, fmt.Errorf("expire leases: %w", err)
		}
		for _, name := range part {
			counts[name]++
		}
		if len(part) < maxExpired {
			return counts, nil
		}
	}
}

// EndLeases ends the leases of owners with the prefix; see store.Jobs.
func (d *DB) EndLeases(ctx context.Context, prefix string, now time.Time) (int, error) {
	total := 0
	for {
		n := 0
		err := d.do(ctx, func(w *writer) error {
			list, err := w.leased(func(_ int64, j *job) (bool, bool) { return strings.HasPrefix(j.owner, prefix), true })
			if err != nil {
				return err
			}
			n = len(list)
			return w.end(list, false, now)
		})
		if err != nil {
			return total, fmt.Errorf("end leases of %s: %w", prefix, err)
		}
		if total += n; n < maxExpired {
			return total, nil
		}
	}
}

// leased lists up to maxExpired leased jobs, earliest deadline first. want tells of each
// whether it belongs to them and whether to look further.
func (x *tx) leased(want func(until int64, j *job) (take, further bool)) (list []job, err error) {
	for k := range x.keys(tLeases, nil, false) {
		j, err := x.job(last(k))
		if err != nil {
			return nil, err
		}
		take, further := want(numAt(k, 0), &j)
		if take {
			list = append(list, j)
		}
		if !further || len(list) == maxExpired {
			break
		}
	}
	return list, nil
}

// end queues the jobs again, due now. With late set the old worker may still settle
// until another one leases the job.
func (w *writer) end(list []job, late bool, now time.Time) error {
	for i := range list {
		j := list[i]
		a, err := w.attempt(j.id, j.token)
		if err != nil {
			return err
		}
		a.result.Outcome, a.result.Duration = store.Interrupted, time.Duration(max(0, engine.Milli(now)-a.started))*time.Millisecond
		if err := w.putAttempt(&a); err != nil {
			return err
		}
		j.state, j.due, j.until = store.Queued, engine.Milli(now), 0
		j.lastStatus, j.lastClass, j.lastError = 0, "interrupted", ""
		if !late {
			j.token = 0
		}
		if err := w.change(&list[i], &j); err != nil {
			return err
		}
	}
	return nil
}
