package storetest

import (
	"fmt"
	"time"

	"acuse/store"
)

// resend resends to every destination.
func (e *env) resend(id int64, now time.Time) (store.Resent, error) {
	return e.s.Resend(e.Context(), store.Resend{Delivery: id, By: ana, At: now, Reason: "customer asked"})
}

var operatorTests = []test{
	{"P3", "a resend of a delivered, dead, cancelled or filtered job queues it now with a fresh budget", func(e *env) {
		for i, state := range []store.JobState{store.Delivered, store.Dead, store.Cancelled, store.Filtered} {
			a := arrival("s", fmt.Sprint(i))
			if state == store.Filtered {
				a.Events[0].Jobs[0].State = store.Filtered
			}
			id := e.accepted(a)
			switch state {
			case store.Delivered, store.Dead:
				l := e.lease(t0)
				e.settle(l, store.Queued, t0)
				e.settle(e.lease(at(10*time.Second)), state, t0)
			case store.Cancelled:
				_, err := e.s.Cancel(e.Context(), id, "app", ana, t0)
				e.ok(err)
			}
			got, err := e.resend(id, at(time.Hour))
			e.ok(err)
			job := e.delivery(id).Jobs[0]
			same(e, "resent", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", store.Resent{Delivery: id, Jobs: []int64{job.ID}}))
			same(e, "job", fmt.Sprint(job.State, job.Spent, job.DueAt.Equal(at(time.Hour)), job.Resend, job.SettledAt.IsZero(), job.Reason), fmt.Sprint(store.Queued, 0, true, true, true, 0))
			attempts := job.Attempts
			l := e.lease(at(time.Hour))
			same(e, "attempt goes on counting", l.Attempt, attempts+1)
			same(e, "spent", l.Spent, 1)
			same(e, "marked", l.Resend, true)
			same(e, "attempt marked", e.attempts(id)[attempts].Resend, true)
			e.settle(l, store.Delivered, at(time.Hour))
		}
	}},
	{"P3", "a resend of a job that waits for a retry makes it due now; again says already queued", func(e *env) {
		id := e.accepted(arrival("s", "a"))
		e.settle(e.lease(t0), store.Queued, t0)
		e.idle("app", at(time.Second))
		got, err := e.resend(id, at(time.Second))
		e.ok(err)
		same(e, "already queued", got.AlreadyQueued, false)
		got, err = e.resend(id, at(2*time.Second))
		e.ok(err)
		same(e, "already queued", got.AlreadyQueued, true)
		same(e, "jobs named all the same", len(got.Jobs), 1)
		l := e.lease(at(2 * time.Second))
		same(e, "spent", l.Spent, 1)
		trail, err := e.s.Trail(e.Context(), id)
		e.ok(err)
		same(e, "one act, one entry", len(trail), 1)
	}},
	{"P3", "ten resends at once make one", func(e *env) {
		id := e.accepted(arrival("s", "a"))
		e.settle(e.lease(t0), store.Delivered, t0)
		already := make([]bool, 10)
		together(len(already), func(i int) {
			got, err := e.resend(id, at(time.Second))
			if err != nil {
				e.Error(err)
			}
			already[i] = got.AlreadyQueued
		})
		made := 0
		for _, a := range already {
			if !a {
				made++
			}
		}
		same(e, "made", made, 1)
		e.settle(e.lease(at(time.Second)), store.Delivered, at(time.Second))
		e.idle("app", at(time.Hour))
		trail, err := e.s.Trail(e.Context(), id)
		e.ok(err)
		same(e, "entries", len(trail), 1)
	}},
	{"P4", "a leased job is not resent, and then neither is another of the delivery", func(e *env) {
		id := e.accepted(to(arrival("s", "a"), "app", "crm"))
		e.settle(e.leases(e.query("crm", t0))[0], store.Delivered, t0)
		l := e.lease(t0)
		_, err := e.resend(id, at(time.Second))
		e.is(err, store.ErrRunning)
		same(e, "crm", e.delivery(id).Jobs[1].State, store.Delivered)
		_, err = e.s.Resend(e.Context(), store.Resend{Delivery: id, Destination: "crm", By: ana, At: at(time.Second)})
		e.ok(err)
		e.settle(l, store.Delivered, t0)
		trail, err := e.s.Trail(e.Context(), id)
		e.ok(err)
		same(e, "entries", len(trail), 1)
	}},
	{"", "a resend to one destination leaves the others, and asks for the signature wanted", func(e *env) {
		id := e.accepted(to(arrival("s", "a"), "app", "crm"))
		e.settle(e.lease(t0), store.Delivered, t0)
		e.settle(e.leases(e.query("crm", t0))[0], store.Delivered, t0)
		_, err := e.s.Resend(e.Context(), store.Resend{Delivery: id, Destination: "app", Passthrough: true, By: ana, At: t0})
		e.ok(err)
		l := e.lease(t0)
		same(e, "passthrough", l.Passthrough, true)
		e.idle("crm", at(time.Hour))
		e.settle(l, store.Delivered, t0)
		_, err = e.resend(id, t0)
		e.ok(err)
		same(e, "the next one as usual", e.lease(t0).Passthrough, false)
	}},
	{"", "what cannot be resent says why", func(e *env) {
		e.accepted(arrival("s", "a"))
		q := arrival("s", "")
		q.Events[0].Quarantine = "no id"
		quarantined := e.accept(q)[0].Delivery
		_, err := e.resend(99, t0)
		e.is(err, store.ErrNotFound)
		_, err = e.s.Resend(e.Context(), store.Resend{Delivery: 1, Destination: "crm", By: ana, At: t0})
		e.is(err, store.ErrNotFound)
		_, err = e.resend(quarantined, t0)
		e.is(err, store.ErrState)
	}},
	{"", "as new makes a delivery of its own, with the next free id and new keys", func(e *env) {
		id := e.accepted(arrival("stripe", "evt_1"))
		e.accepted(arrival("stripe", "evt_1~2"))
		l := e.leaseFirst(t0)
		r := store.Resend{Delivery: id, AsNew: true, By: ana, At: at(time.Minute), Reason: "twice on purpose",
			NewKeys: func(event, destination string) string { return "stripe:" + event + ":" + destination }}
		got, err := e.s.Resend(e.Context(), r)
		e.ok(err)
		d := e.delivery(got.Delivery)
		same(e, "event id", d.EventID, "evt_1~3")
		same(e, "copy of", d.CopyOf, id)
		same(e, "received", d.ReceivedAt, at(time.Minute))
		same(e, "key", d.Jobs[0].Key, "stripe:evt_1~3:app")
		same(e, "job", fmt.Sprint(got.Jobs), fmt.Sprint([]int64{d.Jobs[0].ID}))
		p, err := e.s.Payload(e.Context(), got.Delivery)
		e.ok(err)
		same(e, "body", string(p.Body), string(arrival("stripe", "evt_1").Body))
		r.Delivery = got.Delivery
		again, err := e.s.Resend(e.Context(), r)
		e.ok(err)
		same(e, "a copy of a copy", e.delivery(again.Delivery).EventID, "evt_1~4")
		same(e, "its id is claimed", e.accept(later(arrival("stripe", "evt_1~3"), time.Hour))[0].Kind, store.Duplicate)
		e.settle(l, store.Delivered, t0)
		trail, err := e.s.Trail(e.Context(), id)
		e.ok(err)
		same(e, "reason", trail[0].Reason, "twice on purpose")
		e.sound()
	}},
	{"", "cancel ends what is queued or dead, and nothing else", func(e *env) {
		id := e.accepted(to(arrival("s", "a"), "app", "crm", "agent", "log"))
		e.settle(e.lease(t0), store.Delivered, t0)
		e.settle(e.leases(e.query("crm", t0))[0], store.Dead, t0)
		l := e.leases(e.query("log", t0))[0]
		n, err := e.s.Cancel(e.Context(), id, "", ana, at(time.Second))
		e.ok(err)
		same(e, "cancelled", n, 2)
		var states []store.JobState
		for _, j := range e.delivery(id).Jobs {
			states = append(states, j.State)
		}
		same(e, "states", fmt.Sprint(states), fmt.Sprint([]store.JobState{store.Delivered, store.Cancelled, store.Cancelled, store.Leased}))
		_, err = e.s.Cancel(e.Context(), id, "", ana, at(time.Second))
		e.is(err, store.ErrState)
		_, err = e.s.Cancel(e.Context(), id, "nowhere", ana, at(time.Second))
		e.is(err, store.ErrNotFound)
		_, err = e.s.Cancel(e.Context(), 99, "", ana, at(time.Second))
		e.is(err, store.ErrNotFound)
		e.settle(l, store.Delivered, t0)
		e.state(id, store.StateCancelled)
		trail, err := e.s.Trail(e.Context(), id)
		e.ok(err)
		same(e, "entry", fmt.Sprintf("%+v", trail), fmt.Sprintf("%+v", []store.AuditEntry{{ID: trail[0].ID, At: at(time.Second), By: ana, Act: "cancel", Delivery: id}}))
	}},
	{"P6", "a delivery shows the worst of its jobs", func(e *env) {
		a := to(arrival("s", "a"), "app", "crm", "log")
		a.Events[0].Jobs[2].State = store.Filtered
		id := e.accepted(a)
		e.state(id, store.StateQueued)
		l := e.lease(t0)
		e.state(id, store.StateLeased)
		e.settle(e.leases(e.query("crm", t0))[0], store.Dead, t0)
		e.state(id, store.StateDead)
		e.settle(l, store.Delivered, t0)
		e.state(id, store.StateDead)
		_, err := e.s.Cancel(e.Context(), id, "crm", ana, t0)
		e.ok(err)
		e.state(id, store.StateCancelled)
		_, err = e.s.Resend(e.Context(), store.Resend{Delivery: id, Destination: "crm", By: ana, At: t0})
		e.ok(err)
		e.settle(e.leases(e.query("crm", t0))[0], store.Delivered, t0)
		e.state(id, store.StateFiltered)
		_, err = e.s.Resend(e.Context(), store.Resend{Delivery: id, Destination: "log", By: ana, At: t0})
		e.ok(err)
		e.settle(e.leases(e.query("log", t0))[0], store.Delivered, t0)
		e.state(id, store.StateDelivered)
	}},
	{"", "the audit log lists newest first, in pages", func(e *env) {
		for i := range 5 {
			e.ok(e.s.Audit(e.Context(), store.AuditEntry{At: at(time.Duration(i) * time.Second), By: ana, Act: "login", Subject: fmt.Sprint(i)}))
		}
		first, err := e.s.AuditLog(e.Context(), 0, 3)
		e.ok(err)
		second, err := e.s.AuditLog(e.Context(), first[2].ID, 3)
		e.ok(err)
		got := ""
		for _, entry := range append(first, second...) {
			got += entry.Subject
		}
		same(e, "order", got, "43210")
		same(e, "kept", fmt.Sprintf("%+v", second[1]), fmt.Sprintf("%+v", store.AuditEntry{ID: second[1].ID, At: t0, By: ana, Act: "login", Subject: "0"}))
	}},
}

// leaseFirst leases all that is due for app and returns the first.
func (e *env) leaseFirst(now time.Time) store.Lease {
	e.Helper()
	return e.leases(e.query("app", now))[0]
}
