package storetest

import (
	"fmt"
	"time"

	"acuse/store"
)

const day = 24 * time.Hour

// rule is what the cases purge by, at the age of the archive's t0.
func rule(after time.Duration) store.PurgeRule {
	return store.PurgeRule{Now: at(after), Age: 30 * day, DeadAge: 90 * day, RejectionAge: 7 * day, NoticeAge: 30 * day, AuditAge: 365 * day}
}

// purge runs steps until no more is left and returns their sum.
func (e *env) purge(r store.PurgeRule) (sum store.Purged) {
	e.Helper()
	for i := 0; ; i++ {
		p, err := e.s.Purge(e.Context(), r)
		e.ok(err)
		sum.Deliveries += p.Deliveries
		sum.Keys += p.Keys
		sum.Rejections += p.Rejections
		sum.Others += p.Others
		sum.Bytes += p.Bytes
		if sum.Next = p.Next; !p.More {
			return sum
		}
		if r.After = p.Next; i > 10_000 {
			e.Fatal("the purge does not end")
		}
	}
}

// windowed sets the window of an arrival's keys.
func windowed(a store.Arrival, d time.Duration) store.Arrival {
	for i := range a.Events {
		a.Events[i].Window = d
	}
	return a
}

func (e *env) gone(id int64) {
	e.Helper()
	_, err := e.s.Delivery(e.Context(), id)
	e.is(err, store.ErrNotFound)
	list, err := e.s.Attempts(e.Context(), id)
	if err == nil {
		same(e, "attempts left", len(list), 0)
	}
	_, err = e.s.Payload(e.Context(), id)
	e.is(err, store.ErrNotFound)
}

// done accepts an event and delivers it.
func (e *env) done(a store.Arrival) int64 {
	e.Helper()
	id := e.accepted(a)
	e.settle(e.lease(a.ReceivedAt), store.Delivered, a.ReceivedAt)
	return id
}

