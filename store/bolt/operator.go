package bolt

import (
	"context"
	"fmt"
	"slices"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// chosen reads the jobs of a delivery, of one destination or all.
func (w *writer) chosen(d *delivery, destination string) ([]job, error) {
	jobs, err := w.jobsOf(d)
	if destination == "" || err != nil {
		return jobs, err
	}
	only := w.names[destination]
	return slices.DeleteFunc(jobs, func(j job) bool { return j.destination != only }), nil
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

func (w *writer) resend(r store.Resend) (store.Resent, error) {
	d, err := w.found(r.Delivery)
	if err != nil {
		return store.Resent{}, err
	}
	jobs, err := w.chosen(&d, r.Destination)
	switch {
	case err != nil:
		return store.Resent{}, err
	case d.hold == holdQuarantined:
		return store.Resent{}, store.ErrState
	case d.payload == 0:
		return store.Resent{}, store.ErrPayloadGone
	case len(jobs) == 0:
		return store.Resent{}, store.ErrNotFound
	case r.AsNew:
		return w.resendAsNew(r, d, jobs)
	}
	return w.resendJobs(r, jobs)
}

func (w *writer) resendJobs(r store.Resend, jobs []job) (out store.Resent, err error) {
	out = store.Resent{Delivery: r.Delivery, AlreadyQueued: true}
	at := engine.Milli(r.At)
	for i := range jobs {
		if jobs[i].state == store.Leased {
			return store.Resent{}, store.ErrRunning
		}
		out.Jobs = append(out.Jobs, jobs[i].id)
		out.AlreadyQueued = out.AlreadyQueued && jobs[i].waits(at)
	}
	if out.AlreadyQueued {
		return out, nil
	}
	for i := range jobs {
		j := jobs[i]
		if j.waits(at) {
			continue
		}
		j.resend, j.passthrough, j.revived = true, r.Passthrough, false
		if err := w.requeue(&jobs[i], &j, at); err != nil {
			return out, err
		}
	}
	return out, w.audit(store.AuditEntry{At: r.At, By: r.By, Act: "resend", Delivery: r.Delivery, Subject: r.Destination, Reason: r.Reason})
}

// waits tells that an earlier resend of the job is still waiting to be sent.
func (j *job) waits(at int64) bool {
	return j.state == store.Queued && j.resend && j.spent == 0 && (j.due <= at || j.turn == engine.Waits)
}

// resendAsNew makes a delivery of its own: event id "evt_1~2", or the next free number.
func (w *writer) resendAsNew(r store.Resend, d delivery, jobs []job) (store.Resent, error) {
	if r.NewKeys == nil {
		return store.Resent{}, fmt.Errorf("%w: as new needs new keys", store.ErrRefused)
	}
	base := d.eventID
	if d.copyOf != 0 {
		if first, ok, err := w.delivery(d.copyOf); err != nil {
			return store.Resent{}, err
		} else if ok {
			base = first.eventID
		}
	}
	eventID, expires, err := w.freeCopy(d.source, base, r.At)
	if err != nil {
		return store.Resent{}, err
	}
	keys := make([]store.NewJob, len(jobs))
	for i, j := range jobs {
		name := w.name(j.destination)
		keys[i] = store.NewJob{Destination: name, Key: r.NewKeys(eventID, name), State: store.Queued, Order: j.order, Strict: j.strict}
	}
	if err := jobsKeepable(keys); err != nil {
		return store.Resent{}, err
	}
	id, err := w.next(tDeliveries)
	if err != nil {
		return store.Resent{}, err
	}
	if err := w.claim(d.source, eventID, id, expires); err != nil {
		return store.Resent{}, err
	}
	d.id, d.eventID, d.receivedAt, d.copyOf, d.jobs = id, eventID, engine.Milli(r.At), d.id, nil
	d.hold, d.quarantine, d.duplicates, d.lastDuplicateAt, d.bodyDiffers, d.duplicateOf, d.earlier = holdNone, "", 0, 0, 0, 0, 0
	for _, n := range keys {
		if err := w.addJob(&d, n, nil, r.At, true, r.Passthrough); err != nil {
			return store.Resent{}, err
		}
	}
	if err := w.changeDelivery(nil, &d); err != nil {
		return store.Resent{}, err
	}
	w.pending.newest = d.receivedAt
	return store.Resent{Delivery: id, Jobs: slices.Clone(d.jobs)},
		w.audit(store.AuditEntry{At: r.At, By: r.By, Act: "resend", Delivery: r.Delivery, Subject: fmt.Sprintf("as new: #%d", id), Reason: r.Reason})
}

// freeCopy is the first free "base~2", "base~3", …, and until when it is to be kept: as
// long as the original's key, and a week at least.
func (w *writer) freeCopy(source int64, base string, at time.Time) (eventID string, expires int64, err error) {
	_, expires, err = w.holder(source, base)
	if err != nil {
		return "", 0, err
	}
	expires = max(expires, engine.Milli(at.Add(7*24*time.Hour)))
	for n := 2; ; n++ {
		eventID = fmt.Sprintf("%s~%d", base, n)
		if holder, _, err := w.holder(source, eventID); err != nil || holder == 0 {
			return eventID, expires, err
		}
	}
}

// Cancel ends queued and dead jobs; see store.Operator.
func (d *DB) Cancel(ctx context.Context, id int64, destination string, by store.Actor, at time.Time) (int, error) {
	n := 0
	err := d.do(ctx, func(w *writer) (err error) {
		n, err = w.cancel(id, destination, by, at)
		return err
	})
	return n, wrap(err, "cancel delivery %d", id)
}

func (w *writer) cancel(id int64, destination string, by store.Actor, at time.Time) (n int, err error) {
	d, err := w.found(id)
	if err != nil {
		return 0, err
	}
	jobs, err := w.chosen(&d, destination)
	switch {
	case err != nil:
		return 0, err
	case len(jobs) == 0 && d.hold != holdNone:
		return 0, store.ErrState
	case len(jobs) == 0:
		return 0, store.ErrNotFound
	}
	for i := range jobs {
		j := jobs[i]
		if j.state != store.Queued && j.state != store.Dead {
			continue
		}
		n++
		j.state, j.settled, j.token = store.Cancelled, engine.Milli(at), 0
		if err := w.leaves(&jobs[i], &j, engine.Milli(at)); err != nil {
			return 0, err
		}
	}
	if n == 0 {
		return 0, store.ErrState
	}
	return n, w.audit(store.AuditEntry{At: at, By: by, Act: "cancel", Delivery: id, Subject: destination})
}
