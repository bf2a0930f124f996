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
func (r Report) Print(out io.Writer, w Words) {
	say := func(key string, args ...any) { fmt.Fprintf(out, w[key]+"\n", args...) }
	say("accepted", r.Sent.Accepted)
	say("duplicates", r.Sent.Duplicate)
	say("forged", r.Sent.Forged, r.Sent.Passed)
	say("delivered", r.Delivered, r.App.Asked)
	say("dead", r.Dead)
	if r.App.BadSignatures > 0 {
		say("signatures", r.App.BadSignatures)
	}
	if r.Sent.Unsent > 0 {
		say("unsent", r.Sent.Unsent)
	}
	done := len(r.Sent.Acked) - r.Missing
	if r.Doubled+r.Strays > 0 {
		say("faulty", done, len(r.Sent.Acked), r.Doubled, r.Strays)
		return
	}
	say("orders", done, len(r.Sent.Acked))
}
