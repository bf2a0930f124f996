package provider

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// compileFor compiles the provider of a vector with its own settings.
func compileFor(t testing.TB, p *Provider, v Vector, secrets ...string) *Checker {
	t.Helper()
	if len(secrets) == 0 {
		secrets = v.Secrets
	}
	s := v.Settings(p)
	s.Secrets = secrets
	c, err := p.Compile(s)
	if err != nil {
		t.Fatalf("%s: compile: %v", v.Name, err)
	}
	return c
}

// goodVectors are those that verify and are no handshake.
func goodVectors(t testing.TB, name string) []Vector {
	var out []Vector
	for _, v := range vectorsOf(t, name) {
		if v.Expect.Verdict == "ok" && v.Expect.Reason == "verified" {
			out = append(out, v)
		}
	}
	return out
}

func request(t testing.TB, v Vector) *Request {
	t.Helper()
	r, err := v.Request()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatWeSignAfreshVerifiesForEveryProvider(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	for _, name := range cat.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := cat.Get(name)
			signed := 0
			for _, v := range hintsToo(t, name) {
				c := signerFor(t, p, v)
				r := request(t, v)
				later := time.Unix(v.Now, 0).AddDate(1, 0, 0) // the old timestamp is long expired
				old := slices.Clone(r.Body)
				before := r.Body
				if err := c.Sign(r, 1, later); err != nil {
					t.Errorf("%s: sign: %v", v.Name, err)
					continue
				}
				if !bytes.Equal(before, old) {
					t.Errorf("%s: Sign wrote into the old body", v.Name)
				}
				if !c.SignsInBody() && !bytes.Equal(r.Body, old) {
					t.Errorf("%s: Sign changed the body", v.Name)
				}
				if _, err := c.Receive(r, later); err != nil {
					t.Errorf("%s: signed afresh: %v", v.Name, err)
				}
				signed++
			}
			if signed == 0 {
				t.Error("nothing was signed")
			}
		})
	}
}

// hintsToo are the good vectors, or those of a provider that signs nothing.
func hintsToo(t testing.TB, name string) []Vector {
	if out := goodVectors(t, name); len(out) > 0 {
		return out
	}
	var out []Vector
	for _, v := range vectorsOf(t, name) {
		if v.Expect.Reason == "unverified" {
			out = append(out, v)
		}
	}
	return out
}

var (
	rehearsalsLock sync.Mutex
	rehearsals     = map[string]*Checker{} // making an RSA key takes a while
)

// signerFor is the source's checker where it can sign, else its rehearsal.
func signerFor(t testing.TB, p *Provider, v Vector) *Checker {
	t.Helper()
	c := compileFor(t, p, v)
	if c.CanSign() {
		return c
	}
	rehearsalsLock.Lock()
	defer rehearsalsLock.Unlock()
	key := p.Name + string(v.Auth)
	if rehearsals[key] == nil {
		r, err := c.Rehearsal()
		if err != nil {
			t.Fatalf("%s: rehearsal: %v", v.Name, err)
		}
		rehearsals[key] = r
	}
	return rehearsals[key]
}

func TestSignNeedsNoOldSignature(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		for _, v := range goodVectors(t, name) {
			c := signerFor(t, p, v)
			if c.SignsInBody() {
				continue // the place of the signature must be there
			}
			r := request(t, v)
			for _, h := range c.AuthHeaders() {
				name, wild := strings.CutSuffix(h, "*")
				for have := range r.Header {
					if have == name || wild && strings.HasPrefix(have, name) {
						delete(r.Header, have)
					}
				}
			}
			if err := c.Sign(r, 0, time.Unix(v.Now, 0)); err != nil {
				t.Errorf("%s: sign: %v", v.Name, err)
			} else if _, err := c.Receive(r, time.Unix(v.Now, 0)); err != nil {
				t.Errorf("%s: %v", v.Name, err)
			}
		}
	}
}

func TestAListCarriesASignatureOfEverySecret(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	for _, name := range []string{"stripe", "standard-webhooks", "paymos", "pagerduty", "mollie", "recurly", "svix", "paddle"} {
		p, _ := cat.Get(name)
		v := goodVectors(t, name)[0]
		second := v.Secrets[0][:len(v.Secrets[0])-4] + "AAA=" // as good in base64 as in text
		now := time.Unix(v.Now, 0)
		for slot, order := range [][2]string{{v.Secrets[0], second}, {second, v.Secrets[0]}} {
			r := request(t, v)
			if err := compileFor(t, p, v, order[0], order[1]).Sign(r, slot+1, now); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i, s := range order {
				if _, err := compileFor(t, p, v, s).Receive(r, now); err != nil {
					t.Errorf("%s, signed with slot %d first: an app that knows secret %d alone refuses: %v", name, slot+1, i+1, err)
				}
			}
		}
	}
}

func TestAPlainHeaderCarriesTheSecretOfTheSlot(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	for _, name := range []string{"github", "slack", "telegram", "shopify", "basic-auth", "query-token"} {
		p, _ := cat.Get(name)
		v := goodVectors(t, name)[0]
		other := "other:" + v.Secrets[0]
		now := time.Unix(v.Now, 0)
		for slot, want := range []string{1: v.Secrets[0], 2: other} {
			if want == "" {
				continue
			}
			r := request(t, v)
			if err := compileFor(t, p, v, v.Secrets[0], other).Sign(r, slot, now); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			res, err := compileFor(t, p, v, want).Receive(r, now)
			if err != nil || res.Slot != 1 {
				t.Errorf("%s: slot %d: %v", name, slot, err)
			}
		}
	}
}

func TestSignSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	p, _ := folder(t).Get("standard-webhooks")
	v := goodVectors(t, "standard-webhooks")[0]
	r := request(t, v)
	r.Header.Del("webhook-id")
	err := compileFor(t, p, v).Sign(r, 1, time.Unix(v.Now, 0))
	if !errors.Is(err, errCannotSign) || !strings.Contains(err.Error(), "webhook-id") {
		t.Errorf("got %v, want an error that names webhook-id", err)
	}
}
