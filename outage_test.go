package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestAppDownThenUp: while the app refuses connections every event waits, visibly;
// once it is up, all arrive, each under one idempotency key over all its attempts.
func TestAppDownThenUp(t *testing.T) {
	t.Parallel()
	app := newClosedApp(t)
	// The last of these waits is long, so that a page can be looked at meanwhile.
	p := begin(t, stripe("app")+fmt.Sprintf("destinations:\n  app:\n    url: %s\n    retry: {schedule: [1s, 4s, 4s, 4s, 4s], jitter: 0}\n", app.URL))
	b := p.login()
	const events = 2 // fewer than make an outage of it: each is tried by its own schedule
	ids := map[string]int64{}
	for i := range events {
		event := fmt.Sprintf("evt_%d", i)
		ids[event] = p.event(event)
	}
	for _, id := range ids {
		until(t, "two attempts failed", func() bool { return p.delivery(id).outcomes() == "failed failed" })
		var d struct {
			State string
			Jobs  []struct {
				State     string
				DueAt     time.Time `json:"due_at"`
				Attempts  int
				LastError string `json:"last_error"`
			}
		}
		p.api("GET", fmt.Sprintf("/api/v1/deliveries/%d", id), nil).read(t, &d)
		j := d.Jobs[0]
		if wait := time.Until(j.DueAt); d.State != "queued" || j.State != "queued" || wait <= 0 || wait > 4*time.Second {
			t.Fatalf("delivery %s, job %s, due in %v", d.State, j.State, wait)
		}
		if !strings.Contains(strings.ToLower(j.LastError), "refused") {
			t.Errorf("the error says %q", j.LastError)
		}
		retryAt := regexp.MustCompile(`Retry at \d\d:\d\d:\d\d`)
		page := b.open(fmt.Sprintf("/deliveries/%d", id))
		if page.is(t, 200, "Connection refused", "Is the app running on "); !retryAt.Match(page.Body) {
			t.Errorf("the page of #%d says nothing of the next attempt", id)
		}
		if list := b.open("/deliveries"); !retryAt.Match(list.Body) {
			t.Error("the list says nothing of the next attempt")
		}
	}
	app.open()
	for event, id := range ids {
		until(t, event+" is delivered", func() bool { return p.delivery(id).State == "delivered" })
		calls := app.given(event)
		if len(calls) != 1 {
			t.Errorf("%s was given %d times", event, len(calls))
		}
		for _, c := range calls {
			if k := c.Header["Idempotency-Key"]; len(k) != 1 || k[0] != "stripe:"+event+":app" {
				t.Errorf("%s: keys %q", event, k)
			}
			if n := c.Header.Get("Acuse-Attempt"); n != fmt.Sprint(len(p.delivery(id).Attempts)) {
				t.Errorf("%s: attempt %s of %s", event, n, p.delivery(id).outcomes())
			}
			if err := c.signed(); err != nil {
				t.Errorf("%s: %v", event, err)
			}
		}
	}
	b.open(fmt.Sprintf("/deliveries/%d", ids["evt_0"])).is(t, 200, "Delivered", "Attempt 3")
	b.open("/").is(t, 200, "All is well")
}

// TestOneKeyOverAllAttempts: an app that fails in every way it can sees one key.
func TestOneKeyOverAllAttempts(t *testing.T) {
	t.Parallel()
	app := newApp(t, failing(3))
	p := begin(t, stripe("app")+"destinations:\n"+destination("app", app.URL))
	id := p.event("evt_1")
	until(t, "it is delivered", func() bool { return p.delivery(id).State == "delivered" })
	calls := app.given("evt_1")
	if len(calls) != 4 || p.delivery(id).outcomes() != "failed failed failed succeeded" {
		t.Fatalf("%d calls, %s", len(calls), p.delivery(id).outcomes())
	}
	for i, c := range calls {
		if k := c.Header["Idempotency-Key"]; len(k) != 1 || k[0] != "stripe:evt_1:app" {
			t.Errorf("attempt %d: keys %q", i+1, k)
		}
		if err := c.signed(); err != nil || i > 0 && c.Header.Get("Stripe-Signature") == calls[0].Header.Get("Stripe-Signature") {
			t.Errorf("attempt %d is not signed afresh: %v", i+1, err)
		}
	}
	r := p.api("POST", fmt.Sprintf("/api/v1/deliveries/%d/resend", id), map[string]any{"reason": "again"})
	r.is(t, 202, `"idempotency_key":"stripe:evt_1:app"`)
	until(t, "it is sent again", func() bool { return app.times("evt_1") == 5 })
	if c := app.given("evt_1")[4]; c.Header.Get("Idempotency-Key") != "stripe:evt_1:app" || c.Header.Get("Acuse-Resend") == "" {
		t.Errorf("the resend: %v", c.Header)
	}
}
