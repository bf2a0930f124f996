package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"acuse/provider"
)

// caseSources are the ways in of the recorded failures of others.
const caseSources = `sources:
  stripe: {provider: stripe, secrets: [case-stripe-secret-1], deliver_to: [app]}
  shop: {provider: shopify, secrets: [case-shop], deliver_to: [app]}
  tw: {provider: twilio, secrets: [case-tw], public_url: "https://hooks.example.test:8443/in/tw", deliver_to: [app]}
  sl: {provider: slack, secrets: [case-sl], deliver_to: [app]}
  gs:
    auth: {kind: hmac, alg: sha256, message: "{body}", signed_over: decoded, signature: {from: "header:X-Signature", encoding: hex}}
    id: "{json:id}"
    secrets: [case-gs]
    deliver_to: [app]
  plain:
    auth: {kind: hmac, alg: sha256, message: "{body}", signature: {from: "header:X-Signature", encoding: hex}}
    id: "{json:id}"
    secrets: [case-gs]
    deliver_to: [app]
  g: {unsigned: true, id: "{json:id}", deliver_to: [app]}
  h: {unsigned: true, id: "{header:X-Id}", deliver_to: [app]}
  s1: {unsigned: true, id: "{header:X-Msg-Id}", deliver_to: [app]}
  s2: {unsigned: true, id: "{header:X-Msg-Id}", deliver_to: [app]}
  sg: {provider: sendgrid, unsigned: true, deliver_to: [app]}
destinations:
`

// cases is the product with an app behind those sources.
func cases(t *testing.T) (*place, *app) {
	t.Helper()
	app := newApp(t, nil)
	return begin(t, caseSources+destination("app", app.URL)), app
}

