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
			e.lease(t0) // until a minute later
			before := e.delivery(settled)

			e.ok(e.s.Shift(e.Context(), t0, by))
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
			q.TTL = 10 * time.Second
			list := e.leases(q)
			if len(list) != 1 || list[0].Delivery.ID != waiting {
				e.Fatalf("shifted by %v: leased %+v, want #%d, which is not too old", by, list, waiting)
			}
			expired, err = e.s.Expire(e.Context(), now.Add(61*time.Second))
			e.ok(err)
			same(e, "leases that ran out later", expired["app"], 2)
			q.Now = now.Add(62 * time.Second)
			q.MaxAge = 2 * time.Minute
			same(e, "none is too old", len(e.leases(q)), 2)
			e.sound()
		}
	}},
	{"", "a shift leaves alone what was written in another time: a machine that starts in 1970", func(e *env) {
		old := e.accepted(arrival("s", "old"))
		e.settle(e.lease(t0), store.Queued, t0) // due 10 s after t0
		boot := time.Unix(20, 0).UTC()
		a := arrival("s", "new")
		a.ReceivedAt = boot
		e.accepted(a)
		e.settle(e.leases(e.query("app", boot))[0], store.Queued, boot)
		e.ok(e.s.Shift(e.Context(), boot.Add(5*time.Second), at(time.Hour).Sub(boot)))
		same(e, "what the earlier run wrote", e.delivery(old).Jobs[0].DueAt, at(10*time.Second))
		same(e, "what this one wrote", e.delivery(old + 1).Jobs[0].DueAt, at(time.Hour+10*time.Second))
	}},
}
