package storetest

import (
	"fmt"
	"slices"
	"time"

	"acuse/store"
)

// filled has a delivery for each thing a filter can ask for.
func (e *env) filled() map[string]int64 {
	e.Helper()
	id := map[string]int64{}
	add := func(name string, a store.Arrival) int64 { id[name] = e.accepted(a); return id[name] }
	work := func(name, source, destination string, f func(l store.Lease)) {
		add(name, to(arrival(source, name), destination))
		f(e.leases(e.query(destination, t0))[0])
	}
	settle := func(state store.JobState, status int, class string) func(l store.Lease) {
		return func(l store.Lease) {
			s := outcome(l, state, t0)
			s.Result.Status, s.Result.Class = status, class
			s.Due = at(time.Hour)
			e.ok(e.s.Settle(e.Context(), s))
		}
	}
	work("delivered", "s", "app", settle(store.Delivered, 204, ""))
	work("dead", "s", "app", settle(store.Dead, 500, "status"))
	work("retrying", "t", "app", settle(store.Queued, 0, "timeout"))
	work("refused", "t", "crm", settle(store.Dead, 0, "refused"))
	work("leased", "s", "crm", func(store.Lease) {})
	add("cancelled", arrival("t", "cancelled"))
	_, err := e.s.Cancel(e.Context(), id["cancelled"], "", ana, t0)
	e.ok(err)
	filtered := arrival("s", "filtered")
	filtered.Events[0].Jobs[0].State = store.Filtered
	filtered.Events[0].Type, filtered.Events[0].Resource = "ping", "in_99"
	add("filtered", filtered)
	id["quarantined"] = e.quarantined("s")
	add("repeated", to(later(arrival("t", "repeated"), time.Minute), "agent"))
	e.accept(later(arrival("t", "repeated"), 2*time.Minute))
	work("resent", "s", "agent2", settle(store.Delivered, 200, ""))
	_, err = e.resend(id["resent"], t0)
	e.ok(err)
	return id
}

