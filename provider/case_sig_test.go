package provider

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// caseClock is the clock of the recorded field cases, unix seconds.
const caseClock = 1767225600

var caseNow = time.Unix(caseClock, 0)

func unbase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checker(t testing.TB, name string, s Settings) *Checker {
	t.Helper()
	p, ok := folder(t).Get(name)
	if !ok {
		t.Fatalf("no provider %s", name)
	}
	c, err := p.Compile(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

// post is a POST; header holds names and values in turn.
func post(body []byte, header ...string) *Request {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &Request{Method: "POST", Target: "/in/x", URL: "https://hooks.example.test/in/x", Header: h, Body: body}
}

func reasonOf(err error) Reason {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}

func hexHMAC(key string, msg []byte) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write(msg)
	return hex.EncodeToString(h.Sum(nil))
}

// TestP5RawBytes: sig-01. The check is over the bytes as they came: no form of the same
// JSON value but the one that was signed passes.
func TestP5RawBytes(t *testing.T) {
	t.Parallel()
	c := checker(t, "stripe", Settings{Secrets: []string{"case-stripe-secret-1"}})
	sig := "t=1767225600,v1=ee6b61dd1e608adfb737cc0ea8d4e6a9424aa95ae320431dbdda3dc5eb7c4692"
	body := unbase64(t, "eyJpZCI6ImV2dF9jYXNlMSIsIm9iamVjdCI6ImV2ZW50IiwiYW1vdW50IjoxMC4wLCJub3RlIjoiY2FmXHUwMGU5IFwvIG9rIiwgICJiIjoxLCJhIjoyfQo=")
	res, err := c.Receive(post(body, "Stripe-Signature", sig), caseNow)
	if err != nil || res.Events[0].ID != "evt_case1" || res.Slot != 1 {
		t.Fatalf("the bytes as signed: %v %+v", err, res)
	}
	others := map[string][]byte{
		"written anew":         unbase64(t, "eyJpZCI6ImV2dF9jYXNlMSIsIm9iamVjdCI6ImV2ZW50IiwiYW1vdW50IjoxMCwibm90ZSI6ImNhZsOpIC8gb2siLCJiIjoxLCJhIjoyfQ=="),
		"last newline gone":    body[:len(body)-1],
		"a space more":         append([]byte(" "), body...),
		"a byte-order mark":    append([]byte("\ufeff"), body...),
		"CRLF":                 bytes.Replace(body, []byte("\n"), []byte("\r\n"), 1),
		"number in short form": bytes.Replace(body, []byte("10.0"), []byte("10"), 1),
		"escape resolved":      bytes.Replace(body, []byte(`\u00e9`), []byte("é"), 1),
		"nothing":              {},
	}
	for name, b := range others {
		if _, err := c.Receive(post(b, "Stripe-Signature", sig), caseNow); reasonOf(err) != SignatureMismatch {
			t.Errorf("%s: got %v, want a mismatch", name, err)
		}
	}
}

// TestP5EverySignatureOfAListIsTried: sig-03.
func TestP5EverySignatureOfAListIsTried(t *testing.T) {
	t.Parallel()
	body := unbase64(t, "eyJ0eXBlIjoidXNlci5jcmVhdGVkIiwiZGF0YSI6eyJpZCI6MX19")
	secret := "whsec_cmVjaWJvLWNhc2Utc2VjcmV0LTAwMDAwMDAwMQ=="
	list := "v1a,MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMA== v1,j5Oruyfn9ULTdU9/aRx4kivBgphIQR7Opjpy/L0OP0E= v1,67R1DVYaJnAPfhh2TFyX05CWmjBqigbocVwHg13EquU="
	svix := "v2,MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE= v1,a/k65AWCiP5+K+L9dcioKdEP18tzFvMfsJ+ndJFou2I= v1,AAAA"
	for _, name := range []string{"standard-webhooks", "svix"} {
		c := checker(t, name, Settings{Secrets: []string{secret}})
		if _, err := c.Receive(post(body, "webhook-id", "msg_1", "webhook-timestamp", "1767225600", "webhook-signature", list), caseNow); err != nil {
			t.Errorf("%s, the last of a list: %v", name, err)
		}
		if _, err := c.Receive(post(body, "svix-id", "msg_2", "svix-timestamp", "1767225600", "svix-signature", svix), caseNow); err != nil {
			t.Errorf("%s, svix names, the middle of a list: %v", name, err)
		}
		_, err := c.Receive(post(body, "webhook-id", "msg_3", "webhook-timestamp", "1767225600", "webhook-signature", "v1,uYLgu5WNLeVPFdt4qAkBVnZz8nkkW50dFUEie6MX"), caseNow)
		if reasonOf(err) != SignatureMismatch {
			t.Errorf("%s, truncated: %v", name, err)
		}
	}
	pd := checker(t, "pagerduty", Settings{Secrets: []string{"case-pd"}})
	two := "v1=2d8b4749906553c35e8b4aa3e0d21f2e6f254ef1794904b0cae383a207cba80a,v1=a1e73ae5306bf560ebde80f4499d0d944f9b8c10557818fcc2d16cadb05763ff"
	if _, err := pd.Receive(post(body, "X-PagerDuty-Signature", two), caseNow); err != nil {
		t.Errorf("pagerduty: %v", err)
	}
	one, other, _ := strings.Cut(two, ",")
	for _, order := range [][2]string{{one, other}, {other, one}} {
		if _, err := pd.Receive(post(body, "X-PagerDuty-Signature", order[0], "X-PagerDuty-Signature", order[1]), caseNow); err != nil {
			t.Errorf("the header sent twice: %v", err)
		}
	}
}

// Every place of the list up to the limit is tried, under every secret up to the limit.
func TestP5EverySecretAgainstEverySignature(t *testing.T) {
	t.Parallel()
	body := []byte(`{"event":{"id":"e1"}}`)
	var secrets []string
	for i := range maxSecrets {
		secrets = append(secrets, fmt.Sprint("secret-", i))
	}
	c := checker(t, "pagerduty", Settings{Secrets: secrets})
	for slot, secret := range secrets {
		for place := range maxSignatures {
			items := strings.Split(strings.Repeat("v1="+strings.Repeat("0", 64)+",", maxSignatures), ",")[:maxSignatures]
			items[place] = "v1=" + hexHMAC(secret, body)
			res, err := c.Receive(post(body, "X-PagerDuty-Signature", strings.Join(items, ",")), caseNow)
			if err != nil || res.Slot != slot+1 {
				t.Errorf("secret %d at place %d: slot %d, %v", slot+1, place, res.Slot, err)
			}
		}
	}
	beyond := strings.Repeat("v1="+strings.Repeat("0", 64)+",", maxSignatures) + "v1=" + hexHMAC(secrets[0], body)
	if _, err := c.Receive(post(body, "X-PagerDuty-Signature", beyond), caseNow); reasonOf(err) != SignatureMismatch {
		t.Errorf("a signature beyond the limit: %v", err)
	}
	p, _ := folder(t).Get("pagerduty")
	if _, err := p.Compile(Settings{Secrets: append(secrets, "one more")}); err == nil {
		t.Error("more secrets than the limit compile")
	}
}

// svix-* and webhook-* are two names of one value. A request with both and a difference
// between them is refused; and never is the unsigned one believed.
func TestP5TwoNamesOfAHeaderMustNotDiffer(t *testing.T) {
	t.Parallel()
	c := checker(t, "svix", Settings{Secrets: []string{"whsec_cmVjaWJvLWNhc2Utc2VjcmV0LTAwMDAwMDAwMQ=="}})
	now := caseNow
	signed := func() *Request {
		r := post([]byte(`{"type":"a"}`), "webhook-id", "msg_1", "webhook-timestamp", "0", "webhook-signature", "v1,x")
		if err := c.Sign(r, 1, now); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if res, err := c.Receive(signed(), now); err != nil || res.Events[0].ID != "msg_1" {
		t.Fatalf("%v %+v", err, res)
	}
	for _, h := range []string{"svix-id", "svix-timestamp"} {
		r := signed()
		r.Header.Set(h, "1767225601")
		if _, err := c.Receive(r, now); reasonOf(err) != MalformedHeader {
			t.Errorf("%s differs: %v", h, err)
		}
	}
	late := now.Add(24 * time.Hour)
	r := signed()
	r.Header.Set("svix-timestamp", fmt.Sprint(late.Unix()))
	if _, err := c.Receive(r, late); err == nil {
		t.Error("an unsigned timestamp made an old request fresh")
	}
	same := signed()
	same.Header.Set("svix-id", "msg_1")
	if _, err := c.Receive(same, now); err != nil {
		t.Errorf("both names with one value: %v", err)
	}
}

// What another message of the scheme would cover, and the one that verified does not, is
// anybody's: it counts as absent.
func TestP5OnlyWhatWasSignedIsBelieved(t *testing.T) {
	t.Parallel()
	secret := "s"
	payload := `{"action":"opened","repository":{"full_name":"a/b"}}`
	c := checker(t, "gitea", Settings{Secrets: []string{secret}})
	head := []string{"X-Gitea-Event", "issues", "X-Gitea-Delivery", "d1", "X-Gitea-Signature", hexHMAC(secret, []byte(payload))}
	r := post([]byte(`{"action":"forged","repository":{"full_name":"evil/evil"}}`), append(head, "Content-Type", "application/json")...)
	r.Target += "?payload=" + url.QueryEscape(payload)
	res, err := c.Receive(r, caseNow)
	if err != nil || res.Events[0].Type != "issues.opened" || res.Events[0].Resource != "a/b" {
		t.Errorf("signed query, forged body: %v %+v", err, res.Events)
	}
	r = post([]byte(payload), append(head, "Content-Type", "application/json")...)
	r.Target += "?payload=" + url.QueryEscape(`{"action":"forged"}`)
	if res, err = c.Receive(r, caseNow); err != nil || res.Events[0].Type != "issues.opened" {
		t.Errorf("signed body, forged query: %v %+v", err, res.Events)
	}
}

// sig-05: the check is over bytes: they need not be UTF-8, JSON, or there at all.
func TestP5BodiesAreBytes(t *testing.T) {
	t.Parallel()
	c := checker(t, "shopify", Settings{Secrets: []string{"case-shop"}})
	for _, step := range [][3]string{
		{"w-1", "xbTMBGVQ/W7eUf5Ucvr6mCbEd18PQJURhDGnvtQ/grE=", "eyJpZCI6NzcsInRpdGxlIjoibcOibmVjxIMg5ryi5a2XIOKAqCBlbmQifQ=="},
		{"w-2", "Y9Nl9ZzY41D5bAjoqG7X1YROclqwsZ1fSI0OMDSMPpI=", "77u/eyJpZCI6NzcsInRpdGxlIjoibcOibmVjxIMg5ryi5a2XIOKAqCBlbmQifQ=="},
		{"w-3", "86b41VEl0gEQ06vuehAcBnqf9B6hNboWTX0nYchHVVA=", "//57YmFk"},
		{"w-4", "cnxX+PD2IrwKQ8kH11RUR1KKboSGHqeKOrKMZMKw87c=", ""},
	} {
		body := unbase64(t, step[2])
		r := post(body, "X-Shopify-Webhook-Id", step[0], "X-Shopify-Topic", "products/update", "X-Shopify-Hmac-Sha256", step[1])
		res, err := c.Receive(r, caseNow)
		if err != nil || res.Events[0].ID != step[0] || !bytes.Equal(res.Events[0].Bytes, body) {
			t.Errorf("%s: %v %+v", step[0], err, res)
		}
	}
}

// sig-06: the configured public URL is signed, its query as received. Forwarded headers
// and Host change nothing. The default port may be there or not; another may not.
func TestP5ThePublicURLIsSigned(t *testing.T) {
	t.Parallel()
	c := checker(t, "twilio", Settings{Secrets: []string{"case-tw"}})
	body := unbase64(t, "VG89JTJCMTAwMDAwMDAwMDAmQm9keT1oaSt0aGVyZSZGcm9tPSUyQjEwMDAwMDAwMDAxJk1lc3NhZ2VTaWQ9U00xJkJvZHkyPQ==")
	receive := func(public, sig string) error {
		r := post(body, "Content-Type", "application/x-www-form-urlencoded", "X-Forwarded-Proto", "http",
			"X-Forwarded-Host", "evil.example.test", "X-Twilio-Signature", sig)
		r.Target, r.Host, r.URL = "/in/tw?x=a%2Fb", "10.0.0.5:8080", public
		_, err := c.Receive(r, caseNow)
		return err
	}
	const public = "https://hooks.example.test:8443/in/tw?x=a%2Fb"
	if err := receive(public, "2VcYCgA5voWyHpNycSWNRMaU88Q="); err != nil {
		t.Errorf("the configured URL: %v", err)
	}
	if err := receive(public, "OIIS8m0ITbyGfVVFSQDyhrgcD4U="); reasonOf(err) != SignatureMismatch {
		t.Errorf("the forwarded host: %v", err)
	}
	for range 3 {
		if err := receive(public, "Xnk2gADI+ejF1xCv3nJ2AAyUa+M="); reasonOf(err) != SignatureMismatch {
			t.Errorf("signed without a port that is not the default one: %v", err)
		}
	}
	for _, pair := range [][2]string{
		{"https://h.example.test/in/tw?x=a%2Fb", "https://h.example.test:443/in/tw?x=a%2Fb"},
		{"http://h.example.test/in/tw", "http://h.example.test:80/in/tw"},
		{"https://[2001:db8::1]/in/tw", "https://[2001:db8::1]:443/in/tw"},
	} {
		for i := range pair {
			r := post(body, "Content-Type", "application/x-www-form-urlencoded", "X-Twilio-Signature", "x")
			r.URL = pair[i]
			if err := c.Sign(r, 1, caseNow); err != nil {
				t.Fatal(err)
			}
			if err := receive(pair[1-i], r.Header.Get("X-Twilio-Signature")); err != nil {
				t.Errorf("signed %s, configured %s: %v", pair[i], pair[1-i], err)
			}
		}
	}
}

// A request that Twilio bound to its body by bodySHA256 does not pass without that body.
func TestP5TwilioJSONBodyIsBound(t *testing.T) {
	t.Parallel()
	c := checker(t, "twilio", Settings{Secrets: []string{"case-tw"}})
	body := []byte(`{"type":"a"}`)
	sum := sha256.Sum256(body)
	r := post(body, "Content-Type", "application/json", "X-Twilio-Signature", "x")
	r.Target = "/in/tw?bodySHA256=" + hex.EncodeToString(sum[:])
	r.URL = "https://h.example.test" + r.Target
	if err := c.Sign(r, 1, caseNow); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(r, caseNow); err != nil {
		t.Fatal(err)
	}
	for _, ct := range []string{"application/json", "application/x-www-form-urlencoded", ""} {
		for _, b := range []string{"", `{"type":"b"}`, "a=b"} {
			r.Body = []byte(b)
			r.Header.Set("Content-Type", ct)
			if _, err := c.Receive(r, caseNow); err == nil {
				t.Errorf("body %q as %q passed under another body's signature", b, ct)
			}
		}
	}
}

// keyless are the providers whose keys are fetched, and the one that looks at addresses.
// An event of theirs without a key is never let in, see TestP5WithoutItsKeyNothingPasses.
var keyless = []string{"aws-sns", "azure-event-grid", "gemini", "google-pubsub-push", "ip-allow", "paypal"}

// sig-09: nothing skips the check: no header, no handshake, no missing secret.
func TestP5NoShortcut(t *testing.T) {
	t.Parallel()
	c := checker(t, "slack", Settings{Secrets: []string{"case-sl"}})
	event := unbase64(t, "eyJ0eXBlIjoiZXZlbnRfY2FsbGJhY2siLCJldmVudF9pZCI6IkV2MSIsImV2ZW50Ijp7InR5cGUiOiJhcHBfbWVudGlvbiJ9fQ==")
	hello := unbase64(t, "eyJ0eXBlIjoidXJsX3ZlcmlmaWNhdGlvbiIsInRva2VuIjoieCIsImNoYWxsZW5nZSI6ImMtPGI+MSJ9")
	retry := []string{"Content-Type", "application/json", "X-Slack-Retry-Num", "1", "X-Slack-Retry-Reason", "http_timeout"}
	stamp := []string{"Content-Type", "application/json", "X-Slack-Request-Timestamp", "1767225600", "X-Slack-Signature"}
	if _, err := c.Receive(post(event, retry...), caseNow); reasonOf(err) != MissingHeader {
		t.Errorf("a retry header: %v", err)
	}
	res, err := c.Receive(post(hello, append(stamp, "v0=edf2901acdaf920b6511dec1d54cdcd331a63906f4dc58f8ed907197ba6eba9c")...), caseNow)
	if err != nil || res.Handshake == nil || string(res.Handshake.Body) != "c-<b>1" || res.Handshake.Header.Get("Content-Type") != "text/plain" || res.Handshake.Status != 200 {
		t.Errorf("a signed handshake: %v %+v", err, res.Handshake)
	}
	if _, err := c.Receive(post(hello, "Content-Type", "application/json"), caseNow); reasonOf(err) != MissingHeader {
		t.Errorf("an unsigned handshake: %v", err)
	}
	if _, err := c.Receive(post(hello, append(stamp, "v0="+strings.Repeat("0", 64))...), caseNow); reasonOf(err) != SignatureMismatch {
		t.Errorf("a forged handshake: %v", err)
	}
	r := post(event, append(stamp, "v0=50e67dd4466c86946d466910b537c5c80cc53db8e6b3172d79d86b8c888fb192", "X-Slack-Retry-Num", "1")...)
	if res, err = c.Receive(r, caseNow); err != nil || res.Events[0].ID != "Ev1" {
		t.Errorf("a signed retry: %v %+v", err, res)
	}
	cat := folder(t)
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		for _, secrets := range [][]string{nil, {}, {""}} {
			_, err := p.Compile(Settings{Secrets: secrets, Params: vectorsOf(t, name)[0].Params})
			if len(secrets) == 0 && slices.Contains(keyless, name) {
				if err != nil {
					t.Errorf("%s needs no secret: %v", name, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), "secrets") {
				t.Errorf("%s compiles with secrets %q: %v", name, secrets, err)
			}
		}
	}
}

// A source that waits for the secret of a handshake accepts nothing else.
func TestP5AWaitingSourceAcceptsNothing(t *testing.T) {
	t.Parallel()
	c := checker(t, "notion", Settings{Waiting: true})
	hello := post([]byte(`{"verification_token":"secret_new"}`))
	if res, err := c.Receive(hello, caseNow); reasonOf(err) != MissingHeader || res.Captured != "" {
		t.Errorf("the handshake, while no window is open: %v %+v", err, res)
	}
	hello.Capturing = true
	res, err := c.Receive(hello, caseNow)
	if err != nil || res.Captured != "secret_new" || res.Handshake == nil || len(res.Events) != 0 {
		t.Errorf("the handshake: %v %+v", err, res)
	}
	for _, key := range []string{"", "secret_new"} {
		body := []byte(`{"id":"e1"}`)
		if res, err := c.Receive(post(body, "X-Notion-Signature", "sha256="+hexHMAC(key, body)), caseNow); reasonOf(err) != SignatureMismatch {
			t.Errorf("signed with %q before it was confirmed: %v %+v", key, err, res)
		}
	}
	set := checker(t, "notion", Settings{Secrets: []string{"old"}})
	if res, err := set.Receive(post([]byte(`{"verification_token":"planted"}`)), caseNow); reasonOf(err) != MissingHeader || res.Captured != "" {
		t.Errorf("a planted secret: %v %+v", err, res)
	}
}

// Secrets and sums meet in constant-time functions only.
func TestP5SecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	bad := regexp.MustCompile(`(bytes\.Equal|strings\.EqualFold|reflect\.DeepEqual|bytes\.Compare)\([^)]*([sS]ecret|sum|digest|[tT]oken|key|sigs|want)\b` +
		`|\b(secret|sum|digest|sigs\.data\[.*\])\)?\s*[!=]=\s*[^"n\s]|[!=]=\s*(string\()?(secret|sum|digest)\b`)
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		seen++
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(b), "\n") {
			if bad.MatchString(line) {
				t.Errorf("%s:%d: %s", f.Name(), i+1, strings.TrimSpace(line))
			}
		}
	}
	if seen < 10 {
		t.Error("the package was not found")
	}
	for _, line := range []string{"if bytes.Equal(sum, got) {", "if secret == got {", "if got == sum {", "if string(digest) != got", "return bytes.Equal(x, key)"} {
		if !bad.MatchString(line) {
			t.Errorf("the check would not notice %q", line)
		}
	}
}
