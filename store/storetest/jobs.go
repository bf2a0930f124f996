package storetest

import (
	"fmt"
	"strings"
	"time"

	"acuse/store"
)

var jobTests = []test{
	{"P3", "every attempt and every resend carries the same key and number", func(e *env) {
		id := e.accepted(arrival("stripe", "evt_1"))
		now := t0
		for n := 1; n <= 3; n++ {
			l := e.lease(now)
			same(e, "key", l.Key, "stripe:evt_1:app")
			same(e, "number", l.Delivery.ID, id)
			same(e, "attempt", l.Attempt, n)
			e.settle(l, store.Queued, now)
			now = now.Add(10 * time.Second)
		}
		e.dead(now)
		_, err := e.s.Resend(e.Context(), store.Resend{Delivery: id, By: ana, At: now})
		e.ok(err)
		e.reopen()
		l := e.lease(now)
		same(e, "key of the resend", l.Key, "stripe:evt_1:app")
		same(e, "number of the resend", l.Delivery.ID, id)
		same(e, "attempt of the resend", l.Attempt, 5)
		same(e, "spent of the resend", l.Spent, 1)
		same(e, "resend", l.Resend, true)
	}},
	{"P3", "a job is due exactly when its settlement says, to the millisecond", func(e *env) {
		e.accepted(arrival("s", "a"))
		s := outcome(e.lease(t0), store.Queued, at(time.Second))
		s.Due = at(37*time.Minute + 3*time.Millisecond)
		e.ok(e.s.Settle(e.Context(), s))
		e.accept(arrival("s", "a")) // a repeat does not cut the wait short
		e.reopen()
		due, ok, err := e.s.NextDue(e.Context(), "app")
		e.ok(err)
		same(e, "next due", due, s.Due)
		same(e, "there is one", ok, true)
		e.idle("app", s.Due.Add(-time.Millisecond))
		same(e, "attempt", e.lease(s.Due).Attempt, 2)
		_, ok, err = e.s.NextDue(e.Context(), "app")
		e.ok(err)
		same(e, "none waits while leased", ok, false)
	}},
	{"", "jobs are leased oldest due first, and each destination has its own", func(e *env) {
		for i := range 5 {
			a := later(to(arrival("s", fmt.Sprint(i)), "app", "crm"), -time.Duration(i)*time.Second)
			e.accepted(a)
		}
		var order []int64
		for _, l := range e.leases(e.query("app", t0)) {
			order = append(order, l.Delivery.ID)
		}
		same(e, "order", fmt.Sprint(order), "[5 4 3 2 1]")
		e.idle("app", t0)
		e.idle("unheard of", t0)
		q := e.query("crm", t0)
		q.Max = 2
		same(e, "no more than asked for", len(e.leases(q)), 2)
		same(e, "the others are there", len(e.leases(e.query("crm", t0))), 3)
	}},
	{"", "an attempt is open while its lease lives and closed with all that was found", func(e *env) {
		id := e.accepted(arrival("s", "a"))
		l := e.lease(at(time.Second))
		same(e, "until", l.Until, at(time.Second+time.Minute))
		a := e.attempts(id)
		same(e, "attempts", len(a), 1)
		same(e, "outcome", a[0].Outcome, store.Running)
		same(e, "started", a[0].StartedAt, at(time.Second))
		same(e, "owner", a[0].Owner, "n1/run1/http")
		e.state(id, store.StateLeased)
		s := outcome(l, store.Queued, at(2*time.Second))
		s.Result = store.Result{
			Outcome: store.Failed, Status: 503, Class: "status", Error: "503 Service Unavailable", Maybe: true, Duration: 1234 * time.Microsecond,
			Connect: time.Microsecond, TLS: 2 * time.Microsecond, FirstByte: 3 * time.Microsecond, Header: []byte(`{"Retry-After":["5"]}`), Body: []byte("busy\x00"), Worker: "w7",
		}
		e.ok(e.s.Settle(e.Context(), s))
		got := e.attempts(id)[0]
		same(e, "attempt", fmt.Sprintf("%+v", got.Result), fmt.Sprintf("%+v", s.Result))
		same(e, "ordinal", got.N, 1)
		j := e.delivery(id).Jobs[0]
		same(e, "last", fmt.Sprint(j.LastStatus, j.LastClass, j.LastError, j.LastMicros, j.Attempts, j.Spent, j.State, j.DueAt.Equal(s.Due)),
			fmt.Sprint(503, "status", "503 Service Unavailable", 1234, 1, 1, store.Queued, true))
		byID, err := e.s.JobByID(e.Context(), j.ID)
		e.ok(err)
		same(e, "the same by its id", byID, j)
		_, err = e.s.JobByID(e.Context(), 99)
		e.is(err, store.ErrNotFound)
	}},
	{"", "of the latest answer 64 KiB are kept, of those before 4 KiB", func(e *env) {
		id := e.accepted(arrival("s", "a"))
		body := []byte(strings.Repeat("0123456789abcdef", 8<<10))
		now := t0
		for range 3 {
			s := outcome(e.lease(now), store.Queued, now)
			s.Result.Body, s.Due = body, now
			e.ok(e.s.Settle(e.Context(), s))
		}
		var sizes []int
		for _, a := range e.attempts(id) {
			sizes = append(sizes, len(a.Body))
			same(e, "its beginning", string(a.Body[:16]), "0123456789abcdef")
		}
		same(e, "kept", fmt.Sprint(sizes), "[4096 4096 65536]")
	}},
	{"P4", "jobs whose workers died on every attempt become dead letters", func(e *env) {
		id := e.accepted(arrival("s", "poison"))
		now := t0
		for n := 1; n <= 3; n++ {
			q := e.query("app", now)
			q.Budget = 3
			list := e.leases(q)
			same(e, "leased", len(list), 1)
			same(e, "spent", list[0].Spent, n)
			now = now.Add(2 * time.Minute)
			counts, err := e.s.Expire(e.Context(), now)
			e.ok(err)
			same(e, "expired", fmt.Sprint(counts), "map[app:1]")
		}
		q := e.query("app", now)
		q.Budget = 3
		same(e, "leased once more", len(e.leases(q)), 0)
		d := e.delivery(id)
		same(e, "state", d.State, store.StateDead)
		same(e, "reason", d.Jobs[0].Reason, store.Exhausted)
		same(e, "when", d.Jobs[0].SettledAt, now)
		for _, a := range e.attempts(id) {
			same(e, "attempt", a.Outcome, store.Interrupted)
			same(e, "its length", a.Duration, 2*time.Minute)
		}
		same(e, "dead", e.totals().Dead, 1)
		same(e, "queued", e.totals().Queued, 0)
	}},
	{"", "too old jobs die at the lease, and a resend makes them young", func(e *env) {
		old := e.accepted(arrival("s", "old"))
		young := e.accepted(later(arrival("s", "young"), 50*time.Minute))
		q := e.query("app", at(time.Hour+time.Millisecond))
		q.MaxAge = time.Hour
		list := e.leases(q)
		same(e, "leased", len(list), 1)
		same(e, "the young one", list[0].Delivery.ID, young)
		same(e, "reason", e.delivery(old).Jobs[0].Reason, store.TooOld)
		_, err := e.s.Resend(e.Context(), store.Resend{Delivery: old, By: ana, At: at(2 * time.Hour)})
		e.ok(err)
		q.Now = at(2 * time.Hour)
		same(e, "leased after the resend", len(e.leases(q)), 1)
	}},
	{"", "totals follow every change of state and survive a restart", func(e *env) {
		for i := range 4 {
			e.accepted(later(to(arrival("s", fmt.Sprint(i)), "app", "crm"), time.Duration(i)*time.Second))
		}
		q := e.query("app", at(time.Minute))
		q.Max = 3
		l := e.leases(q)
		e.settle(l[0], store.Delivered, t0)
		e.settle(l[1], store.Dead, t0)
		a := arrival("s", "")
		a.Events[0].Quarantine = "no id"
		e.accept(later(a, time.Minute))
		for range 2 {
			got := e.totals()
			same(e, "totals", fmt.Sprint(got.Queued, got.Leased, got.Dead, got.Quarantined, got.Deliveries), "5 1 1 1 5")
			same(e, "app", fmt.Sprint(got.ByDestination["app"]), fmt.Sprint(store.LaneTotals{Queued: 1, Leased: 1, Dead: 1, OldestDue: at(3 * time.Second)}))
			same(e, "crm", fmt.Sprint(got.ByDestination["crm"]), fmt.Sprint(store.LaneTotals{Queued: 4, OldestDue: t0}))
			same(e, "oldest due", got.OldestDue, t0)
			same(e, "newest", got.Newest, at(time.Minute))
			e.reopen()
		}
	}},
}
