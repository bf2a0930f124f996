package provider

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Keys gets what only the provider can give: public keys that it publishes, and answers
// to the question whether it really sent something. This package asks it for https URLs
// of hosts that the provider's file allows, and only for requests that look good
// otherwise. An implementation bounds time, size and number of what it fetches.
type Keys interface {
	// Key gives the document at a URL. The bytes are shared: nobody changes them. An
	// ErrNoSuchKey says that there is none and a newer look would not help; an
	// ErrUntrusted that what was found must not be believed; any other error that it
	// could not be had now.
	Key(ctx context.Context, r KeyRequest) ([]byte, error)
	// Ask gets a URL anew, nothing kept, with the status of the answer. An error is one of not
	// getting an answer.
	Ask(ctx context.Context, url, authorization string) (status int, body []byte, err error)
}

// KeyRequest is a document that is wanted.
type KeyRequest struct {
	URL     string   // a fragment tells documents apart that are asked for by Post
	Post    []byte   // asked for by POST with this JSON body; nil: GET
	Kind    KeyKind  // what it is
	Names   []string // of certificates: chained to a public root, for one of these names; nil: whoever holds the host vouches
	Unknown string   // a word of the refusal that says that there is no such key
	Host    string   // as the file writes it, for messages
	Newer   bool     // the document given before lacks the key that is wanted
}

// KeyKind is what a key document is.
type KeyKind int

// The kinds of key documents.
const (
	PublicKey   KeyKind = iota // PEM
	Certificate                // PEM, the leaf first
	KeySet                     // JWKS, or one JWK
)

// The errors of Keys that refuse a request.
var (
	ErrNoSuchKey = errors.New("provider: no such key")
	ErrUntrusted = errors.New("provider: certificate is not to be trusted")
)

// NoKey is the error of a request that can be neither believed nor refused now, since
// what it is checked with could not be had. The sender should come again.
type NoKey struct {
	Host string // which was asked; empty: none
	Err  error
}

func (e *NoKey) Error() string { return fmt.Sprintf("provider: no answer from %s: %v", e.Host, e.Err) }

func (e *NoKey) Unwrap() error { return e.Err }

// RetryAfter is when the sender should come again.
func (e *NoKey) RetryAfter() time.Duration {
	var w interface{ RetryAfter() time.Duration }
	if errors.As(e.Err, &w) {
		return w.RetryAfter()
	}
	return 30 * time.Second
}

// unjudged is the reason of a refusal that leaves the package as a NoKey.
const unjudged Reason = "unjudged"

func noKey(host string, err error) *Refusal {
	return &Refusal{Reason: unjudged, Signed: true, noKey: &NoKey{Host: host, Err: err}}
}

// outward is the error of a refusal.
func (r *Refusal) outward() error {
	if r.noKey != nil {
		return r.noKey
	}
	return r
}

// noKeys stands where a caller gave none.
type noKeys struct{}

var errNoKeys = errors.New("nothing is fetched here")

func (noKeys) Key(context.Context, KeyRequest) ([]byte, error) { return nil, errNoKeys }
func (noKeys) Ask(context.Context, string, string) (int, []byte, error) {
	return 0, nil, errNoKeys
}
