package storetest

import (
	"errors"
	"fmt"
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
