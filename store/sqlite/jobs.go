package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"acuse/store"
)

// Bounds of one transaction, so that none holds up the others for long.
const (
	maxDeaths  = 500 // jobs that die in one lease
	maxExpired = 500 // leases ended by one sweep's transaction
)

// dueJob is a queued job about to be leased.
type dueJob struct {
	id, delivery, attempts, spent, since int64
	resend, passthrough                  int64
	key                                  string
}

// Lease leases due jobs; see store.Jobs.
func (d *DB) Lease(ctx context.Context, q store.LeaseQuery) ([]store.Lease, error) {
	var leases []store.Lease
	w := &write{last: true, do: func(w *writer) (err error) {
		leases, err = w.lease(q)
		return err
	}}
	if err := d.submit(ctx, w, 0); err != nil {
		return nil, fmt.Errorf("lease for %s: %w", q.Destination, err)
	}
	return d.fill(ctx, leases)
}

// fill reads what the cache did not have. A lease whose delivery cannot be read is left
// to run out, as if its worker had died.
func (d *DB) fill(ctx context.Context, leases []store.Lease) ([]store.Lease, error) {
	good := leases[:0]
	var errs []error
	for _, l := range leases {
		if l.Delivery.Source == "" {
			id := l.Delivery.ID
			var err error
			if l.Delivery, l.Payload, err = d.headAndPayload(ctx, id); err != nil {
				errs = append(errs, fmt.Errorf("leased job %d of delivery %d: %w", l.Job, id, err))
				continue
			}
		}
		good = append(good, l)
	}
	if len(good) > 0 && len(errs) > 0 {
		d.log.Error("lease", "err", errors.Join(errs...))
		return good, nil
	}
	return good, errors.Join(errs...)
}

