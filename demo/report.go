package demo

import (
	"fmt"
	"io"
)

// Report compares what the senders were told with what the app did and what acuse
// says it did.
type Report struct {
	Sent             Sent // of all senders together; Acked by "source event"
	App              Tally
	Delivered, Dead  int64 // deliveries, as acuse counts them
	Missing, Doubled int   // orders
	Strays           int   // orders for events that nobody was told were accepted
}

// Compare makes the report.
func Compare(senders []*Sender, app Tally, delivered, dead int64) Report {
	r := Report{App: app, Delivered: delivered, Dead: dead, Sent: Sent{Acked: map[string]bool{}}}
	for _, s := range senders {
		c := s.Sent()
		for id := range c.Acked {
			r.Sent.Acked[s.Source+" "+id] = true
		}
		r.Sent.Accepted += c.Accepted
		r.Sent.Duplicate += c.Duplicate
		r.Sent.Forged += c.Forged
		r.Sent.Passed += c.Passed
		r.Sent.Unsent += c.Unsent
	}
	for id := range r.Sent.Acked {
		if app.Orders[id] == 0 {
			r.Missing++
		}
	}
	for id, n := range app.Orders {
		if n > 1 {
			r.Doubled++
		}
		if !r.Sent.Acked[id] {
			r.Strays++
		}
	}
	return r
}

// Good tells whether every event was done once and nothing forged passed.
func (r Report) Good() bool {
	return len(r.Sent.Acked) > 0 && r.Missing+r.Doubled+r.Strays+r.Sent.Passed+r.Sent.Unsent == 0 &&
		r.App.BadSignatures+r.App.NoKey == 0 && r.Dead == 0
}

// Print writes the summary.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "accepted    %d\n", r.Sent.Accepted)
	fmt.Fprintf(w, "duplicates  %d (recognised, not delivered again)\n", r.Sent.Duplicate)
	fmt.Fprintf(w, "forged      %d, of them passed %d\n", r.Sent.Forged, r.Sent.Passed)
	fmt.Fprintf(w, "delivered   %d (the app was asked %d times: it fails, is slow, breaks connections)\n", r.Delivered, r.App.Asked)
	fmt.Fprintf(w, "dead        %d\n", r.Dead)
	if r.App.BadSignatures > 0 {
		fmt.Fprintf(w, "signatures the app refused: %d\n", r.App.BadSignatures)
	}
	if r.Sent.Unsent > 0 {
		fmt.Fprintf(w, "events without a 2xx: %d\n", r.Sent.Unsent)
	}
	done := len(r.Sent.Acked) - r.Missing
	switch {
	case r.Doubled > 0 || r.Strays > 0:
		fmt.Fprintf(w, "orders in the app: %d of %d, %d TWICE, %d for unknown events\n", done, len(r.Sent.Acked), r.Doubled, r.Strays)
	default:
		fmt.Fprintf(w, "orders in the app: %d of %d, none twice\n", done, len(r.Sent.Acked))
	}
}
