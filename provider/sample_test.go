package provider

import (
	"slices"
	"testing"
	"time"
)

// named are the providers that acuse promises samples for.
var named = []string{"stripe", "github", "slack", "telegram", "paymos", "standard-webhooks", "shopify", "gitlab",
	"hmac-generic", "basic-auth", "bearer", "api-key", "query-token"}

func TestSamplesAreEventsOfTheirTypeOnceSigned(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	now := time.Unix(1800000000, 0)
	for _, name := range named {
		p, ok := cat.Get(name)
		if !ok {
			t.Fatalf("no provider %s", name)
		}
		v := goodVectors(t, name)[0]
		c, err := p.Compile(Settings{Secrets: v.Secrets, Params: v.Params})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Types()) < 2 {
			t.Errorf("%s: types %v", name, p.Types())
		}
		for _, typ := range p.Types() {
			ids := map[string]bool{}
			for n := range uint64(3) {
				id := p.SampleID(n + 1700000000)
				s, err := p.Sample(typ, id)
				if err != nil {
					t.Errorf("%s %s: %v", name, typ, err)
					continue
				}
				r := &Request{Method: s.Method, Target: "/in/x", Header: s.Header, Body: s.Body}
				if _, err := c.Receive(r, now); err == nil {
					t.Errorf("%s %s passes unsigned", name, typ)
				}
				if err := c.Sign(r, 0, now); err != nil {
					t.Errorf("%s %s: %v", name, typ, err)
					continue
				}
				res, err := c.Receive(r, now)
				if err != nil || len(res.Events) != 1 {
					t.Errorf("%s %s: %v %+v", name, typ, err, res)
					continue
				}
				e := res.Events[0]
				if e.ID != id || e.Type != typ || e.Resource == "" || (name == "stripe" && !e.Test) {
					t.Errorf("%s %s: want id %s, got %+v", name, typ, id, e)
				}
				ids[e.ID] = true
			}
			if len(ids) != 3 {
				t.Errorf("%s %s: %d ids of 3", name, typ, len(ids))
			}
		}
	}
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
	other, _ := cat.Get("trello")
	if _, err := other.Sample("", ""); err == nil || len(other.Types()) != 0 {
		t.Error("a provider without samples")
	}
}
