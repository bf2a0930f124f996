package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"acuse/store"
)

var acceptTests = []test{
	{"P1", "an accepted event is there after a restart, with its key, body and job", func(e *env) {
		a := arrival("stripe", "evt_1")
		id := e.accepted(a)
		e.reopen()
		d := e.delivery(id)
		same(e, "event id", d.EventID, "evt_1")
		same(e, "state", d.State, store.StateQueued)
		p, err := e.s.Payload(e.Context(), id)
		e.ok(err)
		same(e, "body", string(p.Body), string(a.Body))
		out := e.accept(a)[0]
		same(e, "outcome", out, store.Outcome{Kind: store.Duplicate, Delivery: id})
		same(e, "leased after the restart", e.lease(t0).Delivery.ID, id)
	}},
	{"P1", "either all events of a request are written or none", func(e *env) {
		a := arrival("stripe", "a", "b", "c")
		a.Events[1].Jobs = append(a.Events[1].Jobs, a.Events[1].Jobs[0]) // twice to one destination
		_, err := e.s.Accept(e.Context(), a)
		e.is(err, store.ErrRefused)
		same(e, "deliveries", len(e.list(store.DeliveryFilter{})), 0)
		e.idle("app", at(time.Hour))
		for _, out := range e.accept(arrival("stripe", "a", "b", "c")) {
			same(e, "the keys are not burned", out.Kind, store.Accepted)
		}
		e.sound()
	}},
	{"P1", "a refused write fails alone: the others of its batch are written", func(e *env) {
		type result struct {
			out []store.Outcome
			err error
		}
		results := make([]result, 60)
		together(len(results), func(i int) {
			a := arrival("stripe", fmt.Sprintf("evt_%d", i))
			if i%10 == 3 {
				a.Events[0].Jobs = append(a.Events[0].Jobs, a.Events[0].Jobs[0])
			}
			results[i].out, results[i].err = e.s.Accept(e.Context(), a)
		})
		for i, r := range results {
			if i%10 == 3 {
				e.is(r.err, store.ErrRefused)
				same(e, "found", len(e.list(store.DeliveryFilter{Query: fmt.Sprintf("evt_%d", i)})), 0)
				continue
			}
			e.ok(r.err)
			same(e, "event id", e.delivery(r.out[0].Delivery).EventID, fmt.Sprintf("evt_%d", i))
		}
		same(e, "queued", e.totals().Queued, 54)
		e.sound()
	}},
	{"P1", "what no engine can keep is refused, and leaves nothing", func(e *env) {
		noKey, twice, long, noID, empty := arrival("s", "a"), arrival("s", "b"), arrival("s", strings.Repeat("x", store.MaxEventID+1)), arrival("s", ""), arrival("s")
		noKey.Events[0].Jobs[0].Key = ""
		twice.Events[0].Jobs = append(twice.Events[0].Jobs, twice.Events[0].Jobs...)
		for _, a := range []store.Arrival{noKey, twice, long, noID, empty} {
			_, err := e.s.Accept(e.Context(), a)
			e.is(err, store.ErrRefused)
		}
		same(e, "deliveries", len(e.list(store.DeliveryFilter{})), 0)
		same(e, "the first number", e.accepted(arrival("s", "c")), 1)
		same(e, "queued", e.totals().Queued, 1)
		e.sound()
	}},
	{"P1", "bodies come back bit for bit: nil, empty, NUL, binary, large", func(e *env) {
		large := bytes.Repeat([]byte{0, 1, 0xff, '\n', 0x80}, 300_000)
		for i, body := range [][]byte{nil, {}, {0}, []byte("a\x00b"), {0xff, 0xfe, 0x00}, []byte("caf\u00e9 \U0001f600"), large} {
			a := arrival("s", fmt.Sprint(i))
			a.Body, a.Header = body, []byte("{\"X\":[\"\u00ff\"]}")
			id := e.accepted(a)
			p, err := e.s.Payload(e.Context(), id)
			e.ok(err)
			if !bytes.Equal(p.Body, body) || !bytes.Equal(p.Header, a.Header) || p.Method != "POST" || p.Target != a.Target || p.Part != -1 {
				e.Fatalf("body %d came back as %d bytes, method %q, target %q, part %d", i, len(p.Body), p.Method, p.Target, p.Part)
			}
			l := e.lease(t0)
			if !bytes.Equal(l.Payload.Body, body) || l.Delivery.ID != id {
				e.Fatalf("the lease of body %d has %d bytes", i, len(l.Payload.Body))
			}
		}
		e.sound()
	}},
	{"", "the caller may use its bytes again once Accept has returned", func(e *env) {
		e.accepted(arrival("s", "before"))
		e.settle(e.lease(t0), store.Delivered, t0) // a worker is there: bodies may be kept in memory from here on
		a := arrival("s", "a")
		a.Body, a.Header = []byte("first"), []byte(`{"A":["1"]}`)
		id := e.accepted(a)
		copy(a.Body, "XXXXX")
		copy(a.Header, "XXXXX")
		l := e.lease(t0)
		same(e, "body of the lease", string(l.Payload.Body), "first")
		same(e, "header of the lease", string(l.Payload.Header), `{"A":["1"]}`)
		copy(l.Payload.Body, "YYYYY")
		p, err := e.s.Payload(e.Context(), id)
		e.ok(err)
		same(e, "kept body", string(p.Body), "first")
	}},
	{"", "everything that was said about an event is read back", func(e *env) {
		a := arrival("stripe-live", "evt_1")
		ev := &a.Events[0]
		ev.Made, ev.Test, ev.Version, ev.Unit, ev.Type, ev.Resource = true, true, "17", "int", "t\u00fdpe", "r\x00s"
		a.Provider, a.Remote, a.Slot = "stripe", "2001:db8::1", 2
		a.ReceivedAt = t0.Add(7 * time.Microsecond)
		d := e.delivery(e.accepted(a))
		want := store.DeliveryHead{ID: 1, Source: "stripe-live", Provider: "stripe", EventID: "evt_1", Made: true, Test: true, Version: "17", Unit: "int",
			Type: "t\u00fdpe", Resource: "r\x00s", ReceivedAt: t0, Size: 10, Slot: 2, Part: -1}
		same(e, "head", d.DeliveryHead, want)
		same(e, "remote", d.Remote, "2001:db8::1")
		same(e, "ack time", d.AckMicros, 250)
		same(e, "key", d.Jobs[0].Key, "stripe-live:evt_1:app")
		same(e, "due", d.Jobs[0].DueAt, t0)
		same(e, "head of the lease", e.lease(t0).Delivery, want)
	}},
	{"", "the items of a batch share one request, each with its part", func(e *env) {
		a := arrival("sg", "e1", "e2", "e3")
		out := e.accept(a)
		for i, o := range out {
			same(e, "number", o.Delivery, int64(i+1))
			p, err := e.s.Payload(e.Context(), o.Delivery)
			e.ok(err)
			same(e, "part", p.Part, i)
			same(e, "body", string(p.Body), string(a.Body))
		}
		for i, l := range e.leases(e.query("app", t0)) {
			same(e, "leased in the order of the array", l.Delivery.Part, i)
			same(e, "body of the lease", string(l.Payload.Body), string(a.Body))
		}
	}},
	{"", "a filtered job is written, with its rule, and never leased", func(e *env) {
		a := to(arrival("s", "a"), "app", "crm")
		a.Events[0].Jobs[0].State, a.Events[0].Jobs[0].Note = store.Filtered, `type != "ping"`
		id := e.accepted(a)
		e.idle("app", at(time.Hour))
		d := e.delivery(id)
		same(e, "state", d.State, store.StateQueued)
		same(e, "job's state", d.Jobs[0].State, store.Filtered)
		same(e, "rule", d.Jobs[0].Note, `type != "ping"`)
		same(e, "settled", d.Jobs[0].SettledAt, t0)
	}},
	{"P6", "an event that goes nowhere is kept and shown as filtered", func(e *env) {
		id := e.accepted(to(arrival("s", "a")))
		e.state(id, store.StateFiltered)
		same(e, "found by its state", fmt.Sprint(numbers(e.list(store.DeliveryFilter{State: store.StateFiltered}))), "[1]")
		e.sound()
	}},
	{"", "numbers rise by one, and duplicates and refusals use none up", func(e *env) {
		for i := range int64(5) {
			same(e, "number", e.accepted(arrival("s", fmt.Sprint(i))), 3*i+1)
			e.accept(arrival("s", "0"))
			out := e.accept(arrival("s", fmt.Sprint("x", i), "0", fmt.Sprint("x", i), fmt.Sprint("y", i)))
			want := []store.Outcome{{Kind: store.Accepted, Delivery: 3*i + 2}, {Kind: store.Duplicate, Delivery: 1}, {Kind: store.Duplicate, Delivery: 3*i + 2}, {Kind: store.Accepted, Delivery: 3*i + 3}}
			same(e, "outcomes", fmt.Sprint(out), fmt.Sprint(want))
			twice := arrival("s", "refused")
			twice.Events[0].Jobs = append(twice.Events[0].Jobs, twice.Events[0].Jobs[0])
			_, err := e.s.Accept(e.Context(), twice)
			e.is(err, store.ErrRefused)
		}
		same(e, "highest number", e.totals().Deliveries, 15)
		e.sound()
	}},
	{"P2", "a request let in late keeps the time it came in; its key and its jobs count from now", func(e *env) {
		a := arrival("stripe", "evt_1")
		a.At = at(72 * time.Hour)
		id := e.accepted(a)
		e.reopen()
		same(e, "received", e.delivery(id).ReceivedAt, a.ReceivedAt)
		same(e, "due", e.delivery(id).Jobs[0].DueAt, at(72*time.Hour))
		repeat := arrival("stripe", "evt_1")
		repeat.ReceivedAt = a.At.Add(a.Events[0].Window - time.Second)
		same(e, "within the window", e.accept(repeat)[0], store.Outcome{Kind: store.Duplicate, Delivery: id})
		same(e, "last duplicate", e.delivery(id).LastDuplicateAt, repeat.ReceivedAt)
		repeat.ReceivedAt = a.At.Add(a.Events[0].Window)
		same(e, "after it", e.accept(repeat)[0].Kind, store.Accepted)
		e.sound()
	}},
}
