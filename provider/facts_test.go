package provider

import (
	"slices"
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
