package storetest

import (
	"fmt"
	"slices"
	"time"

	"acuse/store"
)

// ordered gives the jobs of an arrival's events an order.
func ordered(a store.Arrival, value string, strict bool) store.Arrival {
	for i := range a.Events {
		for k := range a.Events[i].Jobs {
			a.Events[i].Jobs[k].Order, a.Events[i].Jobs[k].Strict = value, strict
		}
	}
	return a
}

// lined accepts n events of one order, a second apart, and returns their deliveries.
func (e *env) lined(n int, value string, strict bool) (ids []int64) {
	e.Helper()
	for i := range n {
		ids = append(ids, e.accepted(later(ordered(arrival("s", fmt.Sprint(value, i)), value, strict), time.Duration(i)*time.Second)))
	}
	return ids
}

// turnOf leases the one job of app that may be leased and wants it to be the delivery's.
func (e *env) turnOf(delivery int64, now time.Time) store.Lease {
	e.Helper()
	l := e.lease(now)
	same(e, "delivery whose turn it is", l.Delivery.ID, delivery)
	e.idle("app", now)
	return l
}

func (e *env) resent(id int64, now time.Time) {
	e.Helper()
	_, err := e.resend(id, now)
	e.ok(err)
}

func (e *env) job(delivery int64) store.Job { e.Helper(); return e.delivery(delivery).Jobs[0] }

func (e *env) line(delivery int64) store.Line {
	e.Helper()
	l, err := e.s.Line(e.Context(), e.job(delivery).ID)
	e.ok(err)
	return l
}

