package admin

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"acuse/provider"
)

// TestStep is one step of a test event.
type TestStep struct {
	Step string // signed, accepted, leased, delivered, failed, queued, kept
	Says Says
	Ms   int64
	OK   bool
}

// testLine is a step as the API tells it.
type testLine struct {
	Step string `json:"step"`
	Text string `json:"text"`
	Ms   int64  `json:"ms"`
	OK   bool   `json:"ok"`
}

// Says is a sentence whose language is not known yet: the key of a word, and what goes
// into its gaps: strings, whole numbers, an Outcome, a provider.Reason.
type Says struct {
	Key  string
	Args []any
}

// Outcome is how an attempt ended, as store.Result has it.
type Outcome struct {
	Status int
	Class  string
}

// What the steps of a test event say, and why one ends early. After each, its gaps.
const (
	SaysSecret    = "test.says.secret"     // slot, of how many
	SaysTestKey   = "test.says.test_key"   // only the provider could sign
	SaysUnsigned  = "test.says.unsigned"   // nothing is signed
	SaysAnswered  = "test.says.answered"   // numbers of deliveries, status
	SaysLeased    = "test.says.leased"     // kind of worker
	SaysDelivered = "test.says.delivered"  // destination, Outcome
	SaysFailed    = "test.says.failed"     // destination, attempt, Outcome
	SaysWaits     = "test.says.waits"      // a worker has to lease it
	SaysNowhere   = "test.says.nowhere"    // the source has no destination
	SaysNoSource  = "test.says.no_source"  // name
	SaysNoSample  = "test.says.no_sample"  // type, the types there are
	SaysNoSamples = "test.says.no_samples" // provider
	SaysRefused   = "test.says.refused"    // provider.Reason
	SaysNoEvent   = "test.says.no_event"   // the source cannot tell which event a sample is
	SaysNoAnswer  = "test.says.no_answer"  // of the public listener
	SaysStatus    = "test.says.status"     // of the public listener's answer
	SaysLost      = "test.says.lost"       // the archive does not have it
	SaysGoesOn    = "test.says.goes_on"    // number of the delivery, seconds
	saysBroken    = "test.says.broken"     // only the log knows more
)

// TestError is why a test event did not come to its end, where a person can do something
// about it. The cause is for the log.
type TestError struct {
	Says  Says
	Cause error // may be nil
}

func (e *TestError) Error() string {
	text := strings.TrimPrefix(e.Says.Key, "test.says.")
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap is the cause.
func (e *TestError) Unwrap() error { return e.Cause }

// saysOf is what can be told of an error of a test.
func saysOf(err error) Says {
	var e *TestError
	if errors.As(err, &e) {
		return e.Says
	}
	return Says{Key: saysBroken}
}

// testError puts an error of a test into words.
func (l *locale) testError(err error) string { return l.says(saysOf(err)) }

// noteTest logs what the person who sent a test cannot be told.
func (a *Admin) noteTest(source string, err error) {
	var e *TestError
	if err != nil && (!errors.As(err, &e) || e.Cause != nil) {
		a.opt.Log.Warn("test event", "source", source, "err", err.Error())
	}
}

// says puts a sentence into words.
func (l *locale) says(s Says) string {
	args := make([]any, len(s.Args))
	for i, arg := range s.Args {
		switch v := arg.(type) {
		case Outcome:
			arg = cmp.Or(l.class(v.Status, v.Class), "–")
		case provider.Reason:
			arg = cmp.Or(l.known("why.", string(v)), string(v))
		}
		args[i] = arg
	}
	return l.T(s.Key, args...)
}

// asked is the language that a caller of the API wants its sentences in: English, unless
// it says lang=es.
func (a *Admin) asked(r *http.Request) *locale {
	if l := a.locales[r.URL.Query().Get("lang")]; l != nil {
		return l
	}
	return a.locales["en"]
}
