package storetest

import (
	"fmt"
	"time"

	"acuse/store"
)

var outageTests = []test{
	{"", "the end of an outage makes due what waits because of it, and only that", func(e *env) {
		type way struct {
			status int
			class  string
			frees  bool
		}
		ways := []way{
			{429, "status", true}, {502, "status", true}, {503, "status", true}, {504, "status", true},
			{0, "refused", true}, {0, "timeout", true}, {0, "dns_failed", true}, {200, "reset", true},
			{500, "status", false}, {404, "status", false}, {301, "redirect", false}, {0, "compose", false}, {0, "panic", false},
		}
		ids := map[int64]way{}
		for i, w := range ways {
			id := e.accepted(arrival("s", fmt.Sprint(i)))
			s := outcome(e.lease(t0), store.Queued, t0)
			s.Result.Status, s.Result.Class, s.Due = w.status, w.class, at(time.Hour)
			e.ok(e.s.Settle(e.Context(), s))
			ids[id] = w
		}
		other := e.accepted(to(arrival("s", "other"), "crm"))
		l := e.leases(e.query("crm", t0))[0]
		s := outcome(l, store.Queued, t0)
		s.Result.Status, s.Due = 503, at(time.Hour)
		e.ok(e.s.Settle(e.Context(), s))

		n, err := e.s.EndOutage(e.Context(), "app", at(time.Minute))
		e.ok(err)
		same(e, "freed", n, 8)
		e.reopen()
		for id, w := range ids {
			want := at(time.Hour)
			if w.frees {
				want = at(time.Minute)
			}
			j := e.delivery(id).Jobs[0]
			same(e, fmt.Sprintf("due after %d %s", w.status, w.class), j.DueAt, want)
			same(e, "attempts", j.Spent, 1)
		}
		same(e, "another destination's", e.delivery(other).Jobs[0].DueAt, at(time.Hour))
		same(e, "leased", len(e.leases(e.query("app", at(time.Minute)))), 8)
		n, err = e.s.EndOutage(e.Context(), "unheard of", t0)
		e.ok(err)
		same(e, "of a name that no job has", n, 0)
	}},
	{"", "the end of an outage frees more jobs than one transaction takes, and none that is leased, settled or waits for its turn", func(e *env) {
		const many = 1203
		for i := range many {
			e.accepted(arrival("s", fmt.Sprint(i)))
		}
		for left := many; left > 0; {
			q := e.query("app", t0)
			q.Max = 500
			for _, l := range e.leases(q) {
				s := outcome(l, store.Queued, t0)
				s.Result.Status, s.Due = 503, at(time.Hour+time.Duration(left)*time.Second)
				e.ok(e.s.Settle(e.Context(), s))
				left--
			}
		}
		head := e.accepted(ordered(arrival("s", "head"), "r", false))
		behind := e.accepted(ordered(arrival("s", "behind"), "r", false))
		held := e.lease(t0)
		same(e, "the head is leased", held.Delivery.ID, head)
		n, err := e.s.EndOutage(e.Context(), "app", at(time.Minute))
		e.ok(err)
		same(e, "freed", n, many)
		same(e, "still waits for its turn", e.job(behind).Waits, true)
		e.settle(held, store.Delivered, at(time.Minute))
		q := e.query("app", at(time.Minute))
		q.Max = 2 * many
		same(e, "leased", len(e.leases(q)), many+1)
	}},
}
