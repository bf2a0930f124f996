package storetest

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"acuse/store"
)

// together calls f n times at once and waits.
func together(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

var concurrentTests = []test{
	{"P2", "a crowd of senders, workers, sweeps and people leaves a sound archive", history},
	{"P6", "cancels, releases, purges, backups and readers at once leave a sound archive", crowd},
}

// crowd lets what history leaves out happen at once: acts of people and of retention,
// while others read. Nothing that was not finished may be missing afterwards.
func crowd(e *env) {
	const senders, events = 4, 60
	var clock atomic.Int64
	now := func() time.Time { return at(time.Duration(clock.Add(1)) * time.Minute) }
	var accepted, purged atomic.Int64
	stop := make(chan struct{})
	until := func(f func(n int)) {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				f(n)
			}
		}
	}
	some := func(err error, known ...error) {
		if err != nil && !slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
			e.Error(err)
		}
	}
	number := func(n int) int64 { return int64(n)%max(1, accepted.Load()) + 1 }
	go func() {
		defer close(stop)
		together(senders, func(i int) {
			for n := range events {
				a := windowed(later(to(arrival("s", fmt.Sprint(i, "-", n)), "app", "crm"), 0), time.Hour)
				a.ReceivedAt = now()
				if n%5 == 4 {
					a.Events[0].ID, a.Events[0].Quarantine, a.Events[0].Jobs = "", "no id", nil
				}
				_, err := e.s.Accept(e.Context(), a)
				some(err)
				accepted.Add(1)
			}
		})
	}()
	dir, ctx := e.TempDir(), e.Context()
	acts := []func(n int){
		func(n int) {
			q := e.query([]string{"app", "crm"}[n%2], now())
			q.TTL = time.Duration(n%20) * time.Minute
			list, err := e.s.Lease(ctx, q)
			some(err)
			for _, l := range list {
				some(e.s.Settle(ctx, outcome(l, []store.JobState{store.Delivered, store.Queued, store.Dead}[n%3], now())), store.ErrLeaseLost)
			}
		},
		func(n int) {
			_, err := e.s.Cancel(ctx, number(n), "", ana, now())
			some(err, store.ErrNotFound, store.ErrState)
			_, err = e.s.Release(ctx, number(n), event("s", fmt.Sprint("released ", n), "app"), ana, now())
			some(err, store.ErrNotFound, store.ErrState)
			_, err = e.s.Expire(ctx, now())
			some(err)
		},
		func(n int) {
			p, err := e.s.Purge(ctx, store.PurgeRule{Now: now(), Age: 10 * time.Minute, DeadAge: 20 * time.Minute, After: int64(n % 50), Work: 40})
			some(err)
			purged.Add(int64(p.Deliveries))
			some(e.s.Shift(ctx, now(), time.Duration(n%3-1)*time.Second))
		},
		func(n int) {
			list, _, err := e.s.Deliveries(ctx, store.DeliveryFilter{State: []store.DeliveryState{"", store.StateDead, store.StateQueued, store.StateQuarantined}[n%4]})
			some(err)
			for _, d := range list {
				_, err := e.s.Payload(ctx, d.ID)
				some(err, store.ErrNotFound)
			}
			_, err = e.s.Usage(ctx, store.PurgeRule{Now: now(), Age: time.Hour})
			some(err)
		},
		func(n int) {
			if n < 5 {
				some(e.s.Backup(ctx, filepath.Join(dir, fmt.Sprint(n))))
			}
			problems, err := e.s.Check(ctx, true)
			some(err)
			if len(problems) > 0 {
				e.Errorf("in the midst: %q", problems)
			}
		},
	}
	together(len(acts), func(i int) { until(acts[i]) })
	left, before := int64(0), int64(0)
	for {
		list, next, err := e.s.Deliveries(ctx, store.DeliveryFilter{Before: before, Limit: 500})
		e.ok(err)
		if left, before = left+int64(len(list)), next; next == 0 {
			break
		}
	}
	same(e, "accepted", accepted.Load(), senders*events)
	same(e, "left and purged", left+purged.Load(), accepted.Load())
	totals := fmt.Sprint(e.totals())
	e.sound()
	e.reopen()
	same(e, "totals counted anew", fmt.Sprint(e.totals()), totals)
}

