package admin

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"acuse/store"
)

// arrival is an event to seed.
type arrival struct {
	name, source, provider, id, typ string
	at                              time.Time
	header                          http.Header
	target                          string
	body                            []byte
	to                              []string
	slot                            int
	test                            bool
	quarantine                      string
	resource                        string
}

// accept stores an event; errors stop the seed.
func (w *world) accept(ctx context.Context, a arrival) (int64, error) {
	if a.header == nil {
		a.header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"}}
	}
	if a.target == "" {
		a.target = "/in/" + a.source
	}
	ev := store.Event{ID: a.id, Type: a.typ, Part: -1, Size: len(a.body), Window: 7 * 24 * time.Hour, Test: a.test, Quarantine: a.quarantine, Resource: a.resource}
	if a.quarantine == "" {
		for _, d := range a.to {
			ev.Jobs = append(ev.Jobs, store.NewJob{Destination: d, Key: a.source + ":" + a.id + ":" + d, State: store.Queued})
		}
	}
	out, err := w.db.Accept(ctx, store.Arrival{Source: a.source, Provider: a.provider, ReceivedAt: a.at, Remote: "3.18.12.63", Method: "POST", Target: a.target,
		Header: store.EncodeHeader(a.header), Body: a.body, Slot: a.slot, AckMicros: 3900, Events: []store.Event{ev}})
	if err != nil {
		return 0, err
	}
	if a.name != "" {
		w.id[a.name] = out[0].Delivery
	}
	return out[0].Delivery, nil
}

// try leases the one due job of a destination and settles it.
func (w *world) try(ctx context.Context, dest string, at time.Time, state store.JobState, due time.Time, reason store.DeadReason, r store.Result) error {
	ls, err := w.db.Lease(ctx, store.LeaseQuery{Destination: dest, Owner: "n1/4f2a/http", Max: 1, TTL: time.Minute, Now: at})
	if err != nil {
		return err
	}
	if len(ls) != 1 {
		return fmt.Errorf("%d jobs of %s are due", len(ls), dest)
	}
	return w.db.Settle(ctx, store.Settlement{Job: ls[0].Job, Token: ls[0].Token, At: at.Add(r.Duration), State: state, Due: due, Reason: reason, Result: r})
}

var good = store.Result{Outcome: store.Succeeded, Status: 200, Duration: 84 * time.Millisecond, Connect: time.Millisecond, FirstByte: 80 * time.Millisecond,
	Header: []byte(`{"Content-Type":["text/plain"]}`), Body: []byte("ok")}

func bad(status int, class, text string) store.Result {
	return store.Result{Outcome: store.Failed, Status: status, Class: class, Error: text, Duration: 1200 * time.Millisecond}
}

// run lets a job fail n times and then end; the last result decides.
func (w *world) run(ctx context.Context, dest string, at time.Time, n int, fail store.Result, end store.JobState, last store.Result, due time.Time) error {
	for i := range n {
		next := at.Add(time.Duration(i+1) * 30 * time.Second)
		if err := w.try(ctx, dest, at.Add(time.Duration(i)*30*time.Second), store.Queued, next, 0, fail); err != nil {
			return err
		}
	}
	return w.try(ctx, dest, at.Add(time.Duration(n)*30*time.Second), end, due, store.Exhausted, last)
}

