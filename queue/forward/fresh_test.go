package forward

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"acuse/provider"
	"acuse/store"
)

// TestFreshPassesTheProvidersOwnCheck retries an hour later what came in signed: an
// app that verifies as the provider says, with its tolerance, takes it.
func TestFreshPassesTheProvidersOwnCheck(t *testing.T) {
	t.Parallel()
	catalogue, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, provider, secret, target, contentType, body string
		fails                                             bool // with the signature as it came
	}{
		{"stripe", "stripe", "whsec_x", "/in/s", "application/json", `{"id":"evt_1","object":"event","type":"invoice.paid"}`, true},
		{"github", "github", "It's a Secret", "/in/s", "application/json", `{"action":"opened"}`, false},
		{"slack", "slack", "8f742231b10e8888abcd99yyyzzz85a5", "/in/s", "application/json", `{"type":"event_callback","event_id":"Ev1","event":{"type":"message"}}`, true},
		{"standard-webhooks", "standard-webhooks", "whsec_RkFLRSBzdyBvbmUuLi4uLi4uLi4uLi4uLi4uLi4uLi4=", "/in/s", "application/json", `{"type":"a.b"}`, true},
		{"a token in the query", "query-token", "case-token", "/in/s?token=case-token", "application/json", `{"id":"1"}`, false},
		{"the public URL is signed", "twilio", "12345", "/in/s?foo=1&bar=2", "application/x-www-form-urlencoded", "MessageSid=SM1&MessageStatus=sent&From=%2B1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, ok := catalogue.Get(c.provider)
			if !ok {
				t.Fatal("not in the catalogue")
			}
			check, err := p.Compile(provider.Settings{Secrets: []string{c.secret}})
			if err != nil {
				t.Fatal(err)
			}
			const public = "https://hooks.example.org/in/s"
			_, query, _ := strings.Cut(c.target, "?")
			in := &provider.Request{Method: "POST", Target: c.target, URL: strings.TrimSuffix(public+"?"+query, "?"), Host: "hooks.example.org",
				Header: http.Header{"Content-Type": {c.contentType}, "Webhook-Id": {"msg_1"}}, Body: []byte(c.body)}
			if err := check.Sign(in, 1, now.Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			url, got := app(t, nil)
			l := lease(c.body, in.Header)
			l.Payload.Target, l.Payload.Body = in.Target, in.Body
			for kind, wantFail := range map[string]bool{Fresh: false, Passthrough: c.fails} {
				h := destination(t, Options{URL: url, Signature: kind, Signers: func(string) (Signer, string) { return check, public }})
				if res := h.Send(t.Context(), l); res.Outcome != store.Succeeded {
					t.Fatalf("%s: %+v", kind, res)
				}
				s := <-got
				_, query, _ := strings.Cut(s.uri, "?")
				out := &provider.Request{Method: s.method, Target: strings.TrimSuffix("/in/s?"+query, "?"), URL: strings.TrimSuffix(public+"?"+query, "?"),
					Host: "hooks.example.org", Header: s.header, Body: []byte(s.body)}
				if _, err := check.Receive(out, now); (err != nil) != wantFail {
					t.Errorf("%s: the app's check says %v, refused wanted: %v", kind, err, wantFail)
				}
				if s.body != c.body {
					t.Errorf("%s: body %q", kind, s.body)
				}
			}
		})
	}
}