func (w *writer) lease(q store.LeaseQuery) ([]store.Lease, error) {
	destination, ok := w.names[q.Destination]
	if !ok {
		return nil, nil
	}
	w.leasing[destination] = true
	var leases []store.Lease
	for deaths := 0; len(leases) < q.Max && deaths < maxDeaths; {
		due, err := w.due(destination, q, min(q.Max-len(leases), maxDeaths))
		if err != nil || len(due) == 0 {
			return leases, err
		}
		for _, j := range due {
			if reason := j.dies(q); reason != 0 {
				deaths++
				err = w.die(j.id, destination, reason, q.Now)
			} else {
				var l store.Lease
				l, err = w.leaseOne(j, destination, q)
				leases = append(leases, l)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return leases, nil
}

const selectDue = `SELECT id, delivery, attempts, spent, since, resend, passthrough, key
	FROM jobs INDEXED BY jobs_due WHERE state = 1 AND destination = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?`

func (w *writer) due(destination int64, q store.LeaseQuery, limit int) (list []dueJob, err error) {
	err = w.query(selectDue, func(r []val) error {
		list = append(list, dueJob{
			id: r[0].(int64), delivery: r[1].(int64), attempts: r[2].(int64), spent: r[3].(int64), since: r[4].(int64),
			resend: r[5].(int64), passthrough: r[6].(int64), key: r[7].(string),
		})
		return nil
	}, destination, ms(q.Now), int64(limit))
	return list, err
}

// dies tells why the job may not be tried again: its workers died on it too often, or
// it is too old.
func (j dueJob) dies(q store.LeaseQuery) store.DeadReason {
	switch {
	case q.Budget > 0 && j.spent >= int64(q.Budget):
		return store.Exhausted
	case q.MaxAge > 0 && ms(q.Now)-j.since > q.MaxAge.Milliseconds():
		return store.TooOld
	}
	return 0
}

func (w *writer) die(job, destination int64, reason store.DeadReason, at time.Time) error {
	_, err := w.exec("UPDATE OR FAIL jobs SET state = 4, reason = ?, settled_at = ?, lease_token = 0 WHERE id = ?", int64(reason), ms(at), job)
	w.moved(destination, store.Queued, store.Dead)
	return err
}

func (w *writer) leaseOne(j dueJob, destination int64, q store.LeaseQuery) (store.Lease, error) {
	token := w.numbers.attempt
	w.numbers.attempt++
	until := q.Now.Add(q.TTL)
	if _, err := w.exec(`INSERT OR FAIL INTO attempts (id, job, n, started_at, outcome, resend, owner,
		status, maybe, total_us, connect_us, tls_us, first_byte_us, worker, class, error)
		VALUES (?, ?, ?, ?, 1, ?, ?, 0, 0, 0, 0, 0, 0, '', '', '')`,
		token, j.id, j.attempts+1, ms(q.Now), j.resend, q.Owner); err != nil {
		return store.Lease{}, err
	}
	if _, err := w.exec(`UPDATE OR FAIL jobs SET state = 2, attempts = ?, spent = ?, lease_token = ?, lease_owner = ?, lease_until = ?
		WHERE id = ?`, j.attempts+1, j.spent+1, token, q.Owner, ms(until), j.id); err != nil {
		return store.Lease{}, err
	}
	w.moved(destination, store.Queued, store.Leased)
	l := store.Lease{
		Job: j.id, Token: token, Until: instant(ms(until)), Destination: q.Destination, Key: j.key,
		Attempt: int(j.attempts + 1), Spent: int(j.spent + 1), Resend: j.resend != 0, Passthrough: j.passthrough != 0,
	}
	var ok bool
	if l.Delivery, l.Payload, ok = w.cache.get(j.delivery); !ok {
		l.Delivery.ID = j.delivery
	}
	return l, nil
}

// held is a job as the holder of a lease finds it.
type held struct {
	destination, delivery, attempts int64
	state                           store.JobState
}

// current reads the job if token is its current one: the lease lives, or it ran out and
// nobody took the job since. store.ErrLeaseLost otherwise.
func (w *writer) current(job, token int64) (h held, err error) {
	row, ok, err := w.row(selectCurrent, job, token)
	if err == nil && (!ok || token == 0) {
		err = store.ErrLeaseLost
	}
	if err != nil {
		return held{}, fmt.Errorf("job %d: %w", job, err)
	}
	return held{row[0].(int64), row[1].(int64), row[2].(int64), store.JobState(row[3].(int64))}, nil
}

const selectCurrent = "SELECT destination, delivery, attempts, state FROM jobs WHERE id = ? AND lease_token = ? AND state IN (1, 2)"

// Renew moves a lease's deadline; see store.Jobs.
func (d *DB) Renew(ctx context.Context, job, token int64, until time.Time) error {
	return d.do(ctx, func(w *writer) error {
		h, err := w.current(job, token)
		if err != nil {
			return err
		}
		if h.state == store.Queued {
			if _, err := w.exec("UPDATE OR FAIL attempts SET outcome = 1, total_us = 0 WHERE id = ?", token); err != nil {
				return err
			}
			w.moved(h.destination, store.Queued, store.Leased)
		}
		_, err = w.exec("UPDATE OR FAIL jobs SET state = 2, lease_until = ? WHERE id = ? AND lease_token = ?", ms(until), job, token)
		return err
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
	h, err := w.current(s.Job, s.Token)
	if err != nil {
		return err
	}
	r, due, settled, reason := &s.Result, int64(0), ms(s.At), int64(0)
	switch s.State {
	case store.Queued:
		due, settled = ms(s.Due), 0
	case store.Dead:
		reason = int64(s.Reason)
	}
	if _, err := w.exec(`UPDATE OR FAIL jobs SET state = ?, due_at = ?, settled_at = ?, reason = ?, lease_token = 0, lease_until = 0,
		last_status = ?, last_class = ?, last_error = ?, last_us = ? WHERE id = ? AND lease_token = ?`,
		int64(s.State), due, settled, reason, int64(r.Status), r.Class, r.Error, r.Duration.Microseconds(), s.Job, s.Token); err != nil {
		return err
	}
	w.moved(h.destination, h.state, s.State)
	if _, err := w.exec(`UPDATE OR FAIL attempts SET outcome = ?, status = ?, class = ?, error = ?, maybe = ?, total_us = ?,
		connect_us = ?, tls_us = ?, first_byte_us = ?, worker = ?, answer_headers = ?, answer_body = ? WHERE id = ?`,
		int64(r.Outcome), int64(r.Status), r.Class, r.Error, flag(r.Maybe), r.Duration.Microseconds(),
		r.Connect.Microseconds(), r.TLS.Microseconds(), r.FirstByte.Microseconds(), r.Worker, r.Header, r.Body, s.Token); err != nil {
		return err
	}
	if h.attempts == 1 {
		return nil
	}
	_, err = w.exec(trimAnswers,
		int64(olderAnswer), s.Job, s.Token, int64(olderAnswer))
	return err
}

const trimAnswers = "UPDATE OR FAIL attempts SET answer_body = substr(answer_body, 1, ?) WHERE job = ? AND id < ? AND length(answer_body) > ?"

// ended is a lease to be ended from outside.
type ended struct{ job, destination, token int64 }

// Expire ends the leases that ran out; see store.Jobs.
func (d *DB) Expire(ctx context.Context, now time.Time) (map[string]int, error) {
	counts := map[string]int{}
	for {
		var part []string
		err := d.do(ctx, func(w *writer) error {
			part = nil
			list, err := w.leases(selectExpired, ms(now), int64(maxExpired))
			if err != nil {
				return err
			}
			for _, e := range list {
				part = append(part, w.byID[e.destination])
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

const selectExpired = "SELECT id, destination, lease_token FROM jobs INDEXED BY jobs_lease WHERE state = 2 AND lease_until < ? ORDER BY lease_until LIMIT ?"

// EndLeases ends the leases of owners with the prefix; see store.Jobs.
func (d *DB) EndLeases(ctx context.Context, prefix string, now time.Time) (int, error) {
	total := 0
	for {
		n := 0
		err := d.do(ctx, func(w *writer) error {
			list, err := w.leases("SELECT id, destination, lease_token FROM jobs INDEXED BY jobs_lease WHERE state = 2 AND substr(lease_owner, 1, ?) = ? LIMIT ?",
				int64(len([]rune(prefix))), strings.ToValidUTF8(prefix, ""), int64(maxExpired))
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

func (w *writer) leases(text string, args ...val) (list []ended, err error) {
	err = w.query(text, func(r []val) error {
		list = append(list, ended{r[0].(int64), r[1].(int64), r[2].(int64)})
		return nil
	}, args...)
	return list, err
}

// end queues the jobs again, due now. With late set the old worker may still settle
// until another one leases the job.
func (w *writer) end(list []ended, late bool, now time.Time) error {
	for _, e := range list {
		token := int64(0)
		if late {
			token = e.token
		}
		if _, err := w.exec(`UPDATE OR FAIL jobs SET state = 1, due_at = ?, lease_token = ?, lease_until = 0,
			last_status = 0, last_class = 'interrupted', last_error = '' WHERE id = ?`, ms(now), token, e.job); err != nil {
			return err
		}
		if _, err := w.exec("UPDATE OR FAIL attempts SET outcome = 4, total_us = max(0, ? - started_at) * 1000 WHERE id = ?", ms(now), e.token); err != nil {
			return err
		}
		w.moved(e.destination, store.Leased, store.Queued)
	}
	return nil
}
