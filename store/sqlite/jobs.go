package sqlite

import (
	"context"
	"errors"
	"fmt"
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
	order                                string
	strict                               bool
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
				err = w.die(j, destination, reason, q.Now)
				if err == nil && j.order != "" {
					break // the next in its line may be due before those after it
				}
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

const selectDue = `SELECT id, delivery, attempts, spent, since, resend, passthrough, key, order_value, order_strict
	FROM jobs INDEXED BY jobs_due WHERE state = 1 AND destination = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?`

func (w *writer) due(destination int64, q store.LeaseQuery, limit int) (list []dueJob, err error) {
	err = w.query(selectDue, func(r []val) error {
		list = append(list, dueJob{
			id: r[0].(int64), delivery: r[1].(int64), attempts: r[2].(int64), spent: r[3].(int64), since: r[4].(int64),
			resend: r[5].(int64), passthrough: r[6].(int64), key: r[7].(string),
			order: r[8].(string), strict: r[9].(int64) != 0,
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

func (w *writer) die(j dueJob, destination int64, reason store.DeadReason, at time.Time) error {
	if _, err := w.exec("UPDATE OR FAIL jobs SET state = 4, reason = ?, settled_at = ?, lease_token = 0, order_turn = order_turn * order_strict WHERE id = ?",
		int64(reason), ms(at), j.id); err != nil {
		return err
	}
	w.moved(destination, store.Queued, store.Dead)
	if j.strict {
		return nil
	}
	return w.advance(line{destination, j.order}, ms(at))
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
		Attempt: int(j.attempts + 1), Spent: int(j.spent + 1), Resend: j.resend != 0, Passthrough: j.passthrough != 0, Order: j.order,
	}
	var ok bool
	if l.Delivery, l.Payload, ok = w.cache.Get(j.delivery); !ok {
		l.Delivery.ID = j.delivery
	}
	return l, nil
}
