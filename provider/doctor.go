package provider

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The bounds of one diagnosis. Bytes count once for each configured secret that they
// are hashed with.
const (
	maxTried      = 1000
	maxHashed     = 64 << 20
	maxDiagnosed  = 1 << 20 // bytes of a body
	maxNeighbours = 32
)

// Others is what a diagnosis may compare with.
type Others struct {
	Sources   []Neighbour // sources that receive from the same provider
	Catalogue *Catalogue  // nil: no other provider is tried
}

// Neighbour is another source.
type Neighbour struct {
	Name    string
	Checker *Checker
}

// Diagnose says what can be shown about a request that was refused at the time given.
// It tries one fault after the other: were it not for this one, the request would have
// passed. What no computation shows it does not claim. A nil Body was not read.
//
// The work is bounded; where keys are fetched they are asked for with r.Context.
func (c *Checker) Diagnose(r *Request, at time.Time, o Others) Diagnosis {
	d := &doctor{c: c, r: r, at: at, others: o}
	refusal := d.refusal()
	if refusal == nil {
		return Diagnosis{Cause: CannotTell}
	}
	switch {
	case refusal.Skew > 0:
		return Diagnosis{Cause: TooOld, Skew: refusal.Skew, Allowed: refusal.Allowed}
	case refusal.Skew < 0:
		return Diagnosis{Cause: TooNew, Skew: refusal.Skew, Allowed: refusal.Allowed}
	}
	for _, look := range []func(*Refusal) Diagnosis{d.secretText, d.otherSecret, d.otherURL, d.bodyChanged, d.otherProvider, d.headers} {
		if found := look(refusal); found.Cause != "" {
			found.Skew, found.Allowed = d.late.Skew, d.late.Allowed
			return found
		}
	}
	return Diagnosis{Cause: CannotTell}
}

type doctor struct {
	c      *Checker
	r      *Request
	at     time.Time
	others Others
	tried  int
	hashed int64
	late   Refusal // what is wrong with the time of the request that passed
}

// refusal is that of the request as it is; nil: there is none to be explained.
func (d *doctor) refusal() *Refusal {
	var err error
	if d.r.Body == nil || len(d.r.Body) > maxDiagnosed {
		err = d.c.Early(d.r.Method, d.r.Header)
	} else {
		in := d.c.open(d.r, d.at)
		defer in.close()
		if v := d.c.auth.verify(in); v.refusal != nil {
			err = v.refusal.outward()
		}
	}
	var r *Refusal
	errors.As(err, &r)
	return r
}

// passes tells whether a checker takes the request for proven, its time aside. It is
// false once the bounds are reached.
func (d *doctor) passes(c *Checker, r *Request) bool {
	if r.Body == nil || len(r.Body) > maxDiagnosed || d.tried >= maxTried || d.hashed >= maxHashed {
		return false
	}
	auth := computes(c.auth)
	if auth == nil {
		return false
	}
	d.tried++
	d.hashed += int64(len(r.Body)+1024) * int64(max(len(c.settings.Secrets), 1))
	in := c.open(r, d.at)
	defer in.close()
	v := auth.verify(in)
	switch {
	case v.unproven:
		return false
	case v.refusal == nil:
		return true
	case v.refusal.Reason == TimestampExpired || v.refusal.Reason == TimestampFuture:
		d.late = *v.refusal
		return true
	}
	return false
}

