package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// Bounds of one transaction, so that none holds up the others for long.
const (
	maxDeaths  = 500 // jobs that die in one lease
	maxExpired = 500 // leases ended by one sweep's transaction
)

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

func (w *writer) lease(q store.LeaseQuery) (leases []store.Lease, err error) {
	destination, ok := w.names[q.Destination]
	if !ok {
		return nil, nil
	}
	w.leasing[destination] = true
	for again, deaths := true, 0; again && len(leases) < q.Max && deaths < maxDeaths; {
		again = false
		for _, j := range w.due(destination, q, q.Max-len(leases), maxDeaths-deaths) {
			if reason := dies(&j, q); reason != 0 {
				deaths++
				old := j
				j.state, j.reason, j.settled, j.token = store.Dead, reason, engine.Milli(q.Now), 0
				if err := w.leaves(&old, &j, engine.Milli(q.Now)); err != nil {
					return nil, err
				}
				if again = j.order != ""; again {
					break // the next in its line may be due before those after it
				}
				continue
			}
			l, err := w.leaseOne(j, q)
			if err != nil {
				return nil, err
			}
			leases = append(leases, l)
		}
	}
	return leases, nil
}

// due lists up to wanted due jobs that may be tried, oldest due first, and those before
// them that may not, at most deaths.
func (w *writer) due(destination int64, q store.LeaseQuery, wanted, deaths int) (list []job) {
	now, alive := engine.Milli(q.Now), 0
	for k := range w.keys(tDue, small(destination), false) {
		if alive >= wanted || len(list)-alive >= deaths || numAt(k, 4) > now {
			break
		}
		j, err := w.job(last(k))
		if err != nil { // damage: one bad job does not hold up its lane
			w.log.Error("lease", "job", last(k), "err", err)
			continue
		}
		list = append(list, j)
		if dies(&j, q) == 0 {
			alive++
		}
	}
	return list
}

// dies tells why the job may not be tried again: its workers died on it too often, or
// it is too old.
func dies(j *job, q store.LeaseQuery) store.DeadReason {
	switch {
	case q.Budget > 0 && j.spent >= int64(q.Budget):
		return store.Exhausted
	case q.MaxAge > 0 && engine.Milli(q.Now)-j.since > q.MaxAge.Milliseconds():
		return store.TooOld
	}
	return 0
}

func (w *writer) leaseOne(j job, q store.LeaseQuery) (store.Lease, error) {
	token, err := w.next(tAttempts)
	if err != nil {
		return store.Lease{}, err
	}
	old, until := j, engine.Milli(q.Now.Add(q.TTL))
	j.state, j.attempts, j.spent, j.token, j.owner, j.until = store.Leased, j.attempts+1, j.spent+1, token, q.Owner, until
	a := attempt{job: j.id, id: token, n: j.attempts, started: engine.Milli(q.Now), resend: j.resend, owner: q.Owner}
	a.result.Outcome = store.Running
	if err := w.put(tAttempts, attemptKey(j.id, token), a.encode()); err != nil {
		return store.Lease{}, err
	}
	if err := w.change(&old, &j); err != nil {
		return store.Lease{}, err
	}
	l := store.Lease{
		Job: j.id, Token: token, Until: engine.Instant(until), Destination: q.Destination, Key: j.key,
		Attempt: int(j.attempts), Spent: int(j.spent), Resend: j.resend, Passthrough: j.passthrough, Order: j.order,
	}
	var ok bool
	if l.Delivery, l.Payload, ok = w.cache.Get(j.delivery); !ok {
		l.Delivery.ID = j.delivery
	}
	return l, nil
}

// NextDue is the earliest due time of a lane; see store.Jobs.
func (d *DB) NextDue(ctx context.Context, destination string) (at time.Time, ok bool, err error) {
	err = d.view(ctx, func(x *tx) error {
		if id := x.named(destination); id != 0 {
			for k := range x.keys(tDue, small(id), false) {
				if due := numAt(k, 4); due != engine.Never {
					at, ok = engine.Instant(due), true
				}
				break
			}
		}
		return nil
	})
	return at, ok, wrap(err, "next due")
}

// NextDeadline is the earliest deadline of all leases; see store.Jobs.
func (d *DB) NextDeadline(ctx context.Context) (until time.Time, ok bool, err error) {
	err = d.view(ctx, func(x *tx) error {
		if k, _ := x.bucket(tLeases).Cursor().First(); k != nil {
			until, ok = engine.Instant(numAt(k, 0)), true
		}
		return nil
	})
	return until, ok, wrap(err, "next deadline")
}

// Totals counts what waits; see store.Archive.
func (d *DB) Totals(ctx context.Context) (store.Totals, error) {
	d.mu.Lock()
	t := d.tally.Totals()
	d.mu.Unlock()
	err := engine.AddDue(&t, func(destination string) (time.Time, bool, error) { return d.NextDue(ctx, destination) })
	if err != nil {
		return store.Totals{}, err
	}
	return t, nil
}
