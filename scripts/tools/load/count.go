package load

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"time"
)

// Result is what was counted at the end.
type Result struct {
	acked, stored, lost int
	undelivered         int // acknowledged and never given to the app
	twice               int // events stored as more than one delivery
	keys                int // events seen with more than one idempotency key
	bodies              int // events seen with more than one body
	other               int // events given to the app, or read back, with a body that was not sent
	compared            int // events read back
	strays              int // events given to the app that are not in the archive
	refused             int64
	repeats             int // requests the app got beyond the first of an event
	orphans             []string
	drained             bool
}

// Bad tells whether anything was lost, doubled or damaged.
func (r *Result) Bad() bool {
	return r.lost+r.undelivered+r.twice+r.keys+r.bodies+r.other+r.strays+len(r.orphans) > 0 || r.acked == 0 || !r.drained || r.refused > 0
}

// stuck is how long the queue may stand still before it counts as not draining: longer than
// any wait of the tools' retry schedules.
const stuck = time.Minute

// Count waits until nothing is queued any more, then compares what was
// acknowledged with the archive and with what the app got.
func Count(a *Acuse, l *Ledger, sink *Sink) (*Result, error) {
	r := &Result{acked: len(l.acked), refused: l.late.Load()}
	least, since := 0, time.Now()
	for !r.drained && time.Since(since) < stuck {
		var s struct {
			Queued int `json:"queued"`
			Leased int `json:"leased"`
		}
		if err := a.Call("GET", "/api/v1/status", nil, &s); err != nil {
			return nil, err
		}
		r.drained = s.Queued+s.Leased == 0
		if n := s.Queued + s.Leased; least == 0 || n < least {
			least, since = n, time.Now()
		}
		if !r.drained {
			time.Sleep(200 * time.Millisecond)
		}
	}
	stored, numbers := map[string]int{}, map[string]int64{}
	if err := a.Deliveries(func(d Delivery) { stored[d.EventID]++; numbers[d.EventID] = d.ID }); err != nil {
		return nil, err
	}
	if err := r.readBack(a, l, numbers); err != nil {
		return nil, err
	}
	r.stored = len(stored)
	given := map[string]bool{}
	sink.Each(func(id string, seen *Seen) {
		given[id] = true
		r.repeats += seen.Times - 1
		if len(seen.Keys) != 1 || seen.Keys[""] {
			r.keys++
		}
		if len(seen.Sums) != 1 {
			r.bodies++
		}
		for sum := range seen.Sums {
			if !slices.Contains(l.sent[id], sum) {
				r.other++
			}
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

// most is how many events are read back from the archive, chosen by chance.
const most = 2000

// readBack compares bytes of the archive with what was sent.
func (r *Result) readBack(a *Acuse, l *Ledger, numbers map[string]int64) error {
	for id, n := range numbers {
		if r.compared == most {
			break
		}
		body, err := a.Body(n)
		if err != nil {
			return err
		}
		r.compared++
		if !slices.Contains(l.sent[id], sha256.Sum256(body)) {
			r.other++
		}
	}
	return nil
}

// Lost counts acknowledged events that are not stored.
func (r *Result) Lost() int { return r.lost }

// Acknowledged counts events that were answered 2xx.
func (r *Result) Acknowledged() int { return r.acked }

// Print writes the counts, a line each.
func (r *Result) Print(w io.Writer) {
	fmt.Fprintf(w, "acknowledged            %d\n", r.acked)
	fmt.Fprintf(w, "stored                  %d\n", r.stored)
	fmt.Fprintf(w, "lost                    %d\n", r.lost)
	fmt.Fprintf(w, "not delivered           %d\n", r.undelivered)
	fmt.Fprintf(w, "stored twice            %d\n", r.twice)
	fmt.Fprintf(w, "more than one key       %d\n", r.keys)
	fmt.Fprintf(w, "more than one body      %d\n", r.bodies)
	fmt.Fprintf(w, "bytes never sent        %d (every body given to the app; %d read back from the archive)\n", r.other, r.compared)
	fmt.Fprintf(w, "delivered, not stored   %d\n", r.strays)
	fmt.Fprintf(w, "orphans and damage      %d\n", len(r.orphans))
	for _, p := range r.orphans {
		fmt.Fprintln(w, "  "+p)
	}
	fmt.Fprintf(w, "answered other than 2xx %d\n", r.refused)
	fmt.Fprintf(w, "given to the app again  %d (at least once: a kill between the app's answer and its settle)\n", r.repeats)
	if !r.drained {
		fmt.Fprintln(w, "the queue stands still")
	}
}