var orderTests = []test{
	{"", "jobs of one order go one at a time, by delivery number, and each is due when the one before it is through", func(e *env) {
		ids := e.lined(3, "a", false)
		for i, id := range ids {
			l := e.turnOf(id, at(time.Duration(i+1)*time.Minute))
			e.settle(l, store.Delivered, at(time.Duration(i+1)*time.Minute))
		}
		e.idle("app", at(time.Hour))
		e.sound()
	}},
	{"", "other orders, other destinations and jobs without an order are not held up", func(e *env) {
		e.lined(2, "a", false)
		b := e.lined(2, "b", false)
		none := e.accepted(arrival("s", "none"))
		e.accepted(ordered(to(arrival("s", "crm"), "crm"), "a", false))
		got := []int64{}
		for _, l := range e.leases(e.query("app", at(time.Minute))) {
			got = append(got, l.Delivery.ID)
		}
		same(e, "leased", fmt.Sprint(got), fmt.Sprint([]int64{1, b[0], none}))
		same(e, "of the other destination", len(e.leases(e.query("crm", at(time.Minute)))), 1)
	}},
	{"", "a head that waits for its retry blocks its own order only, and keeps its turn", func(e *env) {
		ids := e.lined(2, "a", false)
		e.settle(e.turnOf(ids[0], at(time.Minute)), store.Queued, at(time.Minute))
		e.idle("app", at(time.Minute+9*time.Second))
		next, ok, err := e.s.NextDue(e.Context(), "app")
		e.ok(err)
		same(e, "next due", fmt.Sprint(next, ok), fmt.Sprint(at(time.Minute+10*time.Second), true))
		b := e.lined(1, "b", false)
		e.turnOf(b[0], at(time.Minute))
		l := e.turnOf(ids[0], at(2*time.Minute))
		same(e, "attempt", l.Attempt, 2)
	}},
	{"", "while the head is leased nothing of its order is due, and a lost lease keeps the turn", func(e *env) {
		ids := e.lined(2, "a", false)
		old := e.turnOf(ids[0], at(time.Minute))
		_, ok, err := e.s.NextDue(e.Context(), "app")
		e.ok(err)
		same(e, "something is due", ok, false)
		_, err = e.s.Expire(e.Context(), at(time.Hour))
		e.ok(err)
		cur := e.turnOf(ids[0], at(time.Hour))
		e.is(e.s.Settle(e.Context(), outcome(old, store.Delivered, at(time.Hour))), store.ErrLeaseLost)
		e.settle(cur, store.Delivered, at(time.Hour))
		e.turnOf(ids[1], at(time.Hour))
	}},
	{"", "a dead letter lets the next one go on", func(e *env) {
		ids := e.lined(2, "a", false)
		e.settle(e.turnOf(ids[0], at(time.Minute)), store.Dead, at(time.Minute))
		e.turnOf(ids[1], at(time.Minute))
	}},
	{"", "a strict dead letter blocks its order until a person resends or cancels it, or retention removes it", func(e *env) {
		for _, act := range []string{"resend", "cancel", "purge"} {
			ids := e.lined(2, act, true)
			e.settle(e.turnOf(ids[0], at(time.Minute)), store.Dead, at(time.Minute))
			e.idle("app", at(time.Hour))
			same(e, "head", e.line(ids[1]).Head.State, store.Dead)
			now := at(2 * time.Hour)
			switch act {
			case "resend": // it goes to the end, so the one behind it is first
				e.resent(ids[0], now)
				e.settle(e.turnOf(ids[1], now), store.Delivered, now)
				e.settle(e.turnOf(ids[0], now), store.Delivered, now)
				continue
			case "cancel":
				_, err := e.s.Cancel(e.Context(), ids[0], "", ana, now)
				e.ok(err)
			case "purge":
				now = at(100 * day)
				_, err := e.s.Purge(e.Context(), store.PurgeRule{Now: now, Age: 30 * day, DeadAge: 90 * day})
				e.ok(err)
			}
			e.settle(e.turnOf(ids[1], now), store.Delivered, now)
			e.sound()
		}
	}},
	{"", "a job whose worker died too often, or which is too old, gives its turn to the next within the same lease", func(e *env) {
		ids := e.lined(3, "a", false)
		l := e.turnOf(ids[0], at(time.Minute))
		_, err := e.s.Expire(e.Context(), at(time.Hour))
		e.ok(err)
		q := e.query("app", at(time.Hour))
		q.Budget = 1
		list := e.leases(q)
		same(e, "leased", len(list), 1)
		same(e, "delivery", list[0].Delivery.ID, ids[1])
		same(e, "state", e.job(l.Delivery.ID).State, store.Dead)
		e.settle(list[0], store.Delivered, at(time.Hour))
		q = e.query("app", at(3*time.Hour))
		q.MaxAge = time.Hour
		same(e, "leased", len(e.leases(q)), 0)
		same(e, "reason", e.job(ids[2]).Reason, store.TooOld)
	}},
	{"", "a resent job goes to the end of its order and says so; later events stay behind it", func(e *env) {
		ids := e.lined(3, "a", false)
		e.resent(ids[0], at(time.Minute))
		after := e.accepted(later(ordered(arrival("s", "after"), "a", false), time.Minute))
		same(e, "moved", e.job(ids[0]).Moved, true)
		same(e, "not moved", e.job(ids[1]).Moved, false)
		for _, id := range []int64{ids[1], ids[2], ids[0], after} {
			e.settle(e.turnOf(id, at(time.Hour)), store.Delivered, at(time.Hour))
		}
	}},
	{"", "two that are resent keep the order of the resends, and another click moves none of them", func(e *env) {
		ids := e.lined(3, "a", false)
		e.resent(ids[1], at(time.Minute))
		e.resent(ids[0], at(2*time.Minute))
		out, err := e.s.Resend(e.Context(), store.Resend{Delivery: ids[1], By: ana, At: at(3 * time.Minute)})
		e.ok(err)
		same(e, "queued already", out.AlreadyQueued, true)
		for _, id := range []int64{ids[2], ids[1], ids[0]} {
			e.settle(e.turnOf(id, at(time.Hour)), store.Delivered, at(time.Hour))
		}
	}},
	{"", "a revived job goes to the end of its order", func(e *env) {
		ids := e.lined(3, "a", false)
		e.settle(e.turnOf(ids[0], at(time.Minute)), store.Dead, at(time.Minute))
		same(e, "revived", e.accept(later(revive(ordered(arrival("s", "a0"), "a", false)), 2*time.Minute))[0].Revived, true)
		same(e, "moved", e.job(ids[0]).Moved, true)
		for _, id := range []int64{ids[1], ids[2], ids[0]} {
			e.settle(e.turnOf(id, at(time.Hour)), store.Delivered, at(time.Hour))
		}
	}},
	{"", "cancelling a job takes it out of its order, wherever it stands", func(e *env) {
		ids := e.lined(4, "a", false)
		for _, id := range []int64{ids[2], ids[0]} {
			_, err := e.s.Cancel(e.Context(), id, "", ana, at(time.Minute))
			e.ok(err)
		}
		e.settle(e.turnOf(ids[1], at(time.Minute)), store.Delivered, at(time.Minute))
		e.settle(e.turnOf(ids[3], at(time.Minute)), store.Delivered, at(time.Minute))
	}},
	{"", "a job released from quarantine takes its place by its number among those that wait", func(e *env) {
		e.lined(1, "a", false)
		held := arrival("s", "")
		held.Events[0].Quarantine, held.Events[0].Jobs = "no id", nil
		id := e.accept(held)[0].Delivery
		after := e.accepted(ordered(arrival("s", "after"), "a", false))
		_, err := e.s.Release(e.Context(), id, ordered(arrival("s", "late"), "a", false).Events[0], ana, at(time.Minute))
		e.ok(err)
		for _, id := range []int64{1, id, after} {
			e.settle(e.turnOf(id, at(time.Hour)), store.Delivered, at(time.Hour))
		}
	}},
	{"", "a filtered job is in no order until it is resent", func(e *env) {
		a := ordered(arrival("s", "f"), "a", true)
		a.Events[0].Jobs[0].State, a.Events[0].Jobs[0].Note = store.Filtered, "type == 'x'"
		f := e.accepted(a)
		ids := e.lined(1, "a", true)
		e.settle(e.turnOf(ids[0], at(time.Minute)), store.Delivered, at(time.Minute))
		_, err := e.s.Line(e.Context(), e.job(f).ID)
		e.is(err, store.ErrNotFound)
		e.resent(f, at(time.Minute))
		same(e, "rule", e.job(f).Note, "type == 'x'")
		e.turnOf(f, at(time.Minute))
	}},
	{"P6", "a job that is parked because its rule failed is a dead letter that no repeat revives, and a person can resend", func(e *env) {
		a := ordered(arrival("s", "p"), "a", false)
		a.Events[0].Jobs[0].State, a.Events[0].Jobs[0].Note = store.Dead, "body.x > 1"
		id := e.accepted(a)
		e.lined(1, "a", false)
		e.state(id, store.StateDead)
		groups, err := e.s.DeadGroups(e.Context())
		e.ok(err)
		same(e, "groups", fmt.Sprint(len(groups), groups[0].Reason, groups[0].Class, groups[0].Jobs), fmt.Sprint(1, store.RefusedByApp, "rule", 1))
		same(e, "revived", e.accept(revive(a))[0].Revived, false)
		same(e, "dead", e.totals().Dead, 1)
		e.settle(e.lease(t0), store.Delivered, t0)
		e.resent(id, at(time.Minute))
		same(e, "rule", e.job(id).Note, "body.x > 1")
		e.turnOf(id, at(time.Minute))
		e.sound()
	}},
	{"", "a delivery resent as new is in the order of the first one, at its end", func(e *env) {
		ids := e.lined(2, "a", false)
		out, err := e.s.Resend(e.Context(), store.Resend{Delivery: ids[0], AsNew: true, By: ana, At: at(time.Minute),
			NewKeys: func(id, d string) string { return id + d }})
		e.ok(err)
		for _, id := range []int64{ids[0], ids[1], out.Delivery} {
			e.settle(e.turnOf(id, at(time.Hour)), store.Delivered, at(time.Hour))
		}
	}},
	{"", "the order survives a restart and a move of the clock", func(e *env) {
		ids := e.lined(3, "a", true)
		e.settle(e.turnOf(ids[0], at(time.Minute)), store.Dead, at(time.Minute))
		e.reopen()
		e.ok(e.s.Shift(e.Context(), at(time.Minute), time.Hour))
		e.idle("app", at(2*time.Hour))
		e.resent(ids[0], at(2*time.Hour))
		for _, id := range []int64{ids[1], ids[2], ids[0]} {
			e.settle(e.turnOf(id, at(2*time.Hour)), store.Delivered, at(2*time.Hour))
			e.reopen()
		}
	}},
	{"", "where a job stands is told, and who holds it up since when", func(e *env) {
		ids := e.lined(4, "a", false)
		l := e.line(ids[2])
		same(e, "ahead", l.Ahead, 2)
		same(e, "head", fmt.Sprintf("%+v", l.Head), fmt.Sprintf("%+v", store.Head{Job: e.job(ids[0]).ID, Delivery: ids[0], Destination: "app", Order: "a",
			State: store.Queued, Since: t0, DueAt: t0, Behind: 3}))
		same(e, "waits", e.job(ids[2]).Waits, true)
		same(e, "due", e.job(ids[2]).DueAt.IsZero(), true)
		e.settle(e.turnOf(ids[0], at(time.Minute)), store.Delivered, at(time.Minute))
		l = e.line(ids[1])
		same(e, "ahead of the next", l.Ahead, 0)
		same(e, "its turn came", fmt.Sprint(l.Head.Since, e.job(ids[1]).TurnAt), fmt.Sprint(at(time.Minute), at(time.Minute)))
	}},
	{"", "heads are those that hold up others since a while", func(e *env) {
		a := e.lined(2, "a", false)
		e.lined(1, "alone", false)
		b := e.lined(3, "b", true)
		heads := func(since time.Time) (list []int64) {
			all, err := e.s.Heads(e.Context(), since, 10)
			e.ok(err)
			for _, h := range all {
				list = append(list, h.Delivery)
			}
			return list
		}
		e.settle(e.leases(e.query("app", at(time.Minute)))[0], store.Delivered, at(time.Minute)) // a0
		same(e, "at the time", fmt.Sprint(heads(t0)), fmt.Sprint([]int64{b[0]}))
		same(e, "a is alone now", fmt.Sprint(heads(at(time.Hour))), fmt.Sprint([]int64{b[0]}))
		e.accepted(later(ordered(arrival("s", "a9"), "a", false), time.Minute))
		same(e, "both", fmt.Sprint(heads(at(time.Hour))), fmt.Sprint([]int64{b[0], a[1]}))
		few, err := e.s.Heads(e.Context(), at(time.Hour), 1)
		e.ok(err)
		same(e, "at most", len(few), 1)
	}},
	{"", "of many workers at once never two have jobs of one order", func(e *env) {
		const values, each = 5, 12
		for i := range values * each {
			e.accepted(ordered(arrival("s", fmt.Sprint(i)), fmt.Sprint("o", i%values), false))
		}
		got := make([][]int64, values)
		together(values*2, func(worker int) {
			for range 1000 {
				q := e.query("app", at(time.Minute))
				q.Max = 2
				list, err := e.s.Lease(e.Context(), q)
				if err != nil {
					e.Error(err)
					return
				}
				for _, l := range list {
					// No lock: whoever else were in this order would race here.
					n := (l.Delivery.ID - 1) % values
					got[n] = append(got[n], l.Delivery.ID)
					if err := e.s.Settle(e.Context(), outcome(l, store.Delivered, at(time.Minute))); err != nil {
						e.Error(err)
					}
				}
			}
		})
		for n, list := range got {
			if len(list) != each || !slices.IsSorted(list) {
				e.Errorf("order %d: %v", n, list)
			}
		}
	}},
}

