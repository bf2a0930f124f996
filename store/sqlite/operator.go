package sqlite

import (
	"context"
	"fmt"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// jobRef is a job as an act of a person finds it.
type jobRef struct {
	id, destination, resend, spent, due int64
	state                               store.JobState
	order                               string
	strict                              bool
	turn                                int64
}

func (j jobRef) line() line { return line{j.destination, j.order} }

const selectJobsOf = "SELECT id, destination, state, resend, spent, due_at, order_value, order_strict, order_turn FROM jobs WHERE delivery = ? ORDER BY id"

// jobsOf reads the jobs of a delivery, of one destination or all.
func (w *writer) jobsOf(delivery int64, destination string) (list []jobRef, err error) {
	only, known := w.names[destination]
	if destination != "" && !known {
		return nil, nil
	}
	err = w.query(selectJobsOf, func(r []val) error {
		if j := (jobRef{r[0].(int64), r[1].(int64), r[3].(int64), r[4].(int64), r[5].(int64), store.JobState(r[2].(int64)), r[6].(string), r[7].(int64) != 0, r[8].(int64)}); destination == "" || j.destination == only {
			list = append(list, j)
		}
		return nil
	}, delivery)
	return list, err
}

// Resend queues jobs again; see store.Operator.
func (d *DB) Resend(ctx context.Context, r store.Resend) (store.Resent, error) {
	var out store.Resent
	err := d.do(ctx, func(w *writer) (err error) {
		out, err = w.resend(r)
		return err
	})
	return out, wrap(err, "resend delivery %d", r.Delivery)
}

func (w *writer) resend(r store.Resend) (out store.Resent, err error) {
	row, ok, err := w.row("SELECT hold, payload FROM deliveries WHERE id = ?", r.Delivery)
	if err != nil {
		return out, err
	}
	jobs, err := w.jobsOf(r.Delivery, r.Destination)
	switch {
	case err != nil:
		return out, err
	case !ok:
		return out, store.ErrNotFound
	case row[0].(int64) == holdQuarantined:
		return out, store.ErrState
	case row[1].(int64) == 0:
		return out, store.ErrPayloadGone
	case len(jobs) == 0:
		return out, store.ErrNotFound
	case r.AsNew:
		return w.resendAsNew(r, jobs)
	}
	return w.resendJobs(r, jobs)
}

func (w *writer) resendJobs(r store.Resend, jobs []jobRef) (out store.Resent, err error) {
	out = store.Resent{Delivery: r.Delivery, AlreadyQueued: true}
	for _, j := range jobs {
		if j.state == store.Leased {
			return store.Resent{}, store.ErrRunning
		}
		out.Jobs = append(out.Jobs, j.id)
		out.AlreadyQueued = out.AlreadyQueued && j.waits(r.At)
	}
	if out.AlreadyQueued {
		return out, nil
	}
	for _, j := range jobs {
		if j.waits(r.At) {
			continue
		}
		if err := w.requeue(j.id, j.line(), ms(r.At), resendSet[r.Passthrough]); err != nil {
			return out, err
		}
		w.moved(j.destination, j.state, store.Queued)
	}
	return out, w.audit(store.AuditEntry{At: r.At, By: r.By, Act: "resend", Delivery: r.Delivery, Subject: r.Destination, Reason: r.Reason})
}

// resendSet is what a resend changes of a job besides.
var resendSet = map[bool]string{
	false: ", resend = 1, passthrough = 0, revived = 0",
	true:  ", resend = 1, passthrough = 1, revived = 0",
}

// waits tells that an earlier resend of the job is still waiting to be sent.
func (j jobRef) waits(at time.Time) bool {
	return j.state == store.Queued && j.resend != 0 && j.spent == 0 && (j.due <= ms(at) || j.turn == engine.Waits)
}

// resendAsNew makes a delivery of its own: event id "evt_1~2", or the next free number.
func (w *writer) resendAsNew(r store.Resend, jobs []jobRef) (store.Resent, error) {
	if r.NewKeys == nil {
		return store.Resent{}, fmt.Errorf("%w: as new needs new keys", store.ErrRefused)
	}
	row, _, err := w.row(`SELECT d.source, ifnull(o.event_id, d.event_id) FROM deliveries d LEFT JOIN deliveries o ON o.id = d.copy_of WHERE d.id = ?`, r.Delivery)
	if err != nil {
		return store.Resent{}, err
	}
	source, base := row[0].(int64), row[1].(string)
	id := w.numbers.delivery
	w.numbers.delivery++
	eventID, err := w.claimCopy(source, base, id, r.At)
	if err != nil {
		return store.Resent{}, err
	}
	if _, err := w.exec(`INSERT OR FAIL INTO deliveries (id, event_id, received_at, copy_of,
		source, provider, type, resource, version, unit, size, digest, slot, part, payload, hold, quarantine, made, test, ack_us, remote, earlier,
		duplicates, last_duplicate_at, body_differs, duplicate_of)
		SELECT ?, ?, ?, id, source, provider, type, resource, version, unit, size, digest, slot, part, payload, 0, '', made, test, ack_us, remote, 0, 0, 0, 0, 0
		FROM deliveries WHERE id = ?`, id, eventID, ms(r.At), r.Delivery); err != nil {
		return store.Resent{}, err
	}
	out, list := store.Resent{Delivery: id}, w.newJobs()
	for _, j := range jobs {
		name := w.byID[j.destination]
		job, err := list.add(of{delivery: id}, store.NewJob{Destination: name, Key: r.NewKeys(eventID, name), State: store.Queued, Order: j.order, Strict: j.strict},
			r.At, true, r.Passthrough)
		if err != nil {
			return store.Resent{}, err
		}
		out.Jobs = append(out.Jobs, job)
	}
	if err := list.end(); err != nil {
		return store.Resent{}, err
	}
	w.pending.newest = ms(r.At)
	return out, w.audit(store.AuditEntry{At: r.At, By: r.By, Act: "resend", Delivery: r.Delivery, Subject: fmt.Sprintf("as new: #%d", id), Reason: r.Reason})
}

// claimCopy claims the first free "base~2", "base~3", … for the delivery id, for as
// long as the original's key is kept, and a week at least.
func (w *writer) claimCopy(source int64, base string, id int64, at time.Time) (string, error) {
	expires, err := w.number("SELECT expires_at FROM dedup WHERE source = ? AND event_id = ?", source, base)
	if err != nil {
		return "", err
	}
	expires = max(expires, ms(at.Add(7*24*time.Hour)))
	for n := 2; ; n++ {
		eventID := fmt.Sprintf("%s~%d", base, n)
		changed, err := w.exec(insertDedup.rows(1), source, eventID, id, expires)
		if err != nil || changed == 1 {
			return eventID, err
		}
	}
}

// Cancel ends queued and dead jobs; see store.Operator.
func (d *DB) Cancel(ctx context.Context, delivery int64, destination string, by store.Actor, at time.Time) (int, error) {
	n := 0
	err := d.do(ctx, func(w *writer) error {
		n = 0
		jobs, err := w.jobsOf(delivery, destination)
		if err != nil {
			return err
		}
		if len(jobs) == 0 {
			return w.absent(delivery)
		}
		for _, j := range jobs {
			if j.state != store.Queued && j.state != store.Dead {
				continue
			}
			n++
			if _, err := w.exec("UPDATE OR FAIL jobs SET state = 5, settled_at = ?, lease_token = 0, order_turn = 0 WHERE id = ?", ms(at), j.id); err != nil {
				return err
			}
			w.moved(j.destination, j.state, store.Cancelled)
			if err := w.advance(j.line(), ms(at)); err != nil {
				return err
			}
		}
		if n == 0 {
			return store.ErrState
		}
		return w.audit(store.AuditEntry{At: at, By: by, Act: "cancel", Delivery: delivery, Subject: destination})
	})
	return n, wrap(err, "cancel delivery %d", delivery)
}

// absent is why a delivery has no such job: it does not exist, is quarantined, or does
// not go there.
func (w *writer) absent(delivery int64) error {
	row, ok, err := w.row("SELECT hold FROM deliveries WHERE id = ?", delivery)
	if err != nil {
		return err
	}
	if ok && row[0].(int64) != holdNone {
		return store.ErrState
	}
	return store.ErrNotFound
}
