package provider

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func custom(t testing.TB, auth string, secrets ...string) *Checker {
	t.Helper()
	c, err := Custom().Compile(Settings{Secrets: secrets, Auth: []byte(auth)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The signed time is looked at only once the signature is good, and both ways.
func TestP5TimeComesAfterTheSignature(t *testing.T) {
	t.Parallel()
	c := checker(t, "stripe", Settings{Secrets: []string{"s"}})
	body := []byte(`{"id":"evt_1"}`)
	sign := func(key, stamp string) *Request {
		return post(body, "Stripe-Signature", "t="+stamp+",v1="+hexHMAC(key, []byte(stamp+"."+string(body))))
	}
	at := func(d time.Duration) string { return fmt.Sprint(caseNow.Add(d).Unix()) }
	for _, tc := range []struct {
		name, key, stamp string
		want             Reason
	}{
		{"now", "s", at(0), ""},
		{"as old as allowed", "s", at(-300 * time.Second), ""},
		{"one second older", "s", at(-301 * time.Second), TimestampExpired},
		{"as early as allowed", "s", at(300 * time.Second), ""},
		{"one second earlier", "s", at(301 * time.Second), TimestampFuture},
		{"old and forged", "x", at(-time.Hour), SignatureMismatch},
		{"early and forged", "x", at(time.Hour), SignatureMismatch},
		{"no number and forged", "x", "soon", SignatureMismatch},
		{"no number", "s", "soon", MalformedHeader},
		{"empty", "s", "", MalformedHeader},
		{"a fraction", "s", at(0) + ".5", MalformedHeader},
		{"beyond any number", "s", strings.Repeat("9", 30), MalformedHeader},
		{"the largest number", "s", "9223372036854775807", TimestampFuture},
		{"the smallest number", "s", "-9223372036854775808", TimestampExpired},
	} {
		_, err := c.Receive(sign(tc.key, tc.stamp), caseNow)
		if reasonOf(err) != tc.want || (tc.want == "" && err != nil) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
	_, err := c.Receive(sign("s", at(-time.Hour)), caseNow)
	var r *Refusal
	if !errors.As(err, &r) || r.Skew != time.Hour || !r.Signed {
		t.Errorf("skew: %+v", err)
	}
	wide := checker(t, "stripe", Settings{Secrets: []string{"s"}, Tolerance: 2 * time.Hour})
	if _, err := wide.Receive(sign("s", at(-time.Hour)), caseNow); err != nil {
		t.Errorf("the source's own tolerance: %v", err)
	}
}

func TestTimestampUnits(t *testing.T) {
	t.Parallel()
	for unit, stamps := range map[string][]string{
		"s":         {"1767225600"},
		"ms":        {"1767225600123"},
		"auto":      {"1767225600", "1767225600123"},
		"rfc3339":   {"2026-01-01T00:00:00Z", "2026-01-01T01:00:00.5+01:00"},
		"http-date": {"Thu, 01 Jan 2026 00:00:00 GMT"},
	} {
		c := custom(t, `{"kind":"hmac","alg":"sha256","message":"{header:T}.{body}","signature":{"from":"header:S","format":"plain","encoding":"hex"},
			"timestamp":{"from":"{header:T}","unit":"`+unit+`","tolerance_seconds":5}}`, "s")
		for _, s := range stamps {
			r := post([]byte("b"), "T", s, "S", hexHMAC("s", []byte(s+".b")))
			if _, err := c.Receive(r, caseNow); err != nil {
				t.Errorf("%s %s: %v", unit, s, err)
			}
			if _, err := c.Receive(r, caseNow.Add(time.Minute)); reasonOf(err) != TimestampExpired {
				t.Errorf("%s %s a minute later: %v", unit, s, err)
			}
		}
		r := post([]byte("b"), "T", "never", "S", hexHMAC("s", []byte("never.b")))
		if _, err := c.Receive(r, caseNow); reasonOf(err) != MalformedHeader {
			t.Errorf("%s: %v", unit, err)
		}
	}
}

// What is written in another way than the file says is no signature.
func TestSignatureEncodings(t *testing.T) {
	t.Parallel()
	body := []byte("b")
	hex := hexHMAC("s", body)
	raw := make([]byte, 32)
	if _, err := fmt.Sscanf(hex, "%x", &raw); err != nil {
		t.Fatal(err)
	}
	std, raw64 := base64.StdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw)
	auth := `{"kind":"hmac","alg":"sha256","message":"{body}","signature":{"from":"query:s","format":"plain","encoding":%q}}`
	for enc, texts := range map[string]map[string]bool{
		"hex":       {hex: true, strings.ToUpper(hex): true, hex + "0": false, hex + "00": false, hex[:62]: false, "0x" + hex: false, std: false},
		"base64":    {std: true, strings.TrimRight(std, "="): false, std + "=": false, std[:20] + "\n" + std[20:]: false, std + std: false, hex: false},
		"base64url": {raw64: true, raw64 + "=": true, raw64[:20] + "\r\n" + raw64[20:]: false},
	} {
		c := custom(t, fmt.Sprintf(auth, enc), "s")
		for text, want := range texts {
			r := post(body)
			r.Target = setQuery("/in/x", "s", text)
			if _, err := c.Receive(r, caseNow); (err == nil) != want {
				t.Errorf("%s %q: %v", enc, text, err)
			}
		}
	}
}

func TestUniqueKeysMayStandOnce(t *testing.T) {
	t.Parallel()
	c := checker(t, "paymos", Settings{Secrets: []string{"s"}})
	body := []byte(`{"event_id":"e"}`)
	sig := "v1=" + hexHMAC("s", []byte("1767225600."+string(body)))
	for header, want := range map[string]Reason{
		"t=1767225600," + sig:              "",
		"t=1767225600," + sig + ",v1=00":   "",
		"t=1767225600,t=1767225600," + sig: MalformedHeader,
		"t=1767225600," + sig + ",t=1":     MalformedHeader,
	} {
		if _, err := c.Receive(post(body, "X-Webhook-Signature", header), caseNow); reasonOf(err) != want {
			t.Errorf("%s: %v", header, err)
		}
	}
}

// Of several alternatives the reason is that of the one that got furthest.
func TestAnyAndAll(t *testing.T) {
	t.Parallel()
	token := `{"kind":"token","from":"header:T"}`
	basic := `{"kind":"basic"}`
	either := custom(t, `{"kind":"any","of":[`+token+`,`+basic+`]}`, "u:p")
	both := custom(t, `{"kind":"all","of":[`+token+`,`+basic+`]}`, "u:p")
	good := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:p"))
	bad := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:x"))
	for _, tc := range []struct {
		header       []string
		either, both Reason
	}{
		{nil, MissingHeader, MissingHeader},
		{[]string{"T", "u:p"}, "", MissingHeader},
		{[]string{"Authorization", good}, "", MissingHeader},
		{[]string{"T", "u:p", "Authorization", good}, "", ""},
		{[]string{"T", "u:p", "Authorization", bad}, "", TokenMismatch},
		{[]string{"T", "x"}, TokenMismatch, TokenMismatch},
		{[]string{"Authorization", "Digest x"}, MalformedHeader, MissingHeader},
		{[]string{"T", "x", "Authorization", "Digest x"}, TokenMismatch, TokenMismatch},
	} {
		_, err := either.Receive(post(nil, tc.header...), caseNow)
		if reasonOf(err) != tc.either {
			t.Errorf("any %v: %v, want %q", tc.header, err, tc.either)
		}
		if _, err = both.Receive(post(nil, tc.header...), caseNow); reasonOf(err) != tc.both {
			t.Errorf("all %v: %v, want %q", tc.header, err, tc.both)
		}
	}
	if err := either.Early("POST", http.Header{"T": {"x"}}); err != nil {
		t.Errorf("one alternative is there: %v", err)
	}
	if err := both.Early("POST", http.Header{"T": {"x"}}); reasonOf(err) != MissingHeader {
		t.Errorf("one of all is missing: %v", err)
	}
}

// What one alternative decoded is not what the next one checks.
func TestAlternativesOverWireAndDecodedBodies(t *testing.T) {
	t.Parallel()
	hmac := `{"kind":"hmac","alg":"sha256","message":"{body}","signed_over":%q,"signature":{"from":"header:S","format":"plain","encoding":"hex"}}`
	for _, order := range [][2]string{{"decoded", "wire"}, {"wire", "decoded"}} {
		c := custom(t, `{"kind":"any","of":[`+fmt.Sprintf(hmac, order[0])+`,`+fmt.Sprintf(hmac, order[1])+`]}`, "s")
		packed := gzipped(t, []byte("b"))
		for _, signed := range [][]byte{packed, []byte("b")} {
			if _, err := c.Receive(post(packed, "Content-Encoding", "gzip", "S", hexHMAC("s", signed)), caseNow); err != nil {
				t.Errorf("%v: %v", order, err)
			}
		}
	}
}

// An alternative with "when" counts only for bodies of its kind.
func TestWhen(t *testing.T) {
	t.Parallel()
	c := custom(t, `{"kind":"any","of":[{"kind":"token","from":"header:A","when":{"json":{"v":1}}},{"kind":"token","from":"header:B","when":{"json":{"v":"2"}}}]}`, "s")
	for _, tc := range []struct {
		body, header string
		want         Reason
	}{{`{"v":1}`, "A", ""}, {`{"v":"1"}`, "A", ""}, {`{"v":2}`, "B", ""}, {`{"v":1}`, "B", MissingHeader}, {`{"v":2}`, "A", MissingHeader}, {`{}`, "A", MissingHeader}, {`v=1`, "A", MissingHeader}} {
		if _, err := c.Receive(post([]byte(tc.body), tc.header, "s"), caseNow); reasonOf(err) != tc.want {
			t.Errorf("%s under %s: %v", tc.body, tc.header, err)
		}
	}
}

// Early refuses exactly what cannot pass any more, before the body is read.
func TestEarly(t *testing.T) {
	t.Parallel()
	js, form := http.Header{"Content-Type": {"application/json"}}, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for _, tc := range []struct {
		provider, method string
		h                http.Header
		want             Reason
	}{
		{"stripe", "POST", js, MissingHeader},
		{"stripe", "GET", js, ""},
		{"stripe", "HEAD", js, ""},
		{"stripe", "POST", http.Header{"Stripe-Signature": {"x"}}, ""},
		{"standard-webhooks", "POST", http.Header{"Webhook-Signature": {"v1,x"}}, MissingHeader},
		{"slack", "POST", js, MissingHeader},
		{"slack", "POST", form, ""}, // may be the certificate probe
		{"query-token", "POST", js, ""},
		{"figma", "POST", js, ""},
		{"woocommerce", "POST", form, ""},
		{"woocommerce", "POST", js, MissingHeader},
		{"docusign", "POST", js, MissingHeader},
		{"docusign", "POST", http.Header{"X-Docusign-Signature-2": {"x"}}, ""},
		{"notion", "POST", js, MissingHeader}, // not waiting
	} {
		c := checker(t, tc.provider, Settings{Secrets: []string{"AAAA"}})
		if err := c.Early(tc.method, tc.h); reasonOf(err) != tc.want || (tc.want == "" && err != nil) {
			t.Errorf("%s %s %v: got %v, want %q", tc.provider, tc.method, tc.h, err, tc.want)
		}
	}
	if err := checker(t, "notion", Settings{Waiting: true}).Early("POST", js); err != nil {
		t.Errorf("a waiting source: %v", err)
	}
}

func TestNamesToMask(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"stripe":      {"Stripe-Signature", ""},
		"slack":       {"X-Slack-Request-Timestamp X-Slack-Signature", ""},
		"gitlab":      {"Webhook-Signature Webhook-Timestamp X-Gitlab-Token", ""},
		"query-token": {"", "token"},
		"docusign":    {"X-Docusign-Signature-*", ""},
		"whatsapp":    {"X-Hub-Signature-256", "hub.verify_token"},
		"asana":       {"X-Hook-Secret X-Hook-Signature", ""},
		"basic-auth":  {"Authorization", ""},
	} {
		c := checker(t, name, Settings{Secrets: []string{"u:p"}})
		if h, q := strings.Join(c.AuthHeaders(), " "), strings.Join(c.AuthQuery(), " "); h != want[0] || q != want[1] {
			t.Errorf("%s: %q and %q", name, h, q)
		}
	}
}

// P9: the text of a refusal holds no secret, no signature, no token and nothing of a body.
func TestP9RefusalsSayNothingThatIsSecret(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	refused := 0
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		file, err := embedded.ReadFile("catalogue/" + name + ".json") // names of fields may be said
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vectorsOf(t, name) {
			if v.Expect.Verdict != "reject" {
				continue
			}
			c, err := p.Compile(Settings{Secrets: v.Secrets, Params: v.Params, Auth: v.Auth, Waiting: len(v.Secrets) == 0})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Receive(request(t, v), time.Unix(v.Now, 0))
			if err == nil {
				t.Fatalf("%s passes", v.Name)
			}
			refused++
			hidden := append([]string{}, v.Secrets...)
			for _, values := range v.Headers {
				hidden = append(hidden, values...)
			}
			hidden = append(hidden, strings.FieldsFunc(v.Body, func(r rune) bool { return strings.ContainsRune(`{}[]",:& =`, r) })...)
			for _, h := range hidden {
				if len(h) > 8 && strings.Contains(err.Error(), h) && !strings.Contains(string(file), h) {
					t.Errorf("%s: %q shows %q", v.Name, err, h)
				}
			}
		}
	}
	if refused < 300 {
		t.Errorf("only %d refusals", refused)
	}
}

// One Checker serves all connections at once.
func TestCheckersAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	for _, name := range []string{"stripe", "gitlab", "twilio", "gocardless", "telegram", "dropbox-sign"} {
		p, _ := cat.Get(name)
		vs := goodVectors(t, name)
		c := compileFor(t, p, vs[0])
		want, err := c.Receive(request(t, vs[0]), time.Unix(vs[0].Now, 0))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					r := request(t, vs[0])
					got, err := c.Receive(r, time.Unix(vs[0].Now, 0))
					if err != nil || got.Events[0].ID != want.Events[0].ID || got.Events[0].Type != want.Events[0].Type {
						t.Errorf("%s: %v %+v", name, err, got)
						return
					}
					if err := c.Sign(r, 1, caseNow); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		wg.Wait()
	}
}
