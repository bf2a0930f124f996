package storetest

import (
	"fmt"
	"time"

	"acuse/store"
)

var leaseTests = []test{
	{"P4", "a leased job is leased to nobody else until its deadline was swept", func(e *env) {
		e.accepted(arrival("s", "a"))
		l := e.lease(t0)
		e.idle("app", at(time.Hour))
		counts, err := e.s.Expire(e.Context(), l.Until)
		e.ok(err)
		same(e, "expired at the deadline itself", len(counts), 0)
		counts, err = e.s.Expire(e.Context(), l.Until.Add(time.Millisecond))
		e.ok(err)
		same(e, "expired after it", fmt.Sprint(counts), "map[app:1]")
		cur := e.lease(l.Until.Add(time.Millisecond))
		if cur.Token <= l.Token {
			e.Fatalf("token %d after %d", cur.Token, l.Token)
		}
		same(e, "attempt", cur.Attempt, 2)
	}},
	{"P4", "a dead worker's job is leased again, and the old worker may not finish it", func(e *env) {
		id := e.accepted(arrival("s", "a"))
		old := e.lease(t0)
		_, err := e.s.Expire(e.Context(), at(2*time.Minute))
		e.ok(err)
		cur := e.lease(at(2 * time.Minute))
		before := fmt.Sprintf("%+v %+v", e.delivery(id), e.attempts(id))
		for _, state := range []store.JobState{store.Delivered, store.Dead, store.Queued} {
			e.is(e.s.Settle(e.Context(), outcome(old, state, at(2*time.Minute))), store.ErrLeaseLost)
		}
		e.is(e.s.Renew(e.Context(), old.Job, old.Token, at(time.Hour)), store.ErrLeaseLost)
		same(e, "nothing was written", fmt.Sprintf("%+v %+v", e.delivery(id), e.attempts(id)), before)
		e.settle(cur, store.Delivered, at(2*time.Minute))
		e.state(id, store.StateDelivered)
		a := e.attempts(id)
		same(e, "outcomes", fmt.Sprint(a[0].Outcome, a[1].Outcome), fmt.Sprint(store.Interrupted, store.Succeeded))
	}},
	{"P4", "a late settle with the current token counts, before and after the sweep", func(e *env) {
		for i, swept := range []bool{false, true} {
			id := e.accepted(arrival("s", fmt.Sprint(i)))
			l := e.lease(t0)
			if swept {
				_, err := e.s.Expire(e.Context(), at(time.Hour))
				e.ok(err)
				e.state(id, store.StateQueued)
			}
			e.settle(l, store.Delivered, at(time.Hour))
			e.state(id, store.StateDelivered)
			same(e, "attempt", e.attempts(id)[0].Outcome, store.Succeeded)
			e.idle("app", at(2*time.Hour))
		}
		t := e.totals()
		same(e, "nothing waits", fmt.Sprint(t.Queued, t.Leased, t.Dead), "0 0 0")
	}},
	{"P4", "a lease is renewed by its current token only, also after the deadline", func(e *env) {
		e.accepted(arrival("s", "a"))
		l := e.lease(t0)
		e.ok(e.s.Renew(e.Context(), l.Job, l.Token, at(10*time.Minute)))
		counts, err := e.s.Expire(e.Context(), at(9*time.Minute))
		e.ok(err)
		same(e, "expired", len(counts), 0)
		until, ok, err := e.s.NextDeadline(e.Context())
		e.ok(err)
		same(e, "next deadline", fmt.Sprint(until, ok), fmt.Sprint(at(10*time.Minute), true))
		_, err = e.s.Expire(e.Context(), at(11*time.Minute))
		e.ok(err)
		e.ok(e.s.Renew(e.Context(), l.Job, l.Token, at(20*time.Minute)))
		e.idle("app", at(12*time.Minute))
		same(e, "leased", e.totals().Leased, 1)
		same(e, "the attempt runs", e.attempts(1)[0].Outcome, store.Running)
		for _, token := range []int64{0, l.Token - 1, l.Token + 1, -1} {
			e.is(e.s.Renew(e.Context(), l.Job, token, at(time.Hour)), store.ErrLeaseLost)
			e.is(e.s.Settle(e.Context(), store.Settlement{Job: l.Job, Token: token, State: store.Delivered, At: t0}), store.ErrLeaseLost)
		}
		e.is(e.s.Renew(e.Context(), l.Job+1, l.Token, at(time.Hour)), store.ErrLeaseLost)
	}},
	{"P4", "a job is settled once: the second settle is refused", func(e *env) {
		e.accepted(arrival("s", "a"))
		l := e.lease(t0)
		e.settle(l, store.Queued, t0)
		e.is(e.s.Settle(e.Context(), outcome(l, store.Delivered, t0)), store.ErrLeaseLost)
		e.is(e.s.Renew(e.Context(), l.Job, l.Token, at(time.Hour)), store.ErrLeaseLost)
		l = e.lease(at(10 * time.Second))
		e.settle(l, store.Delivered, t0)
		e.is(e.s.Settle(e.Context(), outcome(l, store.Dead, t0)), store.ErrLeaseLost)
		e.state(1, store.StateDelivered)
	}},
	{"P4", "of many settles with one token at once, one counts", func(e *env) {
		e.accepted(arrival("s", "a"))
		l := e.lease(t0)
		errs := make([]error, 20)
		together(len(errs), func(i int) { errs[i] = e.s.Settle(e.Context(), outcome(l, store.Delivered, t0)) })
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				e.is(err, store.ErrLeaseLost)
			}
		}
		same(e, "settled", won, 1)
	}},
	{"P4", "many workers at once lease each job once", func(e *env) {
		for i := range 40 {
			e.accepted(arrival("s", fmt.Sprint(i)))
		}
		got := make([][]store.Lease, 10)
		together(len(got), func(i int) {
			for {
				q := e.query("app", t0)
				q.Max = 3
				list, err := e.s.Lease(e.Context(), q)
				if err != nil {
					e.Error(err)
				}
				if len(list) == 0 {
					return
				}
				got[i] = append(got[i], list...)
			}
		})
		seen := map[int64]bool{}
		for _, list := range got {
			for _, l := range list {
				if seen[l.Job] {
					e.Errorf("job %d was leased twice", l.Job)
				}
				seen[l.Job] = true
			}
		}
		same(e, "leased", len(seen), 40)
	}},
	{"P4", "at start the leases of this node's workers end at once, pull leases live on", func(e *env) {
		for _, d := range []string{"app", "script", "agent"} {
			e.accepted(to(arrival("s", d), d))
		}
		old := map[string]store.Lease{}
		for d, owner := range map[string]string{"app": "n1/run1/http", "script": "n1/run1/exec", "agent": "pull/agent-7"} {
			q := e.query(d, t0)
			q.Owner = owner
			old[d] = e.leases(q)[0]
		}
		e.reopen()
		n, err := e.s.EndLeases(e.Context(), "n1/", at(time.Second))
		e.ok(err)
		same(e, "ended", n, 2)
		for _, d := range []string{"app", "script"} {
			e.is(e.s.Settle(e.Context(), outcome(old[d], store.Delivered, at(time.Second))), store.ErrLeaseLost)
			e.is(e.s.Renew(e.Context(), old[d].Job, old[d].Token, at(time.Hour)), store.ErrLeaseLost)
			same(e, "leased again", len(e.leases(e.query(d, at(time.Second)))), 1)
		}
		e.idle("agent", at(time.Second))
		e.settle(old["agent"], store.Delivered, at(time.Second))
	}},
	{"P4", "an owner's prefix is text, not a pattern", func(e *env) {
		e.accepted(arrival("s", "a"))
		q := e.query("app", t0)
		q.Owner = "n%_/x"
		e.leases(q)
		for prefix, want := range map[string]int{"n1": 0, "n__": 0, "%": 0, "N%": 0, "n%_/x/y": 0} {
			n, err := e.s.EndLeases(e.Context(), prefix, t0)
			e.ok(err)
			same(e, prefix, n, want)
		}
		n, err := e.s.EndLeases(e.Context(), "n%_", t0)
		e.ok(err)
		same(e, "its own", n, 1)
	}},
	{"P4", "a person's cancel or resend ends what a swept worker could still say", func(e *env) {
		for _, act := range []string{"cancel", "resend"} {
			id := e.accepted(arrival("s", act))
			l := e.lease(t0)
			_, err := e.s.Expire(e.Context(), at(time.Hour))
			e.ok(err)
			if act == "cancel" {
				_, err = e.s.Cancel(e.Context(), id, "", ana, at(time.Hour))
			} else {
				_, err = e.s.Resend(e.Context(), store.Resend{Delivery: id, By: ana, At: at(time.Hour)})
			}
			e.ok(err)
			e.is(e.s.Settle(e.Context(), outcome(l, store.Delivered, at(time.Hour))), store.ErrLeaseLost)
			e.is(e.s.Renew(e.Context(), l.Job, l.Token, at(2*time.Hour)), store.ErrLeaseLost)
		}
	}},
	{"P4", "tokens go on rising after a restart", func(e *env) {
		e.accepted(arrival("s", "a"))
		last := int64(0)
		now := t0
		for range 4 {
			l := e.lease(now)
			if l.Token <= last {
				e.Fatalf("token %d after %d", l.Token, last)
			}
			last = l.Token
			e.settle(l, store.Queued, now)
			now = now.Add(10 * time.Second)
			e.reopen()
		}
	}},
	{"", "an attempt without an outcome of its own takes that of its job", func(e *env) {
		for i, state := range []store.JobState{store.Delivered, store.Dead, store.Queued} {
			id := e.accepted(arrival("s", fmt.Sprint(i)))
			l := e.lease(t0)
			e.ok(e.s.Settle(e.Context(), store.Settlement{Job: l.Job, Token: l.Token, State: state, At: t0, Due: at(time.Hour)}))
			want := store.Failed
			if state == store.Delivered {
				want = store.Succeeded
			}
			same(e, "outcome", e.attempts(id)[0].Outcome, want)
		}
	}},
	{"", "a state that no attempt ends in is refused", func(e *env) {
		e.accepted(arrival("s", "a"))
		l := e.lease(t0)
		for _, state := range []store.JobState{0, store.Leased, store.Cancelled, store.Filtered, 99} {
			e.is(e.s.Settle(e.Context(), store.Settlement{Job: l.Job, Token: l.Token, State: state, At: t0}), store.ErrRefused)
		}
		e.settle(l, store.Delivered, t0)
	}},
}
