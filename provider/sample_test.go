package provider

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// sampled compiles a provider with the secrets and params of one of its vectors; where
// only the provider can sign, for a rehearsal.
func sampled(t *testing.T, p *Provider) *Checker {
	t.Helper()
	s := Settings{Unsigned: p.unsigned()}
	if good := goodVectors(t, p.Name); len(good) > 0 {
		s.Secrets, s.Params = good[0].Secrets, good[0].Params
	}
	if needsSecret(p.auth) && !s.Unsigned && len(s.Secrets) == 0 {
		s.Secrets = []string{"client:key"} // with which the provider is asked
	}
	c, err := p.Compile(s)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	if !c.CanSign() && !c.unverified {
		if c, err = c.Rehearsal(); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
	}
	return c
}

// sampleEvents judges a sample as the edge would. Where only the provider can sign, a
// rehearsal does.
func sampleEvents(t *testing.T, c *Checker, s Sample) []Event {
	t.Helper()
	now := time.Unix(1800000000, 0)
	r := &Request{Method: s.Method, Target: "/in/x?" + s.Query, URL: "https://hooks.example.org/in/x?" + s.Query, Header: s.Header, Body: s.Body}
	if s.Query == "" {
		r.Target, r.URL = "/in/x", "https://hooks.example.org/in/x"
	}
	if !c.unverified {
		if _, err := c.Receive(r, now); err == nil {
			t.Errorf("%s %s passes unsigned", c.provider.Name, s.Type)
		}
	}
	if c.CanSign() {
		if err := c.Sign(r, 1, now); err != nil {
			t.Errorf("%s %s: %v", c.provider.Name, s.Type, err)
			return nil
		}
	}
	res, err := c.Receive(r, now)
	if err != nil || res.Handshake != nil || res.Quarantine != "" {
		t.Errorf("%s %s: %v %+v", c.provider.Name, s.Type, err, res)
	}
	return res.Events
}

func TestEveryProviderHasSamplesThatAreEventsOfTheirType(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		c := sampled(t, p)
		if len(p.Types()) == 0 {
			t.Errorf("%s has no sample", name)
		}
		for _, typ := range p.Types() {
			seen := map[string]bool{}
			for n := range uint64(3) {
				id := p.SampleID(n + 1700000000)
				s, err := p.Sample(typ, id)
				if err != nil {
					t.Errorf("%s %s: %v", name, typ, err)
					continue
				}
				events := sampleEvents(t, c, s)
				if len(events) == 0 {
					t.Errorf("%s %s: no event", name, typ)
					continue
				}
				checkSample(t, p, typ, id, events)
				for _, e := range events {
					if seen[e.ID] && !e.NoID {
						t.Errorf("%s %s: the id %s came twice", name, typ, e.ID)
					}
					seen[e.ID] = true
				}
			}
		}
	}
}

// checkSample holds what a sample says against what the provider's file promises.
func checkSample(t *testing.T, p *Provider, typ, id string, events []Event) {
	t.Helper()
	e := events[0]
	plain := len(p.batch) == 0 && len(p.key) > 0 && p.samples[typ].ID == ""
	switch {
	case len(p.key) == 0 && len(p.batch) == 0:
		if !e.NoID {
			t.Errorf("%s %s: the file knows no id, yet it is %q", p.Name, typ, e.ID)
		}
	case e.NoID || e.ID == "":
		t.Errorf("%s %s: no id", p.Name, typ)
	case plain && e.ID != id:
		t.Errorf("%s %s: want id %s, got %s", p.Name, typ, id, e.ID)
	case !plain && !e.BodyHash && !digest(e.ID) && !strings.Contains(e.ID, id):
		t.Errorf("%s %s: the id %s does not hold %s", p.Name, typ, e.ID, id)
	}
	if (len(p.types) > 0 || len(p.batch) > 0) && e.Type != typ {
		t.Errorf("%s %s: type %q", p.Name, typ, e.Type)
	}
	if (len(p.resource) > 0 || len(p.batch) > 0) && e.Resource == "" {
		t.Errorf("%s %s: no resource", p.Name, typ)
	}
	if p.test != nil && !e.Test {
		t.Errorf("%s %s: the provider has test events, and this is none", p.Name, typ)
	}
}

// digest tells whether an id is or ends with a SHA-256 in hex.
func digest(id string) bool {
	return len(id) >= 64 && strings.Trim(id[len(id)-64:], "0123456789abcdef") == ""
}

func TestSamplesAreAsRichAsRealBodies(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		for typ, f := range p.samples {
			n := len(f.Form)
			gjson.ParseBytes(f.Body).ForEach(func(_, v gjson.Result) bool { n += leaves(v); return true })
			for _, field := range f.Form {
				n += leaves(gjson.ParseBytes(field)) - 1
			}
			if n <= 3 && !small[name] {
				t.Errorf("%s %s: %d values", name, typ, n)
			}
		}
	}
}

// small are the providers whose real bodies say next to nothing: "id=tr_…", the names of
// accounts that changed, a form field of packed XML.
var small = map[string]bool{"mollie-classic": true, "dropbox": true, "airtable": true, "braintree": true}

func leaves(v gjson.Result) int {
	if !v.IsObject() && !v.IsArray() {
		return 1
	}
	n := 0
	v.ForEach(func(_, v gjson.Result) bool { n += leaves(v); return true })
	return n
}

func TestSamplesDoNotShareTheirBytes(t *testing.T) {
	t.Parallel()
	p, _ := folder(t).Get("stripe")
	a, err := p.Sample("invoice.paid", "")
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(a.Body)
	clear(a.Body)
	a.Header.Set("User-Agent", "x")
	b, err := p.Sample("invoice.paid", "")
	if err != nil || string(b.Body) != string(want) || b.Header.Get("User-Agent") == "x" {
		t.Errorf("%v %s", err, b.Body)
	}
}

func TestSampleErrors(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	p, _ := cat.Get("telegram")
	if _, err := p.Sample("message", "evt_x"); err == nil {
		t.Error("telegram took an id that is no number")
	}
	if _, err := p.Sample("nope", ""); err == nil {
		t.Error("an unknown type")
	}
	if _, err := (&Provider{Name: "own"}).Sample("", ""); !errors.Is(err, ErrNoSample) {
		t.Errorf("a provider without samples: %v", err)
	}
	hubspot, _ := cat.Get("hubspot")
	if _, err := hubspot.Sample("", "evt_x"); err == nil {
		t.Error("hubspot took an id that is no number")
	}
}
