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
	for name, want := range map[string]Weakness{"github": WeakReplay, "telegram": WeakToken, "basic-auth": WeakToken} {
		if got := facts(name).Weaknesses; !slices.Contains(got, want) {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
	for _, name := range c.Names() {
		if f := facts(name); len(f.Schemes) == 0 || f.Window <= 0 {
			t.Errorf("%s says nothing: %+v", name, f)
		}
	}
}
