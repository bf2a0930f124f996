package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"acuse/store"
)

var dedupTests = []test{
	{"P2", "fifty requests with one id at once make one delivery and one job", func(e *env) {
		kinds := make([]store.Outcome, 50)
		together(len(kinds), func(i int) {
			out, err := e.s.Accept(e.Context(), arrival("stripe", "evt_1"))
			if err != nil {
				e.Error(err)
				return
			}
			kinds[i] = out[0]
		})
		accepted := 0
		for _, o := range kinds {
			same(e, "number", o.Delivery, 1)
			if o.Kind == store.Accepted {
				accepted++
			}
		}
		same(e, "accepted", accepted, 1)
		d := e.delivery(1)
		same(e, "duplicates", d.Duplicates, 49)
		same(e, "jobs", len(d.Jobs), 1)
		same(e, "deliveries", len(e.list(store.DeliveryFilter{})), 1)
		same(e, "leased", e.lease(t0).Delivery.ID, 1)
		e.idle("app", t0)
	}},
	{"P2", "the same id at two sources is two events", func(e *env) {
		a, b := e.accepted(arrival("s1", "1")), e.accepted(arrival("s2", "1"))
		if a == b {
			e.Fatal("one number for two events")
		}
	}},
	{"P2", "the same id twice in one request is one event", func(e *env) {
		out := e.accept(arrival("s", "a", "a"))
		same(e, "outcomes", fmt.Sprint(out), fmt.Sprint([]store.Outcome{{Kind: store.Accepted, Delivery: 1}, {Kind: store.Duplicate, Delivery: 1}}))
		same(e, "duplicates", e.delivery(1).Duplicates, 1)
		same(e, "queued", e.totals().Queued, 1)
	}},
	{"P2", "ids are compared as they are: case, spaces, NUL, length, bytes", func(e *env) {
		long := strings.Repeat("k", store.MaxEventID-1)
		ids := []string{"a", "A", " a", "a ", "a\x00b", "a\x00c", "\u00e9", "e\u0301", "1", "01", "\xff", "\xfe", "'; DROP TABLE jobs; --", long + "y", long + "z"}
		for i, id := range ids {
			same(e, fmt.Sprintf("number of %.20q", id), e.accepted(arrival("s", id)), int64(i+1))
		}
		for i, id := range ids {
			same(e, fmt.Sprintf("%.20q again", id), e.accept(arrival("s", id))[0], store.Outcome{Kind: store.Duplicate, Delivery: int64(i + 1)})
			same(e, "kept id", e.delivery(int64(i+1)).EventID, id)
		}
	}},
	{"P2", "a key may be claimed again once its window has passed, and not before", func(e *env) {
		a := arrival("s", "fingerprint")
		a.Events[0].Window = time.Hour
		first := e.accepted(a)
		same(e, "a moment before", e.accept(later(a, time.Hour-time.Millisecond))[0], store.Outcome{Kind: store.Duplicate, Delivery: first})
		second := e.accepted(later(a, time.Hour))
		if second == first {
			e.Fatal("the same number again")
		}
		same(e, "the key is the second's now", e.accept(later(a, 90*time.Minute))[0], store.Outcome{Kind: store.Duplicate, Delivery: second})
		same(e, "duplicates of the first", e.delivery(first).Duplicates, 1)
		same(e, "both are found by the id", fmt.Sprint(numbers(e.list(store.DeliveryFilter{Query: "fingerprint"}))), fmt.Sprint([]int64{second, first}))
	}},
	{"P2", "a key that lasts with its delivery is not claimed while that waits, runs, is dead or is kept", func(e *env) {
		a := arrival("s", "slow")
		a.Events[0].WithRow = true
		first := e.accepted(a)
		late := func(when string, now time.Time) {
			e.Helper()
			same(e, when, e.accept(later(a, now.Sub(t0)))[0], store.Outcome{Kind: store.Duplicate, Delivery: first})
		}
		late("while it waits", at(8*day))
		l := e.lease(at(8 * day))
		late("while it is worked on", at(9*day))
		e.settle(l, store.Dead, at(10*day))
		late("while it is a dead letter", at(60*day))
		r := rule(60 * day)
		e.purge(r)
		late("while a dead letter is kept", at(60*day))
		_, err := e.s.Resend(e.Context(), store.Resend{Delivery: first, By: ana, At: at(60 * day)})
		e.ok(err)
		e.settle(e.lease(at(60*day)), store.Delivered, at(60*day))
		late("while its row is kept", at(61*day))
		same(e, "duplicates", e.delivery(first).Duplicates, 5)
		short := a
		short.Events = slices.Clone(a.Events)
		short.Events[0].WithRow = false
		second := e.accepted(later(short, 61*day)) // the window that was asked for has passed
		e.settle(e.lease(at(61*day)), store.Delivered, at(61*day))
		e.purge(rule(200 * day))
		e.is(func() error { _, err := e.s.Delivery(e.Context(), second); return err }(), store.ErrNotFound)
		if third := e.accepted(later(a, 200*day)); third <= second {
			e.Fatalf("once the row is gone the key is free: got #%d after #%d", third, second)
		}
		e.sound()
	}},
	{"P2", "a delivery let out of quarantine does not take the key of one that waits", func(e *env) {
		first := e.accepted(arrival("s", "slow"))
		q := arrival("s", "")
		q.Events[0].Quarantine, q.Events[0].Jobs = "no id", nil
		held := e.accept(later(q, 20*day))[0].Delivery
		ev := event("s", "slow", "app")
		ev.WithRow = true
		out, err := e.s.Release(e.Context(), held, ev, ana, at(21*day))
		e.ok(err)
		same(e, "released", out, store.Outcome{Kind: store.Duplicate, Delivery: first})
		e.sound()
	}},
	{"P2", "many requests at once for a key whose window has passed make one delivery", func(e *env) {
		a := arrival("s", "fingerprint")
		a.Events[0].Window = time.Minute
		e.accepted(a)
		together(20, func(int) {
			if _, err := e.s.Accept(e.Context(), later(a, time.Hour)); err != nil {
				e.Error(err)
			}
		})
		same(e, "deliveries", len(e.list(store.DeliveryFilter{})), 2)
		same(e, "duplicates", e.delivery(2).Duplicates, 19)
		e.sound()
	}},
	{"", "a duplicate is counted, with its time and whether its body was another", func(e *env) {
		a := arrival("s", "a")
		id := e.accepted(a)
		e.accept(later(a, time.Second))
		a.Events[0].Digest = 99
		e.accept(later(a, 2*time.Second))
		e.accept(later(a, time.Second)) // an older one, committed late
		d := e.delivery(id)
		same(e, "duplicates", d.Duplicates, 3)
		same(e, "bodies that differ", d.BodyDiffers, 2)
		same(e, "last", d.LastDuplicateAt, at(2*time.Second))
		p, err := e.s.Payload(e.Context(), id)
		e.ok(err)
		same(e, "the first body is kept", string(p.Body), string(arrival("s", "a").Body))
	}},
	{"", "a duplicate revives a dead letter of exhausted attempts, once", func(e *env) {
		a := revive(arrival("s", "a"))
		id := e.accepted(a)
		e.dead(t0)
		same(e, "the first repeat", e.accept(later(a, time.Minute))[0], store.Outcome{Kind: store.Duplicate, Delivery: id, Revived: true})
		l := e.lease(at(time.Minute))
		same(e, "attempt", l.Attempt, 2)
		same(e, "fresh budget", l.Spent, 1)
		same(e, "a revived job is no resend", l.Resend, false)
		e.settle(l, store.Dead, at(time.Minute))
		same(e, "the second repeat", e.accept(later(a, 2*time.Minute))[0], store.Outcome{Kind: store.Duplicate, Delivery: id})
		e.idle("app", at(time.Hour))
		_, err := e.s.Resend(e.Context(), store.Resend{Delivery: id, By: ana, At: at(3 * time.Minute)})
		e.ok(err)
		e.dead(at(3 * time.Minute))
		same(e, "after a person's resend it is a new dead letter", e.accept(later(a, 4*time.Minute))[0].Revived, true)
	}},
	{"", "a duplicate revives nothing else: refused, too old, cancelled, delivered, or unasked", func(e *env) {
		refused := revive(arrival("s", "refused"))
		e.accepted(refused)
		s := outcome(e.lease(t0), store.Dead, t0)
		s.Reason = store.RefusedByApp
		e.ok(e.s.Settle(e.Context(), s))

		delivered := revive(arrival("s", "delivered"))
		e.accepted(delivered)
		e.settle(e.lease(t0), store.Delivered, t0)

		cancelled := revive(arrival("s", "cancelled"))
		_, err := e.s.Cancel(e.Context(), e.accepted(cancelled), "", ana, t0)
		e.ok(err)

		unasked := arrival("s", "unasked")
		e.accepted(unasked)
		e.dead(t0)

		tooOld := revive(arrival("s", "old"))
		e.accepted(tooOld)
		q := e.query("app", at(time.Hour))
		q.MaxAge = time.Minute
		same(e, "leased", len(e.leases(q)), 0)
		for _, a := range []store.Arrival{refused, delivered, cancelled, unasked, tooOld} {
			same(e, a.Events[0].ID, e.accept(later(a, time.Hour))[0].Revived, false)
		}
		e.idle("app", at(2*time.Hour))
	}},
	{"", "a revived delivery queues only its dead jobs", func(e *env) {
		a := to(revive(arrival("s", "a")), "app", "crm")
		id := e.accepted(a)
		e.dead(t0)
		crm := e.leases(e.query("crm", t0))
		e.settle(crm[0], store.Delivered, t0)
		same(e, "revived", e.accept(later(a, time.Minute))[0].Revived, true)
		d := e.delivery(id)
		same(e, "dead one", d.Jobs[0].State, store.Queued)
		same(e, "delivered one", d.Jobs[1].State, store.Delivered)
	}},
}
