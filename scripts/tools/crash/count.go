package main

import (
	"fmt"
	"time"

	"acuse/scripts/tools/load"
)

// result is what was counted at the end.
type result struct {
	acked, stored, lost int
	undelivered         int // acknowledged and never given to the app
	twice               int // events stored as more than one delivery
	keys                int // events seen with more than one idempotency key
	bodies              int // events seen with more than one body
	strays              int // events given to the app that are not in the archive
	refused             int64
	repeats             int // requests the app got beyond the first of an event
	orphans             []string
	drained             bool
}

func (r *result) bad() bool {
	return r.lost+r.undelivered+r.twice+r.keys+r.bodies+r.strays+len(r.orphans) > 0 || r.acked == 0 || !r.drained || r.refused > 0
}

// count waits until nothing is queued any more, then compares what was
// acknowledged with the archive and with what the app got.
func count(a *load.Acuse, l *ledger, sink *load.Sink) (*result, error) {
	r := &result{acked: len(l.acked), refused: l.late.Load()}
	deadline := time.Now().Add(2 * time.Minute)
	for !r.drained && time.Now().Before(deadline) {
		var s struct {
			Queued int `json:"queued"`
			Leased int `json:"leased"`
		}
		if err := a.Call("GET", "/api/v1/status", nil, &s); err != nil {
			return nil, err
		}
		r.drained = s.Queued+s.Leased == 0
		if !r.drained {
			time.Sleep(200 * time.Millisecond)
		}
	}
	stored := map[string]int{}
	if err := a.Deliveries(func(d load.Delivery) { stored[d.EventID]++ }); err != nil {
		return nil, err
	}
	r.stored = len(stored)
	given := map[string]bool{}
	sink.Each(func(id string, seen *load.Seen) {
		given[id] = true
		r.repeats += seen.Times - 1
		if len(seen.Keys) != 1 || seen.Keys[""] {
			r.keys++
		}
		if len(seen.Sums) != 1 {
			r.bodies++
		}
		if stored[id] == 0 {
			r.strays++
		}
	})
	for id := range l.acked {
		if stored[id] == 0 {
			r.lost++
		}
		if !given[id] {
			r.undelivered++
		}
	}
	for _, n := range stored {
		if n > 1 {
			r.twice++
		}
	}
	var check struct {
		Problems []string `json:"problems"`
	}
	if err := a.Call("POST", "/api/v1/check", map[string]bool{"full": true}, &check); err != nil {
		return nil, err
	}
	r.orphans = check.Problems
	return r, nil
}

func (r *result) print(o options) {
	fmt.Printf("store %s, kill -9 loops %d, clients %d, seed %d\n", o.store, o.loops, o.clients, o.seed)
	fmt.Printf("acknowledged            %d\n", r.acked)
	fmt.Printf("stored                  %d\n", r.stored)
	fmt.Printf("lost                    %d\n", r.lost)
	fmt.Printf("not delivered           %d\n", r.undelivered)
	fmt.Printf("stored twice            %d\n", r.twice)
	fmt.Printf("more than one key       %d\n", r.keys)
	fmt.Printf("more than one body      %d\n", r.bodies)
	fmt.Printf("delivered, not stored   %d\n", r.strays)
	fmt.Printf("orphans and damage      %d\n", len(r.orphans))
	for _, p := range r.orphans {
		fmt.Println("  " + p)
	}
	fmt.Printf("answered other than 2xx %d\n", r.refused)
	fmt.Printf("given to the app again  %d (at least once: a kill between the app's answer and its settle)\n", r.repeats)
	if !r.drained {
		fmt.Println("the queue did not drain in 2 minutes")
	}
}
