// Package provider knows the contract of every sender: how it signs, which id an
// event has, how it says hello, what it wants to read back. A provider is data: a
// JSON file of the catalogue, read by one engine. The package is pure: a request
// and a time go in, a verdict, an identity or a signed request comes out. It does
// no input or output and reads no clock.
package provider

import (
	"context"
	"net/http"
	"net/netip"
	"time"
)

// Request is one HTTP request as it came in. The names in Header are canonical, as
// net/http makes them.
type Request struct {
	Method string
	Target string // path and query as received: "/in/stripe?x=1"
	URL    string // the public URL as configured at the provider, with the query received; empty: not known
	Host   string
	Header http.Header
	Body   []byte     // raw bytes
	Remote netip.Addr // the sender, as believed

	// Context bounds the wait for keys that have to be fetched; nil: only Keys does.
	Context context.Context
	// Capturing: a person has opened the window in which a handshake may bring a secret.
	Capturing bool
}

func (r *Request) context() context.Context {
	if r.Context == nil {
		return context.Background()
	}
	return r.Context
}

// Settings are what a user configured for one source.
type Settings struct {
	Secrets   []string          // any may match
	Params    map[string]string // {param:name}
	Tolerance time.Duration     // 0: the file's
	Auth      []byte            // JSON of SCHEMA section 2 that replaces the file's auth; nil: the file's
	Unsigned  bool              // replaces the file's auth by none
	ID        *IDRule           // replaces the file's id; nil: the file's
	Type      []string          // templates that replace the file's; nil: the file's
	Resource  []string          // likewise
	Batch     string            // "split" (default) or "whole"
	Waiting   bool              // has no secret yet: a handshake will bring it
	MaxBody   int64             // bounds a decoded body; 0: the file's, else 1 MiB
	Keys      Keys              // gets keys that the provider publishes; nil: what needs one is not judged (NoKey)
}

// IDRule says where the event id stands: exactly one of its fields is set.
type IDRule struct {
	Template string   // one template
	First    []string // the first that yields a value
	Join     []string // all of them, joined without ambiguity; each must yield a value
}

// Result is what a good request says.
type Result struct {
	Handshake  *Reply // set: answer with it and store nothing
	Then       string // a URL of an allowed host, to be got once after the answer
	Captured   string // a secret that the handshake brought: it verifies nothing until a person confirms it
	Slot       int    // which secret verified, from 1; 0 when none is used
	Unverified bool   // nobody vouches for it: the source has no authentication, or the event is but a hint
	Events     []Event
	Empty      bool // an empty batch: answer 2xx, store nothing
	// Quarantine is why a verified request cannot be identified or split. Then
	// Events holds one entry for the whole body with an empty ID.
	Quarantine string
}

// Event is one thing that happened.
type Event struct {
	ID       string
	NoID     bool // the provider sends none that is usable: the caller makes one up
	Type     string
	Resource string
	Version  string
	Unit     string // of Version: s, ms, rfc3339, int, string
	// Supersedes is false for versions that order events but of which a higher one does
	// not replace a lower one: ids, counters.
	Supersedes bool
	Test       bool   // the file's `test` says so
	BodyHash   bool   // ID is a digest of the body: keep it for the retry horizon only
	Part       int    // index of the batch item; -1 is the whole body
	Bytes      []byte // the item's bytes, a slice of the body
}

// Reply is an answer in the provider's own terms.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Reason is a machine word of SCHEMA section 5: why a request was refused.
type Reason string

// The reasons of a refusal.
const (
	MissingHeader     Reason = "missing_header"
	MalformedHeader   Reason = "malformed_header"
	SignatureMismatch Reason = "signature_mismatch"
	TokenMismatch     Reason = "token_mismatch"
	TimestampExpired  Reason = "timestamp_expired"
	TimestampFuture   Reason = "timestamp_future"
	KeyUntrusted      Reason = "key_untrusted"
	ClaimMismatch     Reason = "claim_mismatch"
	MalformedBody     Reason = "malformed_body"
	IPNotAllowed      Reason = "ip_not_allowed"
	NotConfirmed      Reason = "not_confirmed" // the provider was asked and knows nothing of it
	// Two that the edge answers with a status of their own: 415 and 413.
	UnsupportedEncoding Reason = "unsupported_encoding" // signed_over decoded, and this Content-Encoding cannot be undone
	TooLarge            Reason = "too_large"            // decoded bytes or batch items over the limit
)

// Refusal is the error of a request that did not pass. Its text holds no secret,
// no signature and no part of a body.
type Refusal struct {
	Reason Reason
	Detail string        // which header, field or number: "header:Stripe-Signature"
	Skew   time.Duration // signed time against ours, where that is what is wrong
	// Allowed is how large Skew may be.
	Allowed time.Duration
	Signed  bool   // a well-formed signature was there
	noKey   *NoKey // it is none, then: the request could not be judged
}

func (r *Refusal) Error() string {
	if r.Detail == "" {
		return "provider: " + string(r.Reason)
	}
	return "provider: " + string(r.Reason) + ": " + r.Detail
}
