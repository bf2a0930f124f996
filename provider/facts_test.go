package provider

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	c, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	facts := func(name string) Facts {
		p, ok := c.Get(name)
		if !ok {
			t.Fatalf("no provider %s", name)
		}
		return p.Facts()
	}
	stripe := facts("stripe")
	if !slices.Equal(stripe.Schemes, []string{"hmac sha256"}) || !slices.Equal(stripe.Places, []string{"header:Stripe-Signature"}) ||
		!slices.Equal(stripe.ID, []string{"{json:id}"}) || stripe.Tolerance != 5*time.Minute || stripe.Horizon < 24*time.Hour || stripe.Window < stripe.Horizon {
		t.Errorf("stripe: %+v", stripe)
	}
	if len(stripe.Weaknesses) != 0 {
		t.Errorf("stripe: %v", stripe.Weaknesses)
	}
	for name, want := range map[string]Weakness{"adyen": WeakPart, "dropbox-sign": WeakPart, "aws-sns": "", "mailgun": WeakBody, "mercado-pago": WeakBody,
		"google-pubsub-push": WeakBody, "monday": WeakBody, "vonage": "", "braintree": "", "gitea": "", "paypal": "", "twilio": "", "stripe": "", "gemini": WeakBody} {
		got := Weakness("")
		for _, w := range facts(name).Weaknesses {
			if w == WeakBody || w == WeakPart {
				got = w
			}
		}
		if got != want {
			t.Errorf("%s: of the body %q stays open, want %q", name, got, want)
		}
	}
	for name, want := range map[string]Weakness{"ip-allow": WeakAddress, "gumroad": WeakAsked, "mollie-classic": WeakAsked, "netlify": WeakReplay, "github": WeakReplay, "telegram": WeakToken, "basic-auth": WeakToken} {
		if got := facts(name).Weaknesses; !slices.Contains(got, want) {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
	if got := facts("azure-event-grid").Places; !slices.Equal(got, []string{"header:Authorization", "query:code"}) {
		t.Errorf("azure-event-grid: %v", got)
	}
	for _, name := range c.Names() {
		if f := facts(name); len(f.Schemes) == 0 || f.Window <= 0 {
			t.Errorf("%s says nothing: %+v", name, f)
		}
	}
}

// What the facts say of ids is what happens: a good request sent again under another id in
// its headers or query is a new event exactly where they say that the id is not signed.
func TestAnIDIsCalledUnsignedWhereItCanBeChanged(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	flagged := 0
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		weak := p.Facts().Weaknesses
		if slices.ContainsFunc(weak, func(w Weakness) bool {
			return w == WeakBody || w == WeakPart || w == WeakAddress || w == WeakNoAuth || w == WeakAsked
		}) || (slices.Contains(weak, WeakToken) && !slices.Contains(weak, WeakFreeID)) {
			continue // the whole request can be changed
		}
		want := slices.Contains(weak, WeakFreeID)
		if want {
			flagged++
		}
		free := ""
		for _, v := range goodVectors(t, name) {
			c := compileFor(t, p, v)
			now := time.Unix(v.Now, 0)
			was, err := c.Receive(request(t, v), now)
			if err != nil {
				t.Fatal(v.Name, err)
			}
			if len(was.Events) == 0 {
				continue // an empty batch
			}
			for _, tmpl := range p.key {
				tmpl.each(func(ph *placeholder) {
					r := request(t, v)
					switch ph.src {
					case srcHeader:
						r.Header.Set(ph.arg, "another-id")
					case srcQuery:
						for _, u := range []*string{&r.Target, &r.URL} {
							if before, query, _ := strings.Cut(*u, "?"); before != "" {
								*u = before + "?" + ph.arg + "=another-id&" + query
							}
						}
					default:
						return
					}
					if res, err := c.Receive(r, now); err == nil && len(res.Events) > 0 && res.Events[0].ID != was.Events[0].ID {
						free = v.Name + " by " + ph.text
					}
				})
			}
		}
		if (free != "") != want {
			t.Errorf("%s: the id can be changed: %q; the facts say %v", name, free, want)
		}
	}
	if flagged < 15 {
		t.Errorf("only %d providers do not sign their id", flagged)
	}
}
