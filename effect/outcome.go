package effect

import "acuse/store"

// Meaning is what a try's end means for its effect.
type Meaning int

// The meanings.
const (
	Stored    Meaning = iota + 1 // it is done: kept, and replayed
	Released                     // it did not happen: the key may run again
	Uncertain                    // it may have happened
)

// End is how a try ended.
type End struct {
	Status int    // of the answer; 0: there was none
	Class  string // without an answer: "refused", "dns", "tls", "timeout", "reset", …
	Sent   bool   // the request, or a part of it, may have reached the upstream
}

// Row is one line of the table of ends. docs/effects.md prints it.
type Row struct {
	Ends    string  // which ends: "2xx", "409", "no connection"
	WithKey Meaning // where the upstream takes a key
	Without Meaning // where it takes none
	Why     string
	holds   func(End) bool
	byOn5xx bool // on_5xx of the scope decides, where it is set
}

// Table says what is stored and replayed, what releases the claim, and what is uncertain.
// The first row that holds decides. With an upstream key an uncertain try is tried again
// under the same key until four fifths of the key's life have passed; then, and without a
// key at once, the effect is in doubt.
var Table = []Row{
	{Ends: "no connection (refused, name not found, TLS failed)", WithKey: Released, Without: Released, Why: "nothing was sent",
		holds: func(e End) bool { return e.Status == 0 && !e.Sent }},
	{Ends: "timeout, or cut, after the request was sent", WithKey: Uncertain, Without: Uncertain, Why: "the answer is not known",
		holds: func(e End) bool { return e.Status == 0 }},
	{Ends: "2xx", WithKey: Stored, Without: Stored, Why: "it happened",
		holds: func(e End) bool { return e.Status/100 == 2 }},
	{Ends: "3xx", WithKey: Stored, Without: Stored, Why: "an answer like another; redirects are not followed",
		holds: func(e End) bool { return e.Status/100 == 3 }},
	{Ends: "401, 403, 407", WithKey: Released, Without: Released, Why: "not let in: the credentials may be mended",
		holds: is(401, 403, 407)},
	{Ends: "408, 425, 429", WithKey: Released, Without: Released, Why: "not now: it was not taken up",
		holds: is(408, 425, 429)},
	{Ends: "409", WithKey: Released, Without: Released, Why: "another call is in the way at the upstream",
		holds: is(409)},
	{Ends: "421", WithKey: Released, Without: Released, Why: "the wrong server was asked",
		holds: is(421)},
	{Ends: "other 4xx", WithKey: Stored, Without: Stored, Why: "refused for what it says: saying it again changes nothing",
		holds: func(e End) bool { return e.Status/100 == 4 }},
	{Ends: "502, 504", WithKey: Uncertain, Without: Uncertain, Why: "a proxy lost the answer",
		holds: is(502, 504)},
	{Ends: "other 5xx", WithKey: Stored, Without: Uncertain, Why: "an upstream with keys stores it under the key too; on_5xx: replay stores it, retry releases it",
		holds: func(e End) bool { return e.Status/100 == 5 }, byOn5xx: true},
	{Ends: "1xx, 6xx and beyond", WithKey: Uncertain, Without: Uncertain, Why: "not an answer that HTTP knows",
		holds: func(End) bool { return true }},
}

func is(codes ...int) func(End) bool {
	return func(e End) bool {
		for _, c := range codes {
			if e.Status == c {
				return true
			}
		}
		return false
	}
}

// On5xx is what a scope says of answers of 5xx other than 502 and 504.
type On5xx string

// The choices. The default stores where the upstream takes a key, else doubts.
const (
	On5xxDefault On5xx = ""
	On5xxReplay  On5xx = "replay"
	On5xxRetry   On5xx = "retry"
)

// MeaningOf looks an end up in the table.
func MeaningOf(e End, upstreamKey bool, on On5xx) Meaning {
	for _, row := range Table {
		if !row.holds(e) {
			continue
		}
		switch {
		case row.byOn5xx && on == On5xxReplay:
			return Stored
		case row.byOn5xx && on == On5xxRetry:
			return Released
		case upstreamKey:
			return row.WithKey
		}
		return row.Without
	}
	return Uncertain
}

// State is the state that an effect settles in. An uncertain one that will not be tried again
// is in doubt.
func (m Meaning) State() store.EffectState {
	switch m {
	case Stored:
		return store.EffectDone
	case Released:
		return store.EffectFailed
	}
	return store.EffectInDoubt
}

func (m Meaning) String() string {
	switch m {
	case Stored:
		return "stored and replayed"
	case Released:
		return "released"
	}
	return "uncertain"
}