// seed fills the archive. The ordinary ones come first, then those with a story.
func (w *world) seed(ctx context.Context, ordinary int) error {
	now := w.now().UTC().Truncate(time.Millisecond)
	at := func(min float64) time.Time { return now.Add(-time.Duration(min * float64(time.Minute))) }
	app := []string{"app"}
	for i := range ordinary {
		a := arrival{source: "stripe", provider: "stripe", id: fmt.Sprintf("evt_1QK%07dXyZ", i), typ: []string{"invoice.paid", "charge.succeeded", "customer.updated"}[i%3],
			at: at(700 + 3*float64(ordinary-i)), body: fmt.Appendf(nil, `{"id":"evt_1QK%07dXyZ","object":"event","livemode":true}`, i), to: app, slot: 1, resource: "in_" + fmt.Sprint(i)}
		if _, err := w.accept(ctx, a); err != nil {
			return err
		}
		if err := w.try(ctx, "app", a.at.Add(5*time.Millisecond), store.Delivered, time.Time{}, 0, good); err != nil {
			return err
		}
	}
	for _, f := range []func(context.Context, func(float64) time.Time) error{w.seedHostile, w.seedStories, w.seedRejections} {
		if err := f(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

const invoice = `{
  "id": "evt_1QK9rS2eZvKYlo2C",
  "object": "event",
  "api_version": "2026-08-27.basil",
  "created": 1796047391,
  "data": {
    "object": {
      "id": "in_1QK9rR2eZvKYlo2C",
      "amount_paid": 129900,
      "currency": "mxn",
      "customer": "cus_R2eZvKYlo2CQK9",
      "customer_email": "lucía@ejemplo.mx",
      "lines": {"data": [{"id": "il_1", "amount": 129900, "description": "Plan anual ñandú"}], "has_more": false},
      "big": 12345678901234567890,
      "rate": 1.10e+2
    }
  },
  "livemode": true,
  "pending_webhooks": 1,
  "type": "invoice.paid"
}`

func (w *world) seedStories(ctx context.Context, at func(float64) time.Time) error {
	sig := func(extra ...string) http.Header {
		h := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"},
			"Stripe-Signature": {"t=1796047391,v1=case-SECRET-G"}, "Accept-Encoding": {"gzip"}, "Content-Length": {"1532"}}
		for i := 0; i+1 < len(extra); i += 2 {
			h[extra[i]] = []string{extra[i+1]}
		}
		return h
	}
	steps := []func() error{
		func() error { // dead: the app answers 500, twelve times
			for i := range 7 {
				if _, err := w.accept(ctx, arrival{name: "dead", source: "stripe", provider: "stripe", id: fmt.Sprintf("evt_1QK8aa%d2eZvKYlo2C", i), typ: "charge.refunded",
					at: at(300 - float64(i)*10), header: sig(), body: []byte(invoice), to: []string{"app"}, slot: 2, resource: "ch_3QK8"}); err != nil {
					return err
				}
				boom := bad(500, "status", "the app answered 500")
				boom.Header = store.EncodeHeader(http.Header{"Content-Type": {"text/html"}, "X-E": {"<svg onload=alert(5)>"}, "Set-Cookie": {"s=case-SECRET-F"}})
				boom.Body = []byte("<script>alert(4)</script>")
				if err := w.run(ctx, "app", at(299.9-float64(i)*10), 11, boom, store.Dead, boom, time.Time{}); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { // refused connections, two jobs, one taken
			if _, err := w.accept(ctx, arrival{name: "two", source: "github", provider: "github", id: "72d3162e-cc78-11e3-81ab-4c9367dc0958", typ: "push", at: at(200),
				header: http.Header{"Content-Type": {"application/json"}, "X-Hub-Signature-256": {"sha256=case-SECRET-G"}, "User-Agent": {"GitHub-Hookshot/044aadd"}, "X-Github-Event": {"push"}},
				body:   []byte(`{"ref":"refs/heads/main","commits":[{"id":"3b09aa5","message":"Fix it"}]}`), to: []string{"agent", "app"}, slot: 1}); err != nil {
				return err
			}
			if err := w.try(ctx, "agent", at(199.9), store.Delivered, time.Time{}, 0, store.Result{Outcome: store.Succeeded, Duration: 2 * time.Second, Worker: "token agent-1"}); err != nil {
				return err
			}
			no := bad(0, "refused", "connection refused")
			no.Duration = 3 * time.Millisecond
			return w.run(ctx, "app", at(199.9), 11, no, store.Dead, no, time.Time{})
		},
		func() error { // delivered on the third try, with duplicates
			a := arrival{name: "paid", source: "stripe", provider: "stripe", id: "evt_1QK9rS2eZvKYlo2C", typ: "invoice.paid", at: at(42),
				header: sig("X-Forwarded-For", "3.18.12.63"), body: []byte(invoice), to: []string{"app"}, slot: 2, resource: "in_1QK9rR2eZvKYlo2C"}
			if _, err := w.accept(ctx, a); err != nil {
				return err
			}
			if err := w.run(ctx, "app", at(41.99), 2, bad(503, "status", "the app answered 503"), store.Delivered, good, time.Time{}); err != nil {
				return err
			}
			for range 3 {
				a.at = at(31)
				if _, err := w.accept(ctx, a); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { // cancelled by a person
			id, err := w.accept(ctx, arrival{name: "cancelled", source: "stripe", provider: "stripe", id: "evt_1QK9c2eZvKYlo2C", typ: "customer.subscription.trial_will_end", at: at(33),
				header: sig(), body: []byte(`{"id":"evt_1QK9c"}`), to: []string{"app"}, slot: 1})
			if err != nil {
				return err
			}
			_, err = w.db.Cancel(ctx, id, "", store.Actor{Name: "ana", From: "127.0.0.1"}, at(32))
			return err
		},
		func() error { // quarantined
			_, err := w.accept(ctx, arrival{name: "quarantined", source: "stripe", provider: "stripe", typ: "", at: at(28), header: sig(), body: []byte(`{"object":"event"}`), slot: 1,
				quarantine: "id: no value at json:$.event.uuid"})
			return err
		},
		func() error { // a test event
			if _, err := w.accept(ctx, arrival{name: "test", source: "stripe", provider: "stripe", id: "evt_acuse_test_01J", typ: "invoice.paid", at: at(20), header: sig(),
				body: []byte(invoice), to: []string{"app"}, slot: 1, test: true}); err != nil {
				return err
			}
			return w.try(ctx, "app", at(19.99), store.Delivered, time.Time{}, 0, good)
		},
		func() error { // waits for a retry
			if _, err := w.accept(ctx, arrival{name: "retry", source: "stripe", provider: "stripe", id: "evt_1QK9zz2eZvKYlo2C", typ: "payment_intent.payment_failed", at: at(6), header: sig(),
				body: []byte(invoice), to: []string{"app"}, slot: 1, resource: "pi_3QK9zz"}); err != nil {
				return err
			}
			slow := bad(0, "timeout", "no answer within 30s")
			slow.Duration = 30 * time.Second
			return w.run(ctx, "app", at(5.9), 3, bad(503, "status", "the app answered 503"), store.Queued, slow, at(-14))
		},
		func() error { // leased by an agent right now
			if _, err := w.accept(ctx, arrival{name: "leased", source: "bot", provider: "telegram", id: "815172635", typ: "message", at: at(1),
				header: http.Header{"Content-Type": {"application/json"}, "X-Telegram-Bot-Api-Secret-Token": {"case-SECRET-A"}, "Authorization": {"Bearer case-SECRET-E"}, "Cookie": {"s=case-SECRET-F"}},
				body:   []byte(`{"update_id":815172635,"message":{"text":"¿Dónde está mi pedido? 📦"}}`), to: []string{"agent"}, slot: 1}); err != nil {
				return err
			}
			_, err := w.db.Lease(ctx, store.LeaseQuery{Destination: "agent", Owner: "n1/4f2a/pull", Max: 1, TTL: 5 * time.Minute, Now: at(0.9)})
			return err
		},
	}
	for i, f := range steps {
		if err := f(); err != nil {
			return fmt.Errorf("story %d: %w", i, err)
		}
	}
	return nil
}

// hostileBody is that of case adm-01.
const hostileBody = `{"id":"<img src=x onerror=alert(1)>","</script><script>alert(2)</script>":"\u003cscript\u003e","u":"javascript:alert(3)"}`

func (w *world) seedHostile(ctx context.Context, at func(float64) time.Time) error {
	deep := strings.Repeat(`{"a":[`, 5000) + strings.Repeat(`]}`, 5000)
	list := []arrival{
		{name: "xss", id: "<img src=x onerror=alert(1)>", typ: `"><script>alert(1)</script>`, target: "/in/sensor?q=<script>alert(8)</script>", body: []byte(hostileBody),
			header: http.Header{"Content-Type": {"text/html"}, "User-Agent": {"<script>alert(6)</script>"}, `X-Name"><b>`: {"v"}, "X-Ok": {`"><script>alert(7)</script>`}}},
		{name: "broken", id: "broken-1", typ: "order.created", body: []byte("{\n  \"id\": \"broken-1\",\n  \"total\": 12,5\n}\n")},
		{name: "big", id: "big-1", typ: "export.finished", body: []byte(`{"rows":[` + strings.TrimSuffix(strings.Repeat(`{"id":98765432109876543210,"name":"fila"},`, 50000), ",") + `]}`)},
		{name: "binary", id: "bin-1", typ: "blob", body: append([]byte{0x1f, 0x8b, 0, 0xff, 0xfe}, bytes.Repeat([]byte{0, 1, 2, 0x80}, 3000)...), header: http.Header{"Content-Type": {"application/octet-stream"}}},
		{name: "rtl", id: "rtl-\u202egpj.exe", typ: "file\u202e\u200fexe.gpj", body: []byte(`{"name":"invoice` + "\u202e" + `fdp.exe","ok":true}`)},
		{name: "deep", id: "deep-1", typ: "nested", body: []byte(deep)},
		{name: "empty", id: "empty-1", typ: "", body: []byte{}},
		{name: "long", id: strings.Repeat("x", 1500), typ: strings.Repeat("very.long.type.", 30), body: []byte(`{"k":"` + strings.Repeat("w", 6000) + `"}`)},
		{name: "token", source: "q", provider: "query-token", id: "tok-1", typ: "ping", target: "/in/q?t=case-SECRET-B&ok=1", body: []byte(`{}`)},
	}
	for i, a := range list {
		if a.source == "" {
			a.source = "sensor"
		}
		a.at, a.to = at(640-float64(i)), []string{"app"}
		if _, err := w.accept(ctx, a); err != nil {
			return err
		}
		if err := w.try(ctx, "app", a.at.Add(time.Millisecond), store.Delivered, time.Time{}, 0, good); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) seedRejections(ctx context.Context, at func(float64) time.Time) error {
	h := func(extra ...string) []byte {
		m := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"<script>alert(6)</script>"}}
		for i := 0; i+1 < len(extra); i += 2 {
			m.Set(extra[i], extra[i+1])
		}
		return store.EncodeHeader(m)
	}
	list := []store.Rejection{
		{Source: "stripe", Reason: "signature_mismatch", Remote: "3.18.12.63", Signed: true, Header: h("Stripe-Signature", "t=1,v1=case-SECRET-G"), Body: []byte(invoice)},
		{Source: "stripe", Reason: "timestamp_expired", Detail: "at=sig:t;cause=too_old;skew=840s;allowed=300s;agree=3", Remote: "3.130.192.231", Signed: true, Header: h("Stripe-Signature", "t=1"), Body: []byte(invoice)},
		{Source: "stripe", Reason: "missing_header", Detail: "at=header:Stripe-Signature;cause=header_missing;missing=header:Stripe-Signature", Remote: "203.0.113.77", Header: h()},
		{Source: "github", Reason: "too_large", Remote: "140.82.115.6", Size: 6396313, Header: h("X-Hub-Signature-256", "sha256=case-SECRET-G")},
		{Source: "bot", Reason: "token_mismatch", Detail: "at=header:X-Telegram-Bot-Api-Secret-Token;cause=secret_text;how=newline", Remote: "198.51.100.9", Header: h("X-Telegram-Bot-Api-Secret-Token", "case-SECRET-A-wrong"), Body: []byte(`{"update_id":2}`)},
		{Source: "q", Reason: "<b>odd</b>", Remote: "198.51.100.9", Target: "/in/q?token=case-SECRET-B", Header: h(), Body: []byte(`{`)},
	}
	slices.Reverse(list) // the oldest is refused first
	for i, r := range list {
		i = len(list) - 1 - i
		r.FirstAt, r.At = at(float64(60*(i+1))), at(float64(60*(i+1)))
		r.Status, r.Method, r.Count = 401, "POST", 1
		if r.Target == "" {
			r.Target = "/in/" + r.Source
		}
		if r.Size == 0 {
			r.Size = len(r.Body)
		}
		for range 1 + i*6%14 {
			if err := w.db.Reject(ctx, r); err != nil {
				return err
			}
		}
	}
	kept, err := w.db.RejectionList(ctx, "", 0, 100)
	for _, r := range kept {
		w.rejected = append(w.rejected, r.ID)
	}
	return err
}

// seeded is a world for one test, with an owner who can log in.
func seeded(t testing.TB, ordinary int) *world {
	t.Helper()
	w, err := newWorld(t.Context(), t.TempDir(), func() time.Time { return noon }, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.db.Close() })
	if err := w.seed(t.Context(), ordinary); err != nil {
		t.Fatal(err)
	}
	return w
}
