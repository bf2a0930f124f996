package provider

import (
	"bytes"
	"testing"
)

// TestCasesDiagnosed says what can be shown of the recorded troubles of others: sig-01,
// sig-03, sig-05, sig-06, sig-08, sig-09. What was lost on the way is not claimed.
func TestCasesDiagnosed(t *testing.T) {
	t.Parallel()
	stripe := checker(t, "stripe", Settings{Secrets: []string{"case-stripe-secret-1"}})
	raw := unbase64(t, "eyJpZCI6ImV2dF9jYXNlMSIsIm9iamVjdCI6ImV2ZW50IiwiYW1vdW50IjoxMC4wLCJub3RlIjoiY2FmXHUwMGU5IFwvIG9rIiwgICJiIjoxLCJhIjoyfQo=")
	sig := []string{"Stripe-Signature", "t=1767225600,v1=ee6b61dd1e608adfb737cc0ea8d4e6a9424aa95ae320431dbdda3dc5eb7c4692"}
	shop := checker(t, "shopify", Settings{Secrets: []string{"case-shop"}})
	title := unbase64(t, "77u/eyJpZCI6NzcsInRpdGxlIjoibcOibmVjxIMg5ryi5a2XIOKAqCBlbmQifQ==")
	shopSig := []string{"X-Shopify-Hmac-Sha256", "Y9Nl9ZzY41D5bAjoqG7X1YROclqwsZ1fSI0OMDSMPpI=", "X-Shopify-Webhook-Id", "w-2", "X-Shopify-Topic", "products/update"}
	twilio := checker(t, "twilio", Settings{Secrets: []string{"case-tw"}})
	form := unbase64(t, "VG89JTJCMTAwMDAwMDAwMDAmQm9keT1oaSt0aGVyZSZGcm9tPSUyQjEwMDAwMDAwMDAxJk1lc3NhZ2VTaWQ9U00xJkJvZHkyPQ==")
	call := func(sig string) *Request {
		r := post(form, "Content-Type", "application/x-www-form-urlencoded", "X-Forwarded-Host", "evil.example.test", "X-Twilio-Signature", sig)
		r.Target, r.Host, r.URL = "/in/tw?x=a%2Fb", "10.0.0.5:8080", "https://hooks.example.test:8443/in/tw?x=a%2Fb"
		return r
	}
	plain := []byte(`{"type":"message.new","id":"gz-1"}`)
	github := checker(t, "github", Settings{Secrets: []string{"case-gs"}})
	zipped := post(gzipped(t, plain), "Content-Encoding", "gzip", "X-Hub-Signature-256", "sha256="+hexHMAC("case-gs", plain))
	sw := checker(t, "standard-webhooks", Settings{Secrets: []string{"whsec_cmVjaWJvLWNhc2Utc2VjcmV0LTAwMDAwMDAwMQ=="}})
	slack := checker(t, "slack", Settings{Secrets: []string{"case-sl"}})

	for _, one := range []struct {
		name string
		c    *Checker
		r    *Request
		want string
	}{
		{"sig-01: a space and the form of a number were lost", stripe,
			post(unbase64(t, "eyJpZCI6ImV2dF9jYXNlMSIsIm9iamVjdCI6ImV2ZW50IiwiYW1vdW50IjoxMCwibm90ZSI6ImNhZsOpIC8gb2siLCJiIjoxLCJhIjoyfQ=="), sig...), "cause=cannot_tell"},
		{"sig-01: the last newline was lost", stripe, post(raw[:len(raw)-1], sig...), "cause=body_changed;how=newline_lost"},
		{"sig-01: a byte-order mark was added", stripe, post(append([]byte("\ufeff"), raw...), sig...), "cause=body_changed;how=byte_order_mark"},
		{"sig-01: line ends", stripe, post(bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n")), sig...), "cause=body_changed;how=line_ends"},
		{"sig-03: a signature cut short", sw, post([]byte(`{"type":"user.created","data":{"id":1}}`), "webhook-id", "msg_3", "webhook-timestamp", "1767225600",
			"webhook-signature", "v1,uYLgu5WNLeVPFdt4qAkBVnZz8nkkW50dFUEie6MX"), "cause=cannot_tell"},
		{"sig-05: the byte-order mark was lost", shop, post(bytes.TrimPrefix(title, []byte("\ufeff")), shopSig...), "cause=body_changed;how=byte_order_mark"},
		{"sig-05: characters became replacement marks", shop, post(bytes.ReplaceAll(title, []byte("漢"), []byte("\ufffd")), shopSig...), "cause=cannot_tell"},
		{"sig-05: read as Latin-1", shop, post(latin1ToUTF8(title), shopSig...), "cause=body_changed;how=charset"},
		{"sig-06: signed for the host that was forwarded", twilio, call("OIIS8m0ITbyGfVVFSQDyhrgcD4U="), "cause=other_url;how=host,port;url=https://evil.example.test/in/tw"},
		{"sig-06: signed without the port", twilio, call("Xnk2gADI+ejF1xCv3nJ2AAyUa+M="), "cause=other_url;how=port;url=https://hooks.example.test/in/tw"},
		{"sig-08: packed after it was signed", github, zipped, "cause=body_changed;how=packed"},
		{"sig-09: no header skips the check", slack, post([]byte(`{"type":"event_callback"}`), "X-Slack-Retry-Num", "1"), "cause=header_missing;missing=header:X-Slack-Request-Timestamp"},
	} {
		if got := one.c.Diagnose(one.r, caseNow, Others{Catalogue: folder(t)}).String(); got != one.want {
			t.Errorf("%s: %s, want %s", one.name, got, one.want)
		}
	}
}

func latin1ToUTF8(b []byte) []byte {
	var out []rune
	for _, c := range b {
		out = append(out, rune(c))
	}
	return []byte(string(out))
}
