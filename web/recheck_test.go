package web

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/provider"
	"acuse/store"
)

var ana = store.Actor{Name: "ana", From: "10.0.0.1"}

// refusedBy sends requests to an edge that refuses them, and waits until they are kept.
type refusedBy struct {
	db   *watched
	edge *Edge
	now  time.Time
}

func (x *refusedBy) sources(list ...Source) { x.edge.SetSources(list) }

func refusing(t *testing.T, list ...Source) *refusedBy {
	x := &refusedBy{db: watch(t), now: time.Now().Add(-72 * time.Hour).Truncate(time.Millisecond)}
	x.edge = newEdge(t, EdgeOptions{Inbox: x.db, Rejections: x.db, DigestKey: []byte("key"), Now: func() time.Time { return x.now },
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, list...)
	return x
}

func (x *refusedBy) recheck(t *testing.T, q Recheck) Rechecked {
	t.Helper()
	q.By = ana
	done, err := NewRechecker(x.edge, x.db).Recheck(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// TestP5WhatIsLetInLateIsVerified: what was refused for a wrong secret is delivered once
// the right one is there, by the clock of its arrival, once; nothing else passes.
func TestP5WhatIsLetInLateIsVerified(t *testing.T) {
	t.Parallel()
	right := compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_right"}})
	wrong := compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_wrong"}})
	x := refusing(t, from(wrong, "stripe", "stripe", provider.Others{}))
	arrived := x.now
	for _, id := range []string{"evt_1", "evt_2", "evt_1"} { // a repeat is the same row
		body, h := stripeRequest(t, right, id, arrived)
		postStripe(x.edge, body, h)
		<-x.db.rejected
	}
	body, h := stripeRequest(t, compiled(t, "stripe", provider.Settings{Secrets: []string{"forger"}}), "evt_forged", arrived)
	postStripe(x.edge, body, h)
	<-x.db.rejected
	old, oldHeader := stripeRequest(t, right, "evt_old", arrived.Add(-time.Hour))
	postStripe(x.edge, old, oldHeader)
	<-x.db.rejected
	x.now = arrived.Add(72 * time.Hour)

	for _, step := range []struct {
		name string
		q    Recheck
		want Rechecked
	}{
		{"nothing changed", Recheck{Source: "stripe", Deliver: true}, Rechecked{Checked: 4}},
		{"a look with the right secret", Recheck{Source: "stripe", Secret: "whsec_right"}, Rechecked{Checked: 4, WouldVerify: 2}},
		{"a look does not deliver", Recheck{Source: "stripe", Secret: "whsec_right"}, Rechecked{Checked: 4, WouldVerify: 2}},
		{"a wider tolerance", Recheck{Source: "stripe", Secret: "whsec_right", Tolerance: 2 * time.Hour}, Rechecked{Checked: 4, WouldVerify: 3}},
		{"delivered", Recheck{Source: "stripe", Secret: "whsec_right", Deliver: true}, Rechecked{Checked: 4, WouldVerify: 2, Delivered: 2}},
		{"once", Recheck{Source: "stripe", Secret: "whsec_right", Deliver: true}, Rechecked{Checked: 2}},
	} {
		if got := x.recheck(t, step.q); got != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
	}
	list, _, err := x.db.Deliveries(t.Context(), store.DeliveryFilter{})
	if err != nil || len(list) != 2 {
		t.Fatalf("%v %+v", err, list)
	}
	d, err := x.db.Delivery(t.Context(), 1)
	if err != nil || d.EventID != "evt_1" || !d.ReceivedAt.Equal(arrived) || !d.Jobs[0].DueAt.Equal(x.now) || d.Jobs[0].Key != "stripe:evt_1:app" || d.Slot != 0 {
		t.Errorf("%v %+v", err, d)
	}
	trail, err := x.db.Trail(t.Context(), 1)
	if err != nil || len(trail) != 1 || trail[0].Act != "recheck" || trail[0].By != ana || trail[0].Reason != "refused on arrival: signature_mismatch" {
		t.Errorf("%v %+v", err, trail)
	}
	log, err := x.db.AuditLog(t.Context(), 0, 100)
	if err != nil || len(log) != 8 || log[1].Subject != "stripe" || !strings.Contains(log[1].Reason, "2 delivered") {
		t.Errorf("%v %d %+v", err, len(log), log)
	}
}

func TestP2ARecheckAndARetryMakeOneDelivery(t *testing.T) {
	t.Parallel()
	right := compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_right"}})
	wrong := compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_wrong"}})
	x := refusing(t, from(wrong, "stripe", "stripe", provider.Others{}))
	body, h := stripeRequest(t, right, "evt_1", x.now)
	postStripe(x.edge, body, h)
	<-x.db.rejected
	x.sources(from(right, "stripe", "stripe", provider.Others{}))
	if w := postStripe(x.edge, body, h); !strings.Contains(w.Body.String(), "accepted") {
		t.Fatalf("%s", w.Body)
	}
	if got := x.recheck(t, Recheck{Source: "stripe", Deliver: true}); got != (Rechecked{Checked: 1, WouldVerify: 1, Duplicates: 1}) {
		t.Errorf("%+v", got)
	}
	if got := x.recheck(t, Recheck{Source: "stripe", Deliver: true}); got != (Rechecked{}) {
		t.Errorf("the row is still there: %+v", got)
	}
}

// crashing forgets to take out what was let in, as a crash does.
type crashing struct{ *watched }

func (crashing) RemoveRejection(context.Context, int64) error { return errors.New("power cut") }

// TestP2ACrashBetweenLettingInAndTakingOut also for events to which the sender gives no id.
func TestP2ACrashBetweenLettingInAndTakingOut(t *testing.T) {
	t.Parallel()
	s := signedSource("g")
	s.Checker = &keeper{checker{secret: "old"}}
	x := refusing(t, s)
	post(x.edge, "/in/g", `{"n":1}`, "X-Sig", sign("s3cret", []byte(`{"n":1}`)))
	<-x.db.rejected
	s.Checker = &keeper{checker{secret: "s3cret"}}
	x.sources(s)
	if _, err := NewRechecker(x.edge, crashing{x.db}).Recheck(t.Context(), Recheck{Source: "g", Deliver: true}); err == nil {
		t.Fatal("no power cut")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, _ = NewRechecker(x.edge, x.db).Recheck(t.Context(), Recheck{Source: "g", Deliver: true})
		})
	}
	wg.Wait()
	totals, err := x.db.Totals(t.Context())
	if err != nil || totals.Deliveries != 1 || totals.Queued != 2 {
		t.Errorf("%v %+v", err, totals)
	}
	d, err := x.db.Delivery(t.Context(), 1)
	if err != nil || !d.Made || !strings.HasPrefix(d.EventID, "acuse-") || d.Jobs[0].Key != Key("g", d.EventID, "app") {
		t.Errorf("%v %+v", err, d)
	}
}

// keeper is the small provider, whose signature here is no token.
type keeper struct{ checker }

func (*keeper) TokenHeaders() []string { return nil }

func TestTokensAreCheckedAgainByTheirDigests(t *testing.T) {
	t.Parallel()
	for _, one := range []struct{ provider, secret, target, header, value string }{
		{"gitlab", "the-token", "/in/s", "X-Gitlab-Token", "the-token"},
		{"bearer", "the-token", "/in/s", "Authorization", "bearer the-token"},
		{"basic-auth", "user:pass", "/in/s", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("user:pass"))},
		{"query-token", "the token+", "/in/s?token=the%20token%2B&b=1", "X-None", "x"},
	} {
		t.Run(one.provider, func(t *testing.T) {
			t.Parallel()
			settings := provider.Settings{Secrets: []string{"user:configured"}}
			c := compiled(t, one.provider, settings)
			x := refusing(t, from(c, "s", one.provider, provider.Others{}))
			if w := post(x.edge, one.target, `{"id":"e1"}`, one.header, one.value, "Cookie", "a=b", "Content-Type", "application/json"); w.Code != 401 {
				t.Fatalf("%d", w.Code)
			}
			kept := <-x.db.rejected
			if text := kept.Target + string(kept.Header); strings.Contains(text, "the-token") || strings.Contains(text, "%2B") || strings.Contains(text, "dXNlcjpwYXNz") {
				t.Errorf("kept in clear: %s", text)
			}
			if got := x.recheck(t, Recheck{Source: "s", Secret: "user:else", Deliver: true}); got != (Rechecked{Checked: 1}) {
				t.Errorf("another one: %+v", got)
			}
			if got := x.recheck(t, Recheck{Source: "s", Secret: one.secret, Deliver: true}); got != (Rechecked{Checked: 1, WouldVerify: 1, Delivered: 1}) {
				t.Errorf("the right one: %+v", got)
			}
			p, err := x.db.Payload(t.Context(), 1)
			if err != nil || strings.Contains(string(p.Header)+p.Target, digestMark) || strings.Contains(string(p.Header), "Cookie") {
				t.Errorf("%v %s %s", err, p.Target, p.Header)
			}
		})
	}
}