var archiveTests = []test{
	{"", "a filter lists what it names, newest first", func(e *env) {
		id := e.filled()
		for _, c := range []struct {
			f    store.DeliveryFilter
			want []string
		}{
			{store.DeliveryFilter{}, []string{"resent", "repeated", "quarantined", "filtered", "cancelled", "leased", "refused", "retrying", "dead", "delivered"}},
			{store.DeliveryFilter{Source: "t"}, []string{"repeated", "cancelled", "refused", "retrying"}},
			{store.DeliveryFilter{Source: "unknown"}, nil},
			{store.DeliveryFilter{State: store.StateDelivered}, []string{"delivered"}},
			{store.DeliveryFilter{State: store.StateDead}, []string{"refused", "dead"}},
			{store.DeliveryFilter{State: store.StateDead, Source: "t"}, []string{"refused"}},
			{store.DeliveryFilter{State: store.StateDead, Destination: "app"}, []string{"dead"}},
			{store.DeliveryFilter{State: store.StateQueued}, []string{"resent", "repeated", "retrying"}},
			{store.DeliveryFilter{State: store.StateQueued, Destination: "app"}, []string{"retrying"}},
			{store.DeliveryFilter{State: store.StateLeased}, []string{"leased"}},
			{store.DeliveryFilter{State: store.StateCancelled}, []string{"cancelled"}},
			{store.DeliveryFilter{State: store.StateFiltered}, []string{"filtered"}},
			{store.DeliveryFilter{State: store.StateSuperseded}, nil},
			{store.DeliveryFilter{State: store.StateQuarantined}, []string{"quarantined"}},
			{store.DeliveryFilter{State: "no such state"}, nil},
			{store.DeliveryFilter{Destination: "crm"}, []string{"leased", "refused"}},
			{store.DeliveryFilter{Destination: "unknown"}, nil},
			{store.DeliveryFilter{Type: "ping"}, []string{"filtered"}},
			{store.DeliveryFilter{Answer: "2xx"}, []string{"resent", "delivered"}},
			{store.DeliveryFilter{Answer: "5xx"}, []string{"dead"}},
			{store.DeliveryFilter{Answer: "timeout"}, []string{"retrying"}},
			{store.DeliveryFilter{Answer: "refused"}, []string{"refused"}},
			{store.DeliveryFilter{Duplicates: true}, []string{"repeated"}},
			{store.DeliveryFilter{Resent: true}, []string{"resent"}},
			{store.DeliveryFilter{Failing: true}, []string{"retrying"}},
			{store.DeliveryFilter{Failing: true, Source: "s"}, nil},
			{store.DeliveryFilter{Since: at(time.Minute)}, []string{"repeated"}},
			{store.DeliveryFilter{Until: at(time.Minute), Source: "t"}, []string{"cancelled", "refused", "retrying"}},
			{store.DeliveryFilter{Since: at(time.Minute), Until: at(time.Minute)}, nil},
			{store.DeliveryFilter{Query: "dead"}, []string{"dead"}},
			{store.DeliveryFilter{Query: fmt.Sprint(id["dead"])}, []string{"dead"}},
			{store.DeliveryFilter{Query: fmt.Sprint("#", id["dead"])}, []string{"dead"}},
			{store.DeliveryFilter{Query: "s:dead:app"}, []string{"dead"}},
			{store.DeliveryFilter{Query: "s:dead:crm"}, nil},
			{store.DeliveryFilter{Query: "in_99"}, []string{"filtered"}},
			{store.DeliveryFilter{Query: "ping"}, []string{"filtered"}},
			{store.DeliveryFilter{Query: "dead", Source: "t"}, nil},
			{store.DeliveryFilter{Query: "dea"}, nil},
			{store.DeliveryFilter{Query: "%"}, nil},
		} {
			var want []int64
			for _, name := range c.want {
				want = append(want, id[name])
			}
			if got := numbers(e.list(c.f)); !slices.Equal(got, want) {
				e.Errorf("%+v: got %v, want %v %v", c.f, got, want, c.want)
			}
		}
	}},
	{"", "pages follow each other without gap or repeat, both ways", func(e *env) {
		for i := range 25 {
			e.accepted(arrival([]string{"s", "t"}[i%2], fmt.Sprint(i)))
		}
		for _, f := range []store.DeliveryFilter{{Limit: 4}, {Limit: 4, Source: "s"}, {Limit: 3, State: store.StateQueued}, {Limit: 7, Type: "invoice.paid"}, {Limit: 13, Query: "in_1"}, {Limit: 25}} {
			whole := f
			whole.Limit = 500
			want := numbers(e.list(whole))
			var down []int64
			for f.Before = 0; ; {
				list, next, err := e.s.Deliveries(e.Context(), f)
				e.ok(err)
				down = append(down, numbers(list)...)
				if f.Before = next; next == 0 {
					break
				}
			}
			same(e, fmt.Sprintf("%+v down", f), fmt.Sprint(down), fmt.Sprint(want))
			var up []int64
			for f.After = down[len(down)-1]; ; {
				list, next, err := e.s.Deliveries(e.Context(), f)
				e.ok(err)
				up = append(numbers(list), up...)
				if f.After = next; next == 0 {
					break
				}
			}
			same(e, fmt.Sprintf("%+v up", f), fmt.Sprint(up), fmt.Sprint(want[:len(want)-1]))
		}
	}},
	{"", "a list is a hundred long unless it says otherwise, five hundred at most", func(e *env) {
		for i := range 6 {
			ids := make([]string, 100)
			for k := range ids {
				ids[k] = fmt.Sprint(i, "-", k)
			}
			e.accept(arrival("s", ids...))
		}
		for limit, want := range map[int]int{0: 100, -1: 100, 250: 250, 500: 500, 5000: 500} {
			list, next, err := e.s.Deliveries(e.Context(), store.DeliveryFilter{Limit: limit})
			e.ok(err)
			same(e, fmt.Sprint("limit ", limit), len(list), want)
			same(e, "next", next, int64(601-want))
		}
	}},
	{"", "neighbours are the nearest that match", func(e *env) {
		for i := range 10 {
			e.accepted(arrival([]string{"s", "t"}[i%2], fmt.Sprint(i)))
		}
		for _, c := range []struct {
			id           int64
			f            store.DeliveryFilter
			older, newer int64
		}{
			{5, store.DeliveryFilter{}, 4, 6},
			{5, store.DeliveryFilter{Source: "s"}, 3, 7},
			{5, store.DeliveryFilter{Source: "t", State: store.StateQueued}, 4, 6},
			{1, store.DeliveryFilter{Source: "s"}, 0, 3},
			{10, store.DeliveryFilter{}, 9, 0},
			{5, store.DeliveryFilter{State: store.StateDead}, 0, 0},
			{5, store.DeliveryFilter{Query: "9"}, 0, 9},
		} {
			older, newer, err := e.s.Neighbours(e.Context(), c.id, c.f)
			e.ok(err)
			same(e, fmt.Sprintf("%d %+v", c.id, c.f), fmt.Sprint(older, newer), fmt.Sprint(c.older, c.newer))
		}
	}},
	{"", "dead letters are grouped by where and how they ended", func(e *env) {
		end := func(id, destination string, status int, class string, when time.Duration) {
			e.accepted(to(arrival("s", id), destination))
			s := outcome(e.leases(e.query(destination, t0))[0], store.Dead, at(when))
			s.Result.Status, s.Result.Class = status, class
			e.ok(e.s.Settle(e.Context(), s))
		}
		end("a", "app", 500, "status", 3*time.Minute)
		end("b", "app", 500, "status", time.Minute)
		end("c", "app", 0, "timeout", 2*time.Minute)
		end("d", "crm", 500, "status", 4*time.Minute)
		groups, err := e.s.DeadGroups(e.Context())
		e.ok(err)
		want := []store.DeadGroup{
			{Destination: "crm", Reason: store.Exhausted, Status: 500, Class: "status", Jobs: 1, First: at(4 * time.Minute), Last: at(4 * time.Minute)},
			{Destination: "app", Reason: store.Exhausted, Status: 500, Class: "status", Jobs: 2, First: at(time.Minute), Last: at(3 * time.Minute)},
			{Destination: "app", Reason: store.Exhausted, Class: "timeout", Jobs: 1, First: at(2 * time.Minute), Last: at(2 * time.Minute)},
		}
		same(e, "groups, the latest first", fmt.Sprint(groups), fmt.Sprint(want))
	}},
	{"", "what is not there is not found", func(e *env) {
		_, err := e.s.Delivery(e.Context(), 1)
		e.is(err, store.ErrNotFound)
		_, err = e.s.Payload(e.Context(), 1)
		e.is(err, store.ErrNotFound)
		list, err := e.s.Attempts(e.Context(), 1)
		e.ok(err)
		same(e, "attempts", len(list), 0)
		_, ok, err := e.s.NextDue(e.Context(), "app")
		e.ok(err)
		same(e, "due", ok, false)
		_, ok, err = e.s.NextDeadline(e.Context())
		e.ok(err)
		same(e, "deadline", ok, false)
		same(e, "totals", fmt.Sprint(e.totals()), fmt.Sprint(store.Totals{ByDestination: map[string]store.LaneTotals{}}))
	}},
}
