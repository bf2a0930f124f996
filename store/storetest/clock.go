package storetest

import (
	"time"

	"acuse/store"
)

var clockTests = []test{
	{"", "a shift moves due times, ages and deadlines, and nothing that is settled", func(e *env) {
		for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour, 25 * time.Hour, -25 * time.Hour, t0.Sub(time.Unix(0, 0)), -t0.Sub(time.Unix(60, 0))} {
			e := &env{T: e.T, dir: e.TempDir(), open: e.open}
			e.start()
			settled := e.accepted(arrival("s", "settled"))
			e.settle(e.lease(t0), store.Delivered, t0)
			waiting := e.accepted(arrival("s", "waiting"))
			e.settle(e.lease(t0), store.Queued, t0) // due 10 s later
			leased := e.accepted(arrival("s", "leased"))
			l := e.lease(t0) // until a minute later
			before := e.delivery(settled)

			e.ok(e.s.Shift(e.Context(), by))
			now := at(by)
			same(e, "due", e.delivery(waiting).Jobs[0].DueAt, now.Add(10*time.Second))
			same(e, "deadline", e.delivery(leased).Jobs[0].LeaseUntil, now.Add(time.Minute))
			same(e, "settled", e.delivery(settled).Jobs[0].SettledAt, before.Jobs[0].SettledAt)
			same(e, "received", e.delivery(waiting).ReceivedAt, t0)
			expired, err := e.s.Expire(e.Context(), now.Add(59*time.Second))
			e.ok(err)
			same(e, "leases that ran out", len(expired), 0)
			e.idle("app", now.Add(9*time.Second))
			q := e.query("app", now.Add(10*time.Second))
			q.MaxAge = time.Minute
			list := e.leases(q)
			if len(list) != 1 || list[0].Delivery.ID != waiting {
				e.Fatalf("shifted by %v: leased %+v, want #%d, which is not too old", by, list, waiting)
			}
			e.settle(l, store.Delivered, now)
			e.sound()
		}
	}},
}