// history lets everything happen at once over a clock of its own, then lets the work
// run out, and counts.
func history(e *env) {
	const events, senders, workers = 40, 6, 4
	var clock atomic.Int64
	now := func() time.Time { return t0.Add(time.Duration(clock.Add(1)) * time.Millisecond) }
	var mu sync.Mutex
	first := map[string]int64{} // event id -> the number its only delivery has
	var succeeded sync.Map      // job -> times its settle to Delivered was taken

	send := func(i int) {
		for n := range events {
			id := fmt.Sprint("evt_", (n*7+i*3)%events)
			a := to(revive(arrival("s", id)), "app", "crm")
			a.ReceivedAt = now()
			out, err := e.s.Accept(e.Context(), a)
			if err != nil {
				e.Error(err)
				return
			}
			mu.Lock()
			if was, ok := first[id]; ok && was != out[0].Delivery {
				e.Errorf("%s has numbers %d and %d", id, was, out[0].Delivery)
			}
			first[id] = out[0].Delivery
			mu.Unlock()
		}
	}
	work := func(i, rounds int) {
		for n := range rounds {
			q := e.query([]string{"app", "crm"}[(i+n)%2], now())
			q.Owner, q.Max, q.TTL = fmt.Sprintf("n1/run1/w%d", i), 5, 50*time.Millisecond
			list, err := e.s.Lease(e.Context(), q)
			if err != nil {
				e.Error(err)
				return
			}
			for k, l := range list {
				state := []store.JobState{store.Delivered, store.Queued, store.Delivered, store.Dead}[(n+k)%4]
				s := outcome(l, state, now())
				s.Due = s.At
				if k%3 == 2 {
					if err := e.s.Renew(e.Context(), l.Job, l.Token, now().Add(time.Second)); err != nil && !errors.Is(err, store.ErrLeaseLost) {
						e.Error(err)
					}
				}
				switch err := e.s.Settle(e.Context(), s); {
				case err == nil && state == store.Delivered:
					count, _ := succeeded.LoadOrStore(l.Job, new(atomic.Int64))
					count.(*atomic.Int64).Add(1)
				case err != nil && !errors.Is(err, store.ErrLeaseLost):
					e.Error(err)
				}
			}
		}
	}
	var resent atomic.Int64
	meddle := func(i int) {
		for n := range 30 {
			if _, err := e.s.Expire(e.Context(), now()); err != nil {
				e.Error(err)
			}
			_, err := e.s.Resend(e.Context(), store.Resend{Delivery: int64(n%events + 1), Destination: "app", By: ana, At: now()})
			switch {
			case err == nil:
				resent.Add(1)
			case !errors.Is(err, store.ErrRunning) && !errors.Is(err, store.ErrNotFound):
				e.Error(err)
			}
			if _, _, err := e.s.Deliveries(e.Context(), store.DeliveryFilter{State: store.StateQueued}); err != nil {
				e.Error(err)
			}
		}
	}
	together(senders+workers+2, func(i int) {
		switch {
		case i < senders:
			send(i)
		case i < senders+workers:
			work(i, 40)
		default:
			meddle(i)
		}
	})
	e.drain(now)

	same(e, "deliveries", len(e.list(store.DeliveryFilter{})), events)
	same(e, "highest number", e.totals().Deliveries, events)
	for _, d := range e.list(store.DeliveryFilter{}) {
		same(e, "jobs of a delivery", len(d.Jobs), 2)
		for _, j := range d.Jobs {
			if j.Destination == "crm" && j.State == store.Delivered {
				count, ok := succeeded.Load(j.ID)
				if !ok || count.(*atomic.Int64).Load() != 1 {
					e.Errorf("job %d, which nobody resent, was delivered %v times", j.ID, count)
				}
			}
		}
		for _, a := range e.attempts(d.ID) {
			if a.Outcome == store.Running {
				e.Errorf("attempt %d of #%d still runs", a.N, d.ID)
			}
		}
	}
	before := fmt.Sprint(e.totals())
	e.sound()
	e.reopen()
	same(e, "totals counted anew", fmt.Sprint(e.totals()), before)
}

// drain ends the leases and delivers what is queued.
func (e *env) drain(now func() time.Time) {
	e.Helper()
	for {
		n := 0
		if _, err := e.s.EndLeases(e.Context(), "", now()); err != nil {
			e.Fatal(err)
		}
		for _, d := range []string{"app", "crm"} {
			for _, l := range e.leases(e.query(d, now().Add(time.Hour))) {
				n++
				e.settle(l, store.Dead, now())
			}
		}
		if n == 0 {
			return
		}
	}
}