func bytesOf(t *testing.T, b64 string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// stored holds an accepted request to what came in, in the archive and at the app.
func (p *place) stored(r reply, app *app, event string, body []byte) delivery {
	t := p.t
	t.Helper()
	r.is(t, 200)
	var a answer
	r.read(t, &a)
	d := p.delivery(a.Delivery)
	if d.EventID != event || len(d.Jobs) != 1 {
		t.Errorf("#%d: event %q with %d jobs, want %q", d.ID, d.EventID, len(d.Jobs), event)
	}
	if kept := p.cli("body", fmt.Sprint(d.ID)); kept.out != string(body) {
		t.Errorf("#%d: kept %q, came %q", d.ID, kept.out, body)
	}
	name := percent(event)
	until(t, name+" is delivered", func() bool { return app.times(name) > 0 })
	if got := app.given(name)[0]; !bytes.Equal(got.Body, body) {
		t.Errorf("#%d: the app was given %q", d.ID, got.Body)
	}
	return d
}

// percent is an id as a header carries it.
func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// signed are the headers that a provider would send with a body now.
func signedBy(t *testing.T, name, secret string, body []byte) []string {
	t.Helper()
	catalogue, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	p, _ := catalogue.Get(name)
	c, err := p.Compile(provider.Settings{Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	r := &provider.Request{Method: "POST", Target: "/in/x", Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
	if err := c.Sign(r, 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	var out []string
	for k, v := range r.Header {
		out = append(out, k, v[0])
	}
	return out
}

// TestCasesOfSignaturesTheWholeWay are sig-01, sig-05, sig-06, sig-08 and sig-09 from the
// socket to the app; what the check itself owes them stands with package provider.
func TestCasesOfSignaturesTheWholeWay(t *testing.T) {
	t.Parallel()
	p, app := cases(t)

	// sig-01: the bytes as signed are kept and forwarded; the same value in other bytes leaves no trace but a rejection.
	raw := bytesOf(t, "eyJpZCI6ImV2dF9jYXNlMSIsIm9iamVjdCI6ImV2ZW50IiwiYW1vdW50IjoxMC4wLCJub3RlIjoiY2FmXHUwMGU5IFwvIG9rIiwgICJiIjoxLCJhIjoyfQo=")
	anew := bytesOf(t, "eyJpZCI6ImV2dF9jYXNlMSIsIm9iamVjdCI6ImV2ZW50IiwiYW1vdW50IjoxMCwibm90ZSI6ImNhZsOpIC8gb2siLCJiIjoxLCJhIjoyfQ==")
	sig := signedBy(t, "stripe", "case-stripe-secret-1", raw)
	p.must("POST", p.in("stripe"), anew, sig...).is(t, 401)
	if n := len(p.deliveries()); n != 0 {
		t.Errorf("%d deliveries", n)
	}
	p.stored(p.must("POST", p.in("stripe"), raw, sig...), app, "evt_case1", raw) // no claim was made before

	// sig-05: bodies are bytes: characters split between chunks, a byte-order mark, no text at all, nothing at all.
	b := p.login()
	for _, step := range [][3]string{
		{"w-1", "xbTMBGVQ/W7eUf5Ucvr6mCbEd18PQJURhDGnvtQ/grE=", "eyJpZCI6NzcsInRpdGxlIjoibcOibmVjxIMg5ryi5a2XIOKAqCBlbmQifQ=="},
		{"w-2", "Y9Nl9ZzY41D5bAjoqG7X1YROclqwsZ1fSI0OMDSMPpI=", "77u/eyJpZCI6NzcsInRpdGxlIjoibcOibmVjxIMg5ryi5a2XIOKAqCBlbmQifQ=="},
		{"w-3", "86b41VEl0gEQ06vuehAcBnqf9B6hNboWTX0nYchHVVA=", "//57YmFk"},
		{"w-4", "cnxX+PD2IrwKQ8kH11RUR1KKboSGHqeKOrKMZMKw87c=", ""},
	} {
		body := bytesOf(t, step[2])
		d := p.stored(p.chunked("shop", body, "Content-Type", "application/json", "X-Shopify-Webhook-Id", step[0], "X-Shopify-Topic", "products/update", "X-Shopify-Hmac-Sha256", step[1]), app, step[0], body)
		if page := b.open(fmt.Sprintf("/deliveries/%d", d.ID)); !utf8.Valid(page.Body) {
			t.Errorf("the page of %s is not UTF-8", step[0])
		}
	}

	// sig-06: the configured URL is what counts; a refusal names it and no digest that would have fit.
	form := bytesOf(t, "VG89JTJCMTAwMDAwMDAwMDAmQm9keT1oaSt0aGVyZSZGcm9tPSUyQjEwMDAwMDAwMDAxJk1lc3NhZ2VTaWQ9U00xJkJvZHkyPQ==")
	call := func(sig string) reply {
		return p.must("POST", p.in("tw")+"?x=a%2Fb", form, "Content-Type", "application/x-www-form-urlencoded", "X-Forwarded-Proto", "http", "X-Forwarded-Host", "evil.example.test", "X-Twilio-Signature", sig)
	}
	for range 2 {
		call("OIIS8m0ITbyGfVVFSQDyhrgcD4U=").is(t, 401) // the forwarded host
		call("Xnk2gADI+ejF1xCv3nJ2AAyUa+M=").is(t, 401) // the URL without its port
	}
	const fits = "2VcYCgA5voWyHpNycSWNRMaU88Q="
	if log := p.log(); !strings.Contains(log, "checked_url=https://hooks.example.test:8443/in/tw") || strings.Contains(log, fits) {
		t.Errorf("the log names no URL, or the digest:\n%s", log)
	}
	call(fits).is(t, 200)

	// sig-08: decoded or as sent, as the source says; what is kept is what was sent.
	zipped := bytesOf(t, "H4sIAAAAAAAC/6tWKqksSFWyUspNLS5OTE/Vy0stV9JRykwBCqVX6Roq1QIAs/aVQyIAAAA=")
	const overPlain, overWire = "f131fdd34bee51b1fa00d047bbe413ee6a2b8675def75c889cbc17000a627709", "ecb7f60171eda39c1fcf789fb9f5bd7532da7a29205ba0555e0c712082ddd334"
	d := p.stored(p.must("POST", p.in("gs"), zipped, "Content-Encoding", "gzip", "X-Signature", overPlain), app, "gz-1", zipped)
	if got := d.Headers["Content-Encoding"]; len(got) != 1 || got[0] != "gzip" {
		t.Errorf("kept with Content-Encoding %q", got)
	}
	p.must("POST", p.in("plain"), zipped, "Content-Encoding", "gzip", "X-Signature", overWire).is(t, 200, `"accepted"`)
	p.must("POST", p.in("gs"), []byte(`{"type":"message.new","id":"gz-1"}`), "Content-Encoding", "zstd", "X-Signature", overPlain).is(t, 415)

	// sig-09: no header and no handshake skips the check.
	event, hello := []byte(`{"type":"event_callback","event_id":"Ev1","event":{"type":"app_mention"}}`), []byte(`{"type":"url_verification","token":"x","challenge":"c-<b>1"}`)
	p.must("POST", p.in("sl"), event, "Content-Type", "application/json", "X-Slack-Retry-Num", "1", "X-Slack-Retry-Reason", "http_timeout").is(t, 401)
	p.must("POST", p.in("sl"), hello, "Content-Type", "application/json").is(t, 401)
	before := len(p.deliveries())
	r := p.must("POST", p.in("sl"), hello, signedBy(t, "slack", "case-sl", hello)...)
	if r.is(t, 200); string(r.Body) != "c-<b>1" || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") || len(p.deliveries()) != before {
		t.Errorf("the handshake: %v %q", r.Header, r.Body)
	}
	p.must("POST", p.in("sl"), event, append(signedBy(t, "slack", "case-sl", event), "X-Slack-Retry-Num", "1")...).is(t, 200)
	until(t, "a signed retry that came first is delivered", func() bool { return app.times("Ev1") == 1 })
	none := newPlace(t, "sources:\n  tg: {provider: telegram, secrets: [], deliver_to: [a]}\ndestinations:\n  a: {pull: {}}\n")
	if err := none.Start(); err == nil || !strings.Contains(none.log(), "secrets") {
		t.Errorf("a source without a secret starts: %v\n%s", err, none.log())
	}
	if s := p.cli("check"); !strings.Contains(s.out+s.err, "sources.g.unsigned") {
		t.Errorf("an open source is not warned of: %s%s", s.out, s.err)
	}
}

// chunked sends a body of unknown length whose characters are split between chunks.
func (p *place) chunked(source string, body []byte, headers ...string) reply {
	p.t.Helper()
	from, to := io.Pipe()
	go func() {
		for len(body) > 0 {
			n := min(len(body), 1+len(body)%3)
			_, _ = to.Write(body[:n]) // an error ends the request, too
			body = body[n:]
		}
		_ = to.Close()
	}()
	req, err := http.NewRequestWithContext(p.t.Context(), "POST", p.in(source), from)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, b}
}

// TestCasesOfIdentityTheWholeWay are id-01 to id-06 from the socket to the app, before and
// after a kill.
func TestCasesOfIdentityTheWholeWay(t *testing.T) {
	t.Parallel()
	p, app := cases(t)
	send := func(source, body string, headers ...string) reply {
		t.Helper()
		return p.must("POST", p.in(source), []byte(body), append(headers, "Content-Type", "application/json")...)
	}
	long := strings.Repeat("k", 9999)
	events := []struct{ source, id, body, event string }{
		{"g", "", `{"id":8202522731445525542}`, "8202522731445525542"}, // id-01
		{"g", "", `{"id":8202522731445525543}`, "8202522731445525543"},
		{"g", "", `{"id":1}`, "1"}, {"g", "", `{"id":"01"}`, "01"}, {"g", "", `{"id":1.0}`, "1.0"}, {"g", "", `{"id":1e0}`, "1e0"},
		{"g", "", `{"id":"A","id":"B"}`, "A"}, {"g", "", `{"i\u0064":"D"}`, "D"}, {"g", "", `{"data":{"id":"X"},"id":"E"}`, "E"}, // id-02
		{"g", "", `{"id":"a\u0000b"}`, "a\x00b"}, {"g", "", `{"id":"a"}`, "a"}, {"g", "", `{"id":"a\u0000c","diff":"x\u0000y"}`, "a\x00c"}, // id-03
		{"g", "", `{"id":"` + long + `k"}`, provider.KeptID(long + "k")}, {"g", "", `{"id":"` + long + `z"}`, provider.KeptID(long + "z")},
		{"h", "../../etc/passwd", `{}`, "../../etc/passwd"}, {"h", "a b%2Fc?d#e", `{}`, "a b%2Fc?d#e"},
		{"s1", "1", `{"n":1}`, "1"}, {"s2", "1", `{"n":3}`, "1"}, {"s1", "1, 2", `{"n":5}`, "1, 2"}, // id-06
	}
	header := func(source, id string) []string {
		switch {
		case id == "":
			return nil
		case source == "h":
			return []string{"X-Id", id}
		}
		return []string{"x-msg-id", id}
	}
	b := p.login()
	for _, e := range events {
		r := send(e.source, e.body, header(e.source, e.id)...)
		r.is(t, 200, `"accepted"`)
		var a answer
		r.read(t, &a)
		d := p.delivery(a.Delivery)
		if d.EventID != e.event || p.cli("body", fmt.Sprint(d.ID)).out != e.body {
			t.Errorf("%.60s: event %.80q", e.body, d.EventID)
		}
		// It is found, opened and sent again by the page and the API.
		found := p.api("GET", "/api/v1/deliveries?source="+e.source+"&q="+url.QueryEscape(e.event), nil)
		if found.is(t, 200); !strings.Contains(string(found.Body), fmt.Sprintf(`"id":%d,`, d.ID)) {
			t.Errorf("%.60q is not found: %.200s", e.event, found.Body)
		}
		b.open("/deliveries?q="+url.QueryEscape(e.event)).is(t, 200, fmt.Sprintf("/deliveries/%d", d.ID))
		b.open(fmt.Sprintf("/deliveries/%d", d.ID)).is(t, 200)
		until(t, "it is delivered", func() bool { return p.delivery(d.ID).State == "delivered" })
		p.api("POST", fmt.Sprintf("/api/v1/deliveries/%d/resend", d.ID), nil).is(t, 202)
		until(t, "it is delivered again", func() bool { d := p.delivery(d.ID); return d.State == "delivered" && len(d.Attempts) == 2 })
	}
	for _, c := range app.given("8202522731445525542") {
		if string(c.Body) != `{"id":8202522731445525542}` {
			t.Errorf("forwarded %s", c.Body)
		}
	}
	for _, refused := range []reply{send("h", "{}", "X-Id", ""), send("s1", `{"n":2}`, "Orig-X-Msg-Id", "1"), send("g", `{"ID":"A"}`)} {
		refused.is(t, 400) // no id where the source says there is one; two of them are not one event
	}

	// id-04: each item is an event, in order, of one request; again they are known, but the new one.
	const items = `[{"event":"delivered","id":"X","sg_event_id":"e1"},{"event":"open","id":"X","sg_event_id":"e2"},{"event":"bounce","id":"Y"}]`
	count := len(p.deliveries())
	send("sg", items).is(t, 200)
	list := p.deliveries()[:3]
	if len(p.deliveries()) != count+3 || list[2].EventID != "e1" || list[1].EventID != "e2" || list[0].EventID == "" {
		t.Errorf("%d more: %+v", len(p.deliveries())-count, list)
	}
	send("sg", items).is(t, 200)
	send("sg", "[]").is(t, 200)
	if n := len(p.deliveries()); n != count+3 {
		t.Errorf("%d made by a repeat and an empty batch", n-count-3)
	}
	send("sg", strings.Replace(items, `"Y"}]`, `"Y"},{"event":"click","sg_event_id":"e9"}]`, 1)).is(t, 200)
	if list := p.deliveries(); len(list) != count+4 || list[0].EventID != "e9" {
		t.Errorf("%d made", len(list)-count-3)
	}

	p.Kill()
	p.start()
	known := len(p.deliveries())
	for _, e := range events {
		send(e.source, e.body, header(e.source, e.id)...).is(t, 200, `"duplicate"`)
	}
	send("g", `{"id":"1"}`).is(t, 200, `"duplicate"`) // the rule: the text counts, not the type
	send("g", `{"id":8202522731445525542,"again":true}`).is(t, 200, `"duplicate"`)
	send("sg", items).is(t, 200)
	if n := len(p.deliveries()); n != known {
		t.Errorf("%d made after the kill", n-known)
	}
	if d := p.delivery(1); d.EventID != "8202522731445525542" || d.Duplicates != 2 || d.BodyDiffers != 1 {
		t.Errorf("#1: %d duplicates, %d with another body", d.Duplicates, d.BodyDiffers)
	}
}