// computes is the part of a check that passes by a computation over the request: neither
// by an address nor by asking the provider. nil: there is none.
func computes(c check) check {
	switch c := c.(type) {
	case *ipCheck, *callbackCheck, none:
		return nil
	case when:
		if one := computes(c.check); one != nil {
			return when{one, c.fields}
		}
		return nil
	case anyOf:
		var out anyOf
		for _, one := range c {
			if one = computes(one); one != nil {
				out = append(out, one)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case allOf: // an address beside a signature still has to be right
		if !slices.ContainsFunc(c, func(one check) bool { return computes(one) != nil }) ||
			slices.ContainsFunc(c, func(one check) bool { _, asks := one.(*callbackCheck); return asks }) {
			return nil
		}
	}
	return c
}

// with is the same checker under other secrets; nil when they are of no use.
func (c *Checker) with(secrets []string) *Checker {
	if len(secrets) == 0 || len(secrets) > maxSecrets {
		return nil
	}
	out := *c
	out.settings.Secrets, out.firstSecret = secrets, secrets[0]
	b := newBinding(&out.settings, c.limit)
	var err error
	if out.auth, err = c.plan.bind(b); err != nil || !slices.Contains(b.used, true) {
		return nil
	}
	return &out
}

// otherSecret tries the secrets of the neighbours under this source's own rules.
func (d *doctor) otherSecret(*Refusal) Diagnosis {
	for i, n := range d.others.Sources {
		if i == maxNeighbours {
			break
		}
		if n.Checker == nil || n.Checker.settings.Auth != nil {
			continue
		}
		c := d.c.with(n.Checker.settings.Secrets)
		if c == nil || !d.passes(c, d.r) {
			continue
		}
		out := Diagnosis{Cause: OtherSecret, Source: n.Name, Event: c.mode(d.r)}
		if how := crossed(d.c.settings.Secrets, out.Event); how != "" {
			out.Cause, out.How = TestSecret, how
		}
		return out
	}
	return Diagnosis{}
}

// mode is what a proven request says of itself: "live", "test", or nothing.
func (c *Checker) mode(r *Request) string {
	if c.test == nil {
		return ""
	}
	in := c.open(r, r.zero())
	defer in.close()
	if c.test.holds(in) {
		return "test"
	}
	for _, f := range c.test.fields {
		if _, there := f.append(nil, in); there {
			return "live"
		}
	}
	return ""
}

// crossed tells which mode the configured secrets say they are of, when it is not the
// event's: "test" for a test secret where live events arrive.
func crossed(secrets []string, event string) string {
	if event == "" || len(secrets) == 0 {
		return ""
	}
	mode := secretMode(secrets[0])
	for _, s := range secrets[1:] {
		if secretMode(s) != mode {
			return ""
		}
	}
	if mode == event {
		return ""
	}
	return mode
}

// secretMode reads the words of a secret like "sk_test_…"; empty: it does not say.
func secretMode(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == ':' })
	for _, w := range words[:max(len(words)-1, 0)] { // the last one is chance
		switch w {
		case "test", "sandbox", "sbx", "sdbx":
			return "test"
		case "live", "prod", "production":
			return "live"
		}
	}
	return ""
}

// headers names what is missing, and what of this provider is there all the same: a
// proxy that lets some headers through may take others away.
func (d *doctor) headers(refusal *Refusal) Diagnosis {
	if refusal.Reason != MissingHeader || refusal.Detail == "" {
		return Diagnosis{}
	}
	if src, _, _ := strings.Cut(refusal.Detail, ":"); src != "header" && src != "query" && src != "form" && src != "json" {
		return Diagnosis{} // something of our own configuration
	}
	return Diagnosis{Cause: HeaderMissing, Missing: refusal.Detail, Present: present(d.c.provider, d.c.plan, d.r.Header)}
}

// present are the headers that a provider is known by and that are there.
func present(p *Provider, auth plan, h http.Header) []string {
	set := map[string]bool{}
	add := func(ph *placeholder) {
		name := strings.TrimSuffix(ph.arg, "*")
		if ph.src == srcHeader && !common(name) && len(h[name]) > 0 {
			set[name] = true
		}
	}
	auth.each(add)
	for _, list := range [][]*template{p.key, p.types} {
		for _, t := range list {
			t.each(add)
		}
	}
	out := slices.Sorted(maps.Keys(set))
	return out[:min(len(out), 6)]
}

// common are headers that say nothing about the provider.
func common(name string) bool {
	switch name {
	case "Authorization", "Content-Type", "Content-Length", "Content-Encoding", "Host", "User-Agent", "Date", "Digest", "Accept", "X-Request-Id", "X-Forwarded-For":
		return true
	}
	return false
}
