// Package forward hands a delivery to an app over HTTP: the request as it came in,
// signed so that the app accepts it, with acuse's own headers beside it. One Send
// is one request.
package forward

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"acuse/dial"
	"acuse/provider"
	"acuse/store"
)

// The kinds of signature a destination can ask for.
const (
	Fresh       = "fresh"       // signed again as the provider would, with a timestamp of now
	Passthrough = "passthrough" // as it came in
	Standard    = "standard"    // Standard Webhooks headers under the destination's secret, nothing removed
)

// Signer is what forward needs of a source; *provider.Checker is one.
type Signer interface {
	// CanSign tells whether Sign works.
	CanSign() bool
	// Sign signs r afresh, as provider.Checker.Sign.
	Sign(r *provider.Request, slot int, now time.Time) error
	// Item rebuilds the body that holds one item of a batch.
	Item(body []byte, part int) ([]byte, error)
	// ReadsQuery tells whether the query of a request belongs to what it says.
	ReadsQuery() bool
}

var _ Signer = (*provider.Checker)(nil)

// Options of a destination. Only URL is needed.
type Options struct {
	URL       string
	Method    string            // replaces the original method; empty keeps it
	Headers   map[string]string // set last: they win
	Signature string            // Fresh (default), Passthrough or Standard
	Secret    string            // of Standard: "whsec_" and base64
	// IdempotencyHeader names the header of the key; empty is Idempotency-Key,
	// "none" sends none.
	IdempotencyHeader string
	Timeout           time.Duration // of the whole attempt; default 30 s
	Client            *http.Client  // default dial.Client; one that follows redirects or repeats requests breaks promises
	// Signers gives the signer of a source and the public URL it is configured with
	// at the provider. nil, or a nil Signer, is a source that nobody can sign for.
	Signers func(source string) (s Signer, publicURL string)
	Now     func() time.Time // default time.Now
}

// HTTP is one destination. It is safe for use by several goroutines.
type HTTP struct {
	opt      Options
	url      *url.URL // without userinfo
	basic    string   // Authorization made of the URL's userinfo; may be empty
	standard []byte   // decoded secret
}

// New checks the options. Its errors hide values.
func New(o Options) (*HTTP, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("url: want http:// or https:// with a host")
	}
	h := &HTTP{opt: o, url: u}
	if u.User != nil {
		password, _ := u.User.Password()
		h.basic = basicAuth(u.User.Username(), password)
		u.User = nil
	}
	u.Fragment = ""
	switch o.Signature {
	case "":
		h.opt.Signature = Fresh
	case Fresh, Passthrough:
	case Standard:
		if h.standard, err = standardSecret(o.Secret); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("signature: want fresh, passthrough or standard")
	}
	if o.Timeout <= 0 {
		h.opt.Timeout = 30 * time.Second
	}
	if o.Client == nil {
		h.opt.Client = dial.Client(dial.ClientOptions{})
	}
	if o.IdempotencyHeader == "" {
		h.opt.IdempotencyHeader = "Idempotency-Key"
	}
	if o.Now == nil {
		h.opt.Now = time.Now
	}
	return h, nil
}

// Send makes one attempt. It returns when the answer was read, the timeout passed
// or ctx ended, whichever is first, and never an error beside the Result.
func (h *HTTP) Send(ctx context.Context, l store.Lease) store.Result {
	start := time.Now()
	m, err := h.compose(l)
	if err != nil {
		return store.Result{Outcome: store.Failed, Class: "compose", Error: err.Error(), Duration: time.Since(start)}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.opt.Timeout, dial.ErrTimeout)
	defer cancel()
	res := h.exchange(ctx, m)
	res.Duration = time.Since(start)
	return res
}

// message is a request ready to be sent.
type message struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	hint   string // advice for an answer that refuses the signature; may be empty
}

// compose makes the request of a lease. Its errors hold no part of the payload.
func (h *HTTP) compose(l store.Lease) (message, error) {
	in, err := store.DecodeHeader(l.Payload.Header)
	if err != nil {
		return message{}, fmt.Errorf("the kept headers cannot be read")
	}
	signer, public := h.signer(l.Delivery.Source)
	body := l.Payload.Body
	if l.Payload.Part >= 0 {
		if signer == nil {
			return message{}, fmt.Errorf("an item of a batch, and source %q is not configured: it cannot be taken out", l.Delivery.Source)
		}
		if body, err = signer.Item(body, l.Payload.Part); err != nil {
			return message{}, fmt.Errorf("item %d cannot be taken out of its batch", l.Payload.Part)
		}
	}
	r := &provider.Request{Method: l.Payload.Method, Target: l.Payload.Target, Header: in, Body: body}
	kind := h.opt.Signature
	if l.Passthrough {
		kind = Passthrough
	}
	m := message{}
	if kind == Fresh {
		if m.hint, err = sign(r, signer, public, l.Delivery.Slot, h.opt.Now()); err != nil {
			return message{}, err
		}
	}
	m.method = h.method(l.Payload.Method)
	m.url = h.target(r.Target, signer)
	m.body = r.Body
	m.header = h.header(r.Header, l)
	if kind == Standard {
		signStandard(m.header, h.standard, l.Key, m.body, h.opt.Now())
	}
	for name, value := range h.opt.Headers {
		m.header.Set(name, value)
	}
	return m, nil
}

func (h *HTTP) signer(source string) (Signer, string) {
	if h.opt.Signers == nil {
		return nil, ""
	}
	return h.opt.Signers(source)
}

func (h *HTTP) method(original string) string {
	switch {
	case h.opt.Method != "":
		return strings.ToUpper(h.opt.Method)
	case original != "":
		return original
	}
	return http.MethodPost
}

// target is the destination's URL. It is its owner's: the query of the inbound
// request goes along only where the provider puts something into it (a token, the
// event's id) or signs it, after the destination's own, which wins.
func (h *HTTP) target(inbound string, s Signer) *url.URL {
	_, query, _ := strings.Cut(inbound, "?")
	if query == "" || s == nil || !s.ReadsQuery() {
		return h.url
	}
	u := *h.url
	if u.RawQuery == "" {
		u.RawQuery = query // as it came: its bytes may be signed
		return &u
	}
	own := u.Query()
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err == nil && !own.Has(name) {
			u.RawQuery += "&" + pair
		}
	}
	return &u
}
