package storetest

import (
	"fmt"
	"time"

	"acuse/store"
)

// quarantined accepts a request whose event cannot be identified.
func (e *env) quarantined(source string) int64 {
	e.Helper()
	a := arrival(source, "")
	a.Events[0].Quarantine = "id: no such field"
	out := e.accept(a)[0]
	same(e, "kind", out.Kind, store.Quarantined)
	return out.Delivery
}

var quarantineTests = []test{
	{"P6", "a quarantined event is kept whole, claims no key and queues no job", func(e *env) {
		one, two := e.quarantined("s"), e.quarantined("s")
		if one == two {
			e.Fatal("two requests without an id are one delivery")
		}
		d := e.delivery(one)
		same(e, "state", d.State, store.StateQuarantined)
		same(e, "why", d.Quarantine, "id: no such field")
		same(e, "event id", d.EventID, "")
		same(e, "jobs", len(d.Jobs), 0)
		p, err := e.s.Payload(e.Context(), one)
		e.ok(err)
		same(e, "body", string(p.Body), `{"ids":""}`)
		e.idle("app", at(time.Hour))
		same(e, "total", e.totals().Quarantined, 2)
		e.sound()
	}},
	{"P6", "a released delivery has its identity, key and jobs, and keeps its number", func(e *env) {
		id := e.quarantined("s")
		out, err := e.s.Release(e.Context(), id, event("s", "evt_1", "app", "crm"), ana, at(time.Hour))
		e.ok(err)
		same(e, "outcome", out, store.Outcome{Kind: store.Accepted, Delivery: id})
		d := e.delivery(id)
		same(e, "state", d.State, store.StateQueued)
		same(e, "identity", fmt.Sprint(d.EventID, d.Type, d.Resource, d.Quarantine, d.ReceivedAt.Equal(t0)), "evt_1invoice.paidin_1true")
		l := e.lease(at(time.Hour))
		same(e, "leased", l.Delivery.ID, id)
		same(e, "key", l.Key, "s:evt_1:app")
		same(e, "a repeat", e.accept(later(arrival("s", "evt_1"), 2*time.Hour))[0], store.Outcome{Kind: store.Duplicate, Delivery: id})
		same(e, "total", e.totals().Quarantined, 0)
		_, err = e.s.Release(e.Context(), id, event("s", "evt_1", "app"), ana, at(time.Hour))
		e.is(err, store.ErrState)
		_, err = e.s.Release(e.Context(), 99, event("s", "evt_1", "app"), ana, at(time.Hour))
		e.is(err, store.ErrNotFound)
		trail, err := e.s.Trail(e.Context(), id)
		e.ok(err)
		same(e, "acts", len(trail), 1)
		same(e, "act", trail[0].Act, "release")
		e.sound()
	}},
	{"P2", "released onto a claimed key it ends cancelled and counts there", func(e *env) {
		first := e.accepted(revive(arrival("s", "evt_1")))
		e.dead(t0)
		id := e.quarantined("s")
		ev := event("s", "evt_1", "app")
		ev.Revive = true
		out, err := e.s.Release(e.Context(), id, ev, ana, at(time.Hour))
		e.ok(err)
		same(e, "outcome", out, store.Outcome{Kind: store.Duplicate, Delivery: first, Revived: true})
		d := e.delivery(id)
		same(e, "state", d.State, store.StateCancelled)
		same(e, "duplicate of", d.DuplicateOf, first)
		same(e, "event id", d.EventID, "evt_1")
		same(e, "reason", d.Jobs[0].Note, fmt.Sprintf("duplicate of #%d", first))
		same(e, "counted", e.delivery(first).Duplicates, 1)
		same(e, "only the first is leased", e.lease(at(time.Hour)).Delivery.ID, first)
		same(e, "found as cancelled", fmt.Sprint(numbers(e.list(store.DeliveryFilter{State: store.StateCancelled}))), fmt.Sprint([]int64{id}))
		e.sound()
	}},
	{"P2", "released onto a key whose window has passed it takes the key", func(e *env) {
		a := arrival("s", "evt_1")
		a.Events[0].Window = time.Minute
		first := e.accepted(a)
		id := e.quarantined("s")
		out, err := e.s.Release(e.Context(), id, event("s", "evt_1", "app"), ana, at(time.Hour))
		e.ok(err)
		same(e, "outcome", out, store.Outcome{Kind: store.Accepted, Delivery: id})
		same(e, "found", fmt.Sprint(numbers(e.list(store.DeliveryFilter{Query: "evt_1"}))), fmt.Sprint([]int64{id, first}))
	}},
	{"", "of many releases at once of one delivery, one is done", func(e *env) {
		id := e.quarantined("s")
		errs := make([]error, 10)
		together(len(errs), func(i int) {
			_, errs[i] = e.s.Release(e.Context(), id, event("s", "evt_1", "app"), ana, t0)
		})
		done := 0
		for _, err := range errs {
			if err == nil {
				done++
			} else {
				e.is(err, store.ErrState)
			}
		}
		same(e, "done", done, 1)
		same(e, "duplicates", e.delivery(id).Duplicates, 0)
	}},
	{"", "quarantined deliveries are listed oldest first, by source, in pages", func(e *env) {
		var want []int64
		for i := range 5 {
			id := e.quarantined([]string{"s", "other"}[i%2])
			if i%2 == 0 {
				want = append(want, id)
			}
			e.accepted(arrival("s", fmt.Sprint(i)))
		}
		first, err := e.s.QuarantinedAfter(e.Context(), "s", 0, 2)
		e.ok(err)
		rest, err := e.s.QuarantinedAfter(e.Context(), "s", first[1].ID, 2)
		e.ok(err)
		same(e, "numbers", fmt.Sprint(numbers(append(first, rest...))), fmt.Sprint(want))
		list, err := e.s.QuarantinedAfter(e.Context(), "", 0, 10)
		e.ok(err)
		same(e, "of all sources", len(list), 5)
	}},
}
