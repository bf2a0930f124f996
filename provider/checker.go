package provider

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// Checker is a provider with one source's settings, compiled. It is safe for use by
// several goroutines.
type Checker struct {
	provider    *Provider
	params      map[string]string
	firstSecret string
	limit       int64 // of a decoded body
	auth        check
	plan        plan
	settings    Settings // for a Rehearsal
	testKeys    []string // of a Rehearsal
	unverified  bool
	waiting     bool
	handshakes  []*handshake
	answers     []answer
	test        *match
	required    bool
	ids         ids
	types       []*template
	resources   []*template
	versions    []*template
	unit        string
	supersedes  bool
	batch       []*batchRule
	oneID       bool // the source's own id is the request's: a batch is not looked into
	splits      bool // items become events of their own
}

// Custom is the provider of a source that names none: auth comes from Settings.
func Custom() *Provider {
	return &Provider{Name: "custom", Title: "Custom", file: new(file)}
}

// Compile makes a Checker. Its errors name the field and hide values.
func (p *Provider) Compile(s Settings) (*Checker, error) {
	c := &Checker{provider: p, settings: s, params: maps.Clone(s.Params), waiting: s.Waiting, handshakes: p.shakes, answers: p.answers,
		test: p.test, required: p.file.ID.Required, unit: "", supersedes: true}
	c.limit = max(s.MaxBody, 0)
	if c.limit == 0 {
		c.limit = max(p.file.MaxBody, defaultMaxBody)
	}
	if v := p.file.Version; v != nil {
		c.unit, c.supersedes = v.Unit, v.Supersedes == nil || *v.Supersedes
	}
	if len(s.Secrets) > 0 {
		c.firstSecret = s.Secrets[0]
	}
	if err := c.setAuth(&s); err != nil {
		return nil, err
	}
	return c, c.setIdentity(&s)
}

func (r *Request) zero() time.Time { return time.Time{} }

// Early refuses a request that lacks a required signature header, before its body is
// read; nil when nothing can be said yet. GET and HEAD are never refused here.
func (c *Checker) Early(method string, h http.Header) error {
	if method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions {
		return nil
	}
	r := c.auth.early(h)
	if r == nil {
		return nil
	}
	for _, hs := range c.handshakes {
		if !hs.auth && (hs.capture == nil || c.waiting) && hs.match.possible(method, h) {
			return nil
		}
	}
	return r
}

// Methods are what the source answers besides POST: those of its handshakes.
func (c *Checker) Methods() []string {
	var out []string
	for _, h := range c.handshakes {
		for _, m := range h.match.methods {
			if m != http.MethodPost && !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// Receive judges a request: handshake, signature over the raw bytes, then identity. The
// error is a *Refusal, or a *NoKey when the request can be judged neither way now.
func (c *Checker) Receive(r *Request, now time.Time) (Result, error) {
	in := c.open(r, now)
	defer in.close()
	if res, refusal, done := c.shake(in); done {
		return result(res, refusal)
	}
	v := c.auth.verify(in)
	if v.refusal != nil {
		return result(Result{}, v.refusal)
	}
	return result(c.identify(in, v))
}

func result(res Result, refusal *Refusal) (Result, error) {
	if refusal != nil {
		return Result{}, refusal.outward()
	}
	return res, nil
}

// Identify reads identity alone, of a request that was verified before (release from
// quarantine). What makes a request doubtful stands in Quarantine.
func (c *Checker) Identify(r *Request) Result {
	in := c.open(r, r.zero())
	defer in.close()
	v := c.auth.verify(in) // for what it covers; its time is long past
	v.refusal = nil
	res, refusal := c.identify(in, v)
	if refusal != nil {
		e := c.whole(in)
		e.ID, e.NoID, e.BodyHash = "", false, false
		res.Quarantine, res.Events = refusal.Error(), []Event{e}
	}
	return res
}

// AuthHeaders are the names of headers that carry signatures, tokens or their
// timestamps: masked on pages, kept as keyed digests in rejections. A name that ends in
// "*" stands for every header that begins so.
func (c *Checker) AuthHeaders() []string { return c.authNames(srcHeader) }

// AuthQuery are the names of query parameters that carry tokens.
func (c *Checker) AuthQuery() []string { return c.authNames(srcQuery) }

func (c *Checker) authNames(src source) []string {
	set := map[string]bool{}
	c.auth.marks(func(p *placeholder) {
		if p.src == src {
			set[p.arg] = true
		}
	})
	for _, h := range c.handshakes {
		if h.from != nil && h.from.src == src {
			set[h.from.arg] = true
		}
		if h.capture != nil {
			h.capture.each(func(p *placeholder) {
				if p.src == src {
					set[p.arg] = true
				}
			})
		}
	}
	return slices.Sorted(maps.Keys(set))
}