// versioned is an event with a version that replaces earlier ones.
func versioned(id, resource, kind, unit, version string) store.Arrival {
	a := arrival("s", id)
	ev := &a.Events[0]
	ev.Resource, ev.Type, ev.Unit, ev.Version, ev.Jobs[0].Latest = resource, kind, unit, version, true
	return a
}

var versionTests = []test{
	{"P6", "a queued job is superseded by a later delivery of the same source, resource and type with a greater version, and says by which", func(e *env) {
		first := e.accepted(versioned("a", "r", "t", "int", "9"))
		second := e.accepted(later(versioned("b", "r", "t", "int", "10"), time.Minute))
		e.state(first, store.StateSuperseded)
		j := e.job(first)
		same(e, "by", j.SupersededBy, second)
		same(e, "settled", j.SettledAt, at(time.Minute))
		same(e, "next", e.lease(at(time.Hour)).Delivery.ID, second)
		e.sound()
	}},
	{"P6", "nothing else supersedes: another source, resource, type or unit, an equal, lower, missing or unreadable version", func(e *env) {
		first := e.accepted(versioned("a", "r", "t", "int", "9"))
		other := versioned("b", "r", "t", "int", "10")
		other.Source = "s2"
		e.accepted(other)
		for i, a := range []store.Arrival{
			versioned("", "r2", "t", "int", "10"), versioned("", "r", "t2", "int", "10"), versioned("", "r", "t", "s", "10"),
			versioned("", "r", "t", "int", "9"), versioned("", "r", "t", "int", "8"), versioned("", "r", "t", "int", ""), versioned("", "", "t", "int", "10"),
			versioned("", "r", "t", "int", "evt_10"), versioned("", "r", "t", "", "10"), versioned("", "r", "t", "rfc3339", "10"),
		} {
			a.Events[0].ID = fmt.Sprint("e", i)
			e.accepted(a)
			e.state(first, store.StateQueued)
		}
		not := versioned("not", "r", "t", "int", "99")
		not.Events[0].Jobs[0].Latest = false
		e.accepted(not)
		e.state(first, store.StateQueued)
	}},
	{"P6", "an older version that arrives late neither supersedes the newer one nor is superseded by it", func(e *env) {
		newer := e.accepted(versioned("a", "r", "t", "int", "10"))
		older := e.accepted(versioned("b", "r", "t", "int", "9"))
		e.state(newer, store.StateQueued)
		e.state(older, store.StateQueued)
		e.accepted(versioned("c", "r", "t", "int", "11")) // both are earlier deliveries, and lower
		e.state(newer, store.StateSuperseded)
		e.state(older, store.StateSuperseded)
	}},
	{"P6", "a leased or finished job is not superseded; one whose lease ran out is, and its worker has lost it", func(e *env) {
		done := e.accepted(versioned("a", "r", "t", "int", "1"))
		e.settle(e.lease(t0), store.Delivered, t0)
		leased := e.accepted(versioned("b", "r", "t", "int", "2"))
		l := e.lease(t0)
		e.accepted(versioned("c", "r", "t", "int", "3"))
		e.state(done, store.StateDelivered)
		e.state(leased, store.StateLeased)
		_, err := e.s.Expire(e.Context(), at(time.Hour))
		e.ok(err)
		e.accepted(versioned("d", "r", "t", "int", "4"))
		e.state(leased, store.StateSuperseded)
		e.is(e.s.Settle(e.Context(), outcome(l, store.Delivered, at(time.Hour))), store.ErrLeaseLost)
	}},
	{"P6", "a job that waits for its retry is superseded; a filtered newer version supersedes nothing", func(e *env) {
		first := e.accepted(versioned("a", "r", "t", "int", "1"))
		e.settle(e.lease(t0), store.Queued, t0)
		filtered := versioned("f", "r", "t", "int", "5")
		filtered.Events[0].Jobs[0].State = store.Filtered
		e.accepted(filtered)
		e.state(first, store.StateQueued)
		e.accepted(versioned("b", "r", "t", "int", "2"))
		e.state(first, store.StateSuperseded)
	}},
	{"P6", "within one request the later items supersede the earlier ones", func(e *env) {
		a := arrival("s", "a", "b", "c")
		for i := range a.Events {
			ev := &a.Events[i]
			ev.Resource, ev.Unit, ev.Version, ev.Jobs[0].Latest = "r", "rfc3339", fmt.Sprintf("2026-01-0%dT00:00:00Z", i+1), true
		}
		out := e.accept(a)
		for i, want := range []int64{out[1].Delivery, out[2].Delivery, 0} {
			same(e, "superseded by", e.job(out[i].Delivery).SupersededBy, want)
		}
	}},
	{"P6", "a superseded head lets the next of its order go on, and can be resent", func(e *env) {
		first := e.accepted(ordered(versioned("a", "r", "t", "int", "1"), "r", false))
		second := e.accepted(ordered(arrival("s", "x"), "r", false))
		third := e.accepted(ordered(versioned("b", "r", "t", "int", "2"), "r", false))
		e.state(first, store.StateSuperseded)
		e.resent(first, at(time.Minute))
		same(e, "by", e.job(first).SupersededBy, 0)
		for _, id := range []int64{second, third, first} {
			e.settle(e.turnOf(id, at(time.Hour)), store.Delivered, at(time.Hour))
		}
	}},
	{"P6", "each destination keeps its own latest version", func(e *env) {
		both := func(id, version string, latest ...bool) store.Arrival {
			a := to(versioned(id, "r", "t", "int", version), "app", "crm")
			for i := range a.Events[0].Jobs {
				a.Events[0].Jobs[i].Latest = latest[i]
			}
			return a
		}
		first := e.accepted(both("a", "1", true, false))
		e.accepted(both("b", "2", true, false))
		jobs := e.delivery(first).Jobs
		same(e, "states", fmt.Sprint(jobs[0].State, jobs[1].State), fmt.Sprint(store.Superseded, store.Queued))
	}},
}