var retentionTests = []test{
	{"", "what is finished goes once it is old, with jobs, attempts, payload and key", func(e *env) {
		id := e.done(arrival("s", "a"))
		young := e.done(later(arrival("s", "b"), time.Hour))
		same(e, "too early", e.purge(rule(30*day-time.Millisecond)).Deliveries, 0)
		p := e.purge(rule(30 * day))
		same(e, "deliveries", p.Deliveries, 1)
		same(e, "keys", p.Keys, 1)
		if p.Bytes <= 0 {
			e.Fatal("no bytes")
		}
		e.gone(id)
		e.state(young, store.StateDelivered)
		same(e, "the id is new again", e.accept(later(arrival("s", "a"), 31*day))[0].Kind, store.Accepted)
		e.sound()
		e.reopen()
		e.sound()
	}},
	{"P6", "what is not finished never goes: queued, leased, and the others of its delivery", func(e *env) {
		queued := e.accepted(to(arrival("s", "queued"), "nobody"))
		leased := e.accepted(arrival("s", "leased"))
		e.lease(t0)
		half := e.accepted(to(arrival("s", "half"), "crm", "nobody"))
		e.settle(e.leases(e.query("crm", t0))[0], store.Delivered, t0)
		r := rule(10 * 365 * day)
		r.MaxBytes = 1
		same(e, "deliveries", e.purge(r).Deliveries, 0)
		for _, id := range []int64{queued, leased, half} {
			e.delivery(id)
		}
		same(e, "queued", e.totals().Queued, 2)
		e.sound()
	}},
	{"P6", "dead letters and what is in quarantine stay 90 days, whatever the bytes", func(e *env) {
		dead := e.accepted(arrival("s", "dead"))
		e.dead(at(day)) // died a day later
		q := arrival("s", "")
		q.Events[0].Quarantine, q.Events[0].Jobs = "no id", nil
		quarantined := e.accept(q)[0].Delivery
		r := rule(90*day - time.Millisecond)
		r.MaxBytes = 1
		same(e, "before", e.purge(r).Deliveries, 0)
		same(e, "quarantined at 90", e.purge(rule(90*day)).Deliveries, 1)
		e.gone(quarantined)
		e.state(dead, store.StateDead)
		same(e, "quarantined ones", e.totals().Quarantined, 0)
		same(e, "dead at 91", e.purge(rule(91*day)).Deliveries, 1)
		e.gone(dead)
		same(e, "dead ones", e.totals().Dead, 0)
		e.sound()
	}},
	{"", "what was settled late is kept as long after it", func(e *env) {
		id := e.accepted(arrival("s", "a"))
		e.settle(e.lease(at(29*day)), store.Delivered, at(29*day))
		same(e, "at 30 days", e.purge(rule(30*day)).Deliveries, 0)
		same(e, "at 59 days", e.purge(rule(59*day)).Deliveries, 1)
		e.gone(id)
	}},
	{"", "a key outlives its delivery until it expires, and then is removed", func(e *env) {
		a := windowed(arrival("s", "a"), 60*day)
		id := e.done(a)
		p := e.purge(rule(31 * day))
		same(e, "deliveries", p.Deliveries, 1)
		same(e, "keys", p.Keys, 0)
		same(e, "a repeat", e.accept(later(a, 59*day))[0], store.Outcome{Kind: store.Duplicate, Delivery: id})
		e.sound()
		same(e, "keys before it expires", e.purge(rule(60*day-time.Millisecond)).Keys, 0)
		same(e, "keys after", e.purge(rule(60*day)).Keys, 1)
		same(e, "it is new", e.accept(later(a, 60*day))[0].Kind, store.Accepted)
		e.sound()
	}},
	{"", "an expired key stays as long as its delivery", func(e *env) {
		a := windowed(to(arrival("s", "a"), "nobody"), time.Hour)
		id := e.accepted(a)
		same(e, "keys", e.purge(rule(400*day)).Keys, 0)
		same(e, "found by its id", fmt.Sprint(numbers(e.list(store.DeliveryFilter{Query: "a"}))), fmt.Sprint([]int64{id}))
		e.sound()
	}},
	{"", "a key that was taken over stays with the delivery that has it now", func(e *env) {
		a := windowed(arrival("s", "a"), time.Hour)
		first := e.done(a)
		second := e.accepted(windowed(later(a, 20*day), 90*day))
		e.settle(e.lease(at(20*day)), store.Delivered, at(20*day))
		p := e.purge(rule(31 * day))
		same(e, "deliveries", p.Deliveries, 1)
		same(e, "keys", p.Keys, 0)
		e.gone(first)
		same(e, "a repeat", e.accept(later(a, 40*day))[0], store.Outcome{Kind: store.Duplicate, Delivery: second})
		// Loose now; claimed by a third, and not loose any more.
		e.purge(rule(60 * day))
		e.gone(second)
		third := e.accepted(windowed(to(later(a, 200*day), "nobody"), time.Hour))
		same(e, "keys", e.purge(rule(400*day)).Keys, 0)
		e.delivery(third)
		e.sound()
	}},
	{"", "no key goes while the clock is not trusted", func(e *env) {
		a := arrival("s", "a")
		id := e.done(a)
		loose := e.done(windowed(arrival("s", "loose"), 35*day))
		e.purge(rule(31 * day))
		same(e, "a", e.accept(later(windowed(arrival("s", "b"), day), 31*day))[0].Kind, store.Accepted)
		r := rule(60 * day)
		r.KeepKeys = true
		same(e, "keys", e.purge(r).Keys, 0)
		r.KeepKeys = false
		same(e, "keys later", e.purge(r).Keys, 1)
		e.gone(id)
		e.gone(loose)
		e.sound()
	}},
	{"", "a shared payload goes with the last of its deliveries", func(e *env) {
		out := e.accept(arrival("s", "a", "b", "c"))
		for _, l := range e.leases(e.query("app", t0)) {
			if l.Delivery.ID != out[1].Delivery {
				e.settle(l, store.Delivered, t0)
			} else {
				e.settle(l, store.Queued, at(31*day))
			}
		}
		p := e.purge(rule(31 * day))
		same(e, "deliveries", p.Deliveries, 2)
		same(e, "bytes", p.Bytes, 0)
		_, err := e.s.Payload(e.Context(), out[1].Delivery)
		e.ok(err)
		e.sound()
		e.settle(e.lease(at(32*day)), store.Delivered, at(32*day))
		p = e.purge(rule(70 * day))
		same(e, "the last", p.Deliveries, 1)
		if p.Bytes <= 0 {
			e.Fatal("the payload stays")
		}
		e.sound()
	}},
	{"", "a copy keeps the payload of the delivery that it was made from", func(e *env) {
		id := e.done(arrival("s", "a"))
		out, err := e.s.Resend(e.Context(), store.Resend{Delivery: id, AsNew: true, By: ana, At: at(29 * day), NewKeys: func(ev, d string) string { return ev + d }})
		e.ok(err)
		same(e, "deliveries", e.purge(rule(31*day)).Deliveries, 1)
		e.gone(id)
		l := e.lease(at(31 * day))
		same(e, "leased", l.Delivery.ID, out.Delivery)
		same(e, "body", string(l.Payload.Body), string(arrival("s", "a").Body))
		e.sound()
	}},
	{"", "by bytes the oldest finished ones go first, until it fits", func(e *env) {
		var ids []int64
		for i := range 200 {
			a := later(arrival("s", fmt.Sprint(i)), time.Duration(i)*time.Second)
			a.Body = []byte(fmt.Sprintf("%0*d", 20_000, i))
			ids = append(ids, e.done(a))
		}
		u, err := e.s.Usage(e.Context(), rule(time.Hour))
		e.ok(err)
		if u.Live < 200*20_000 || u.Bytes < u.Live-u.Journal || u.Oldest != t0 || len(u.Tables) < 4 {
			e.Fatalf("usage: %+v", u)
		}
		r := rule(time.Hour)
		r.MaxBytes = u.Live / 2
		e.purge(r)
		u, err = e.s.Usage(e.Context(), r)
		e.ok(err)
		if u.Live > r.MaxBytes+400_000 || u.Live < r.MaxBytes*7/10 {
			e.Fatalf("live %d, want about %d", u.Live, r.MaxBytes)
		}
		left := e.list(store.DeliveryFilter{Limit: 500})
		if len(left) < 60 || len(left) > 140 {
			e.Fatalf("%d deliveries left", len(left))
		}
		same(e, "the newest", left[0].ID, ids[len(ids)-1])
		same(e, "the oldest is the one after those that went", left[len(left)-1].ID, ids[len(ids)-len(left)])
		e.sound()
	}},
	{"", "a purge goes in steps, ends, and ends where what is young begins", func(e *env) {
		for i := range 40 {
			e.done(arrival("s", fmt.Sprint(i)))
		}
		waiting := e.accepted(to(arrival("s", "waits"), "nobody"))
		young := e.done(later(arrival("s", "young"), 20*day))
		r := rule(31 * day)
		r.Work = 10
		p, err := e.s.Purge(e.Context(), r)
		e.ok(err)
		if !p.More || p.Deliveries == 0 || p.Deliveries > 10 || p.Next == 0 {
			e.Fatalf("first step: %+v", p)
		}
		sum := e.purge(r)
		same(e, "the rest", sum.Deliveries+p.Deliveries, 40)
		same(e, "ended at", sum.Next, waiting)
		r.After = sum.Next
		same(e, "from there on", e.purge(r).Deliveries, 0)
		e.delivery(young)
		e.sound()
	}},
	{"", "numbers of what went are never given out again, not after a restart either", func(e *env) {
		var last int64
		for i := range 3 {
			last = e.done(arrival("s", fmt.Sprint(i)))
		}
		job, token := e.delivery(last).Jobs[0].ID, e.attempts(last)[0].ID
		same(e, "deliveries", e.purge(rule(100*day)).Deliveries, 3)
		e.reopen()
		same(e, "highest number", e.totals().Deliveries, last)
		next := e.accepted(later(arrival("s", "next"), 100*day))
		same(e, "number", next, last+1)
		same(e, "job", e.delivery(next).Jobs[0].ID, job+1)
		if l := e.lease(at(100 * day)); l.Token <= token {
			e.Fatalf("token %d after %d", l.Token, token)
		}
	}},
	{"", "deliveries of a clock that was ahead do not hold up the others", func(e *env) {
		ahead := e.done(later(arrival("s", "ahead"), 1000*day))
		old := e.done(arrival("s", "old"))
		same(e, "deliveries", e.purge(rule(31*day)).Deliveries, 1)
		e.gone(old)
		e.delivery(ahead)
	}},
	{"", "rejections, sessions, notices and audit entries go when they are old", func(e *env) {
		ctx := e.Context()
		e.ok(e.s.Reject(ctx, store.Rejection{Source: "s", Reason: "r", At: t0, Body: []byte("x")}))
		e.ok(e.s.Reject(ctx, store.Rejection{Source: "s", Reason: "r2", At: at(5 * day), Body: []byte("x")}))
		e.ok(e.s.PutSession(ctx, store.Session{ID: "a", Expires: at(time.Hour)}))
		e.ok(e.s.PutSession(ctx, store.Session{ID: "b", Expires: at(400 * day)}))
		e.ok(e.s.PutNotice(ctx, store.Notice{Rule: "dead", Subject: "ended", Since: t0, Ended: t0}))
		e.ok(e.s.PutNotice(ctx, store.Notice{Rule: "dead", Subject: "open", Since: t0}))
		e.ok(e.s.Audit(ctx, store.AuditEntry{At: t0, By: ana, Act: "login"}))
		e.ok(e.s.Audit(ctx, store.AuditEntry{At: at(300 * day), By: ana, Act: "login"}))
		same(e, "rejections", e.purge(rule(8*day)).Rejections, 1)
		p := e.purge(rule(366 * day))
		same(e, "rejections later", p.Rejections, 1)
		same(e, "others", p.Others, 2)
		_, err := e.s.SessionByID(ctx, "b")
		e.ok(err)
		log, err := e.s.AuditLog(ctx, 0, 10)
		e.ok(err)
		same(e, "audit", len(log), 1)
		notices, err := e.s.NoticeList(ctx, t0)
		e.ok(err)
		same(e, "notices", len(notices), 1)
		same(e, "which", notices[0].Subject, "open")
	}},
	{"P8", "a purge under way does not disturb what comes in and goes out", func(e *env) {
		for i := range 300 {
			e.done(arrival("old", fmt.Sprint(i)))
		}
		purged := make(chan int)
		go func() {
			n, r := 0, rule(31*day)
			for r.Work = 20; ; {
				p, err := e.s.Purge(e.Context(), r)
				if err != nil {
					e.Error(err)
				}
				n += p.Deliveries
				if r.After = p.Next; err != nil || !p.More {
					purged <- n
					return
				}
			}
		}()
		for i := range 100 {
			e.done(later(arrival("new", fmt.Sprint(i)), 31*day))
		}
		same(e, "purged", <-purged, 300)
		same(e, "left", len(e.list(store.DeliveryFilter{Limit: 500})), 100)
		_, left, err := e.s.Reclaim(e.Context(), 1<<20)
		e.ok(err)
		if left < 0 {
			e.Fatal("less than nothing is left")
		}
		e.sound()
		e.reopen()
		e.sound()
	}},
}
