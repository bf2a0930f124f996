package provider

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

// Facts are what a person wants to know of a provider before relying on it.
type Facts struct {
	Schemes    []string      // "hmac sha256", "token"; of each alternative
	Places     []string      // where the signature or token stands: "header:Stripe-Signature"
	Messages   []string      // templates of the signed bytes
	Tolerance  time.Duration // how far the signed time may be off; 0: no time is signed
	ID         []string      // templates of the event id, tried in order; nil: acuse makes one
	Attempts   int64         // tries, the first included; 0: not known
	Horizon    time.Duration // from the first try to the last; 0: not known
	Resend     time.Duration // how long after the event a person can send it again there; 0: not known
	BodyID     bool          // the id is a digest of the body
	Batch      bool          // a request may hold several events, and ID is that of each
	Whole      bool          // they are one delivery all the same, whose id is a digest of theirs
	Window     time.Duration // how long acuse remembers the id
	WindowWhy  WindowReason
	Weaknesses []Weakness
	Confidence string // library, docs, spec: what the file was checked against
	Vectors    int    // recorded requests that the file is tested with; 0: it is not of the binary

	reads string // all templates that identity is read by
}

//go:embed proof.json
var proofText []byte

// proof is the number of test vectors of each embedded provider; a test holds it.
var proof = sync.OnceValue(func() map[string]int {
	out := map[string]int{}
	if err := json.Unmarshal(proofText, &out); err != nil {
		panic("provider: proof.json: " + err.Error()) // it is part of the binary
	}
	return out
})

// Weakness is something that the provider's contract leaves open.
type Weakness string

// The weaknesses.
const (
	WeakNoAuth   Weakness = "no_authentication"  // anyone who knows the address can send
	WeakAsked    Weakness = "asked_back"         // nothing is signed: acuse asks the provider whether the object exists
	WeakAddress  Weakness = "address_only"       // an address that others share proves little
	WeakToken    Weakness = "token"              // who learns the token can send anything
	WeakBody     Weakness = "body_not_signed"    // the signature does not cover the body
	WeakPart     Weakness = "body_partly_signed" // the signature covers only some fields of the body
	WeakChecksum Weakness = "body_by_checksum"   // the signature covers a checksum, to which another body can be fitted
	WeakReplay   Weakness = "no_signed_time"     // an old request is good for ever; only its remembered id stops it
	WeakFreeID   Weakness = "id_not_signed"      // a copy of a request under another id is a new event
	WeakNoID     Weakness = "no_id"              // repeats cannot be recognised
	WeakBodyID   Weakness = "id_is_body_hash"    // the same body twice is one event
	WeakRetryID  Weakness = "id_changes_on_retry"
	WeakResendID Weakness = "id_changes_on_resend"
)

// Facts tells what the file says.
func (p *Provider) Facts() Facts {
	f := Facts{Horizon: p.Horizon(), Resend: hours(24 * p.file.Retry.ResendDays), Confidence: p.file.Confidence, ID: p.file.ID.Key}
	if b := p.file.Batch; len(b) > 0 && len(b[0].ID) > 0 {
		f.ID, f.Batch, f.Whole = b[0].ID, true, !p.splits()
	}
	if n := p.file.Retry.Attempts; n != nil {
		f.Attempts = *n
	}
	bodyID := len(f.ID) > 0 && !slices.ContainsFunc(f.ID, func(t string) bool { return !strings.Contains(t, "{body|sha") })
	f.BodyID = bodyID
	f.Window, f.WindowWhy = p.WindowWhy(bodyID, 0)
	if p.embedded {
		f.Vectors = proof()[p.Name]
	}
	f.reads = p.file.reads()
	f.add(&p.file.Auth)
	weak := func(is bool, w Weakness) {
		if is && !slices.Contains(f.Weaknesses, w) {
			f.Weaknesses = append(f.Weaknesses, w)
		}
	}
	weak(!f.Batch && freeID(p.auth, p.key), WeakFreeID)
	weak(len(f.ID) == 0, WeakNoID)
	weak(bodyID, WeakBodyID)
	weak(p.file.ID.StableRetry != nil && !*p.file.ID.StableRetry, WeakRetryID)
	weak(p.file.ID.StableResend != nil && !*p.file.ID.StableResend, WeakResendID)
	return f
}

// add gathers what one authentication does. Of several, the weakest counts: of "any"
// an attacker takes the one that suits.
func (f *Facts) add(a *authFile) {
	weak := func(ws ...Weakness) {
		for _, w := range ws {
			if !slices.Contains(f.Weaknesses, w) {
				f.Weaknesses = append(f.Weaknesses, w)
			}
		}
	}
	scheme := a.Kind
	switch a.Kind {
	case "any":
		for i := range a.Of {
			f.add(&a.Of[i])
		}
		return
	case "all":
		f.addAll(a)
		return
	case "none":
		weak(WeakNoAuth)
	case "callback":
		if len(a.Confirm) > 0 {
			weak(WeakAsked)
		} else {
			weak(WeakNoAuth)
		}
	case "token":
		f.place(a.From)
		weak(WeakToken)
	case "basic":
		f.place("header:Authorization")
		weak(WeakToken)
	case "jwt":
		f.place(a.From)
		if a.BodyHash == nil {
			weak(WeakBody)
		}
		if a.MaxAge != nil {
			f.Tolerance = max(f.Tolerance, time.Duration(*a.MaxAge)*time.Second)
		} else if a.Leeway == nil { // who sends an exp, has a leeway in its file
			weak(WeakReplay)
		}
	case "ip":
		weak(WeakAddress, WeakBody, WeakReplay)
	default:
		scheme = strings.TrimSpace(a.Kind + " " + a.Alg + a.Hash)
		if a.Signature != nil {
			f.place(a.Signature.From...)
		}
		f.Messages = append(f.Messages, a.Message...)
		if w, is := uncovered(a.Message, f.reads); is {
			weak(w)
		}
		if slices.ContainsFunc(a.Message, func(m string) bool { return strings.Contains(m, "{body|crc32}") }) {
			weak(WeakChecksum)
		}
		if t := a.Timestamp; t != nil && t.Tolerance != nil {
			f.Tolerance = max(f.Tolerance, time.Duration(*t.Tolerance)*time.Second)
		} else if len(a.Message) > 0 {
			weak(WeakReplay)
		}
	}
	if !slices.Contains(f.Schemes, scheme) {
		f.Schemes = append(f.Schemes, scheme)
	}
}

// addAll gathers what must hold together: only what every part leaves open stays open.
func (f *Facts) addAll(a *authFile) {
	var open []Weakness
	for i := range a.Of {
		one := Facts{reads: f.reads}
		one.add(&a.Of[i])
		f.Schemes = append(f.Schemes, one.Schemes...)
		f.place(one.Places...)
		f.Messages = append(f.Messages, one.Messages...)
		f.Tolerance = max(f.Tolerance, one.Tolerance)
		if i == 0 {
			open = one.Weaknesses
			continue
		}
		open = slices.DeleteFunc(open, func(w Weakness) bool { return !slices.Contains(one.Weaknesses, w) })
	}
	f.Weaknesses = append(f.Weaknesses, open...)
}

func (f *Facts) place(from ...string) {
	for _, p := range from {
		if p != "" && !slices.Contains(f.Places, p) {
			f.Places = append(f.Places, p)
		}
	}
}