func TestASignatureInAuthorizationIsKept(t *testing.T) {
	t.Parallel()
	c := compiled(t, "netlify", provider.Settings{Secrets: []string{"s"}})
	if names := hiddenHeaders(c); strings.Contains(strings.Join(names, ","), "X-Webhook-Signature") {
		t.Errorf("a token over the body's digest fits this body only: %v", names)
	}
	if names := hiddenHeaders(&checker{}); strings.Join(names, ",") != "X-Sig,Authorization,Proxy-Authorization,Cookie" {
		t.Errorf("%v", names)
	}
}

func TestRecheckErrors(t *testing.T) {
	t.Parallel()
	c := compiled(t, "svix", provider.Settings{Secrets: []string{"whsec_c2VjcmV0"}})
	x := refusing(t, from(c, "s", "svix", provider.Others{}), signedSource("plain"))
	for _, one := range []struct {
		q    Recheck
		want error
	}{
		{Recheck{Source: "nowhere"}, store.ErrNotFound},
		{Recheck{Source: "s", Secret: "whsec_not*base64"}, ErrSecret},
		{Recheck{Source: "s", Tolerance: -time.Second}, ErrSecret},
		{Recheck{Source: "plain", Secret: "x"}, ErrSecret},
	} {
		_, err := NewRechecker(x.edge, x.db).Recheck(t.Context(), one.q)
		if !errors.Is(err, one.want) || strings.Contains(err.Error(), "not*base64") {
			t.Errorf("%+v: %v", one.q, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	x.sources(signedSource("plain"))
	post(x.edge, "/in/plain", "{}", "X-Sig", "forged")
	<-x.db.rejected
	if _, err := NewRechecker(x.edge, x.db).Recheck(gone, Recheck{Source: "plain"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
