package provider

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

var examined = time.Unix(1800000000, 0)

// patient is a good request of a source, signed afresh for each fault.
type patient struct {
	name   string
	p      *Provider
	c      *Checker // signs
	sample Sample
}

func (x *patient) signed(t *testing.T, url string) *Request {
	t.Helper()
	target := "/in/x"
	if x.sample.Query != "" {
		target += "?" + x.sample.Query
		url += "?" + x.sample.Query
	}
	r := &Request{Method: "POST", Target: target, URL: url, Host: "hooks.example.org", Header: x.sample.Header.Clone(), Body: slices.Clone(x.sample.Body)}
	if err := x.c.Sign(r, 1, examined); err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	return r
}

const doorURL = "https://hooks.example.org/in/x"

// patients are a source of every provider that has samples and can be signed for.
func patients(t *testing.T) []*patient {
	t.Helper()
	cat := folder(t)
	var out []*patient
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		c := sampled(t, p)
		if !c.CanSign() || len(p.Types()) == 0 || c.unverified {
			continue
		}
		s, err := p.Sample("", "")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &patient{name, p, c, s})
	}
	if len(out) < 80 {
		t.Fatalf("only %d providers can be examined", len(out))
	}
	return out
}

// under compiles the patient's provider with other secrets; nil where they are refused.
func (x *patient) under(secrets ...string) *Checker {
	s := x.c.settings
	s.Secrets = secrets
	c, err := x.p.Compile(s)
	if err != nil {
		return nil
	}
	return c
}

// other is a secret of the same form as s that is not s.
func other(s string) string {
	head, tail := "", s
	if i := max(strings.LastIndexByte(s, '_'), strings.LastIndexByte(s, ':')); i >= 0 {
		head, tail = s[:i+1], s[i+1:]
	}
	b := []byte(strings.TrimRight(tail, "="))
	slices.Reverse(b)
	return head + string(b)
}

func refused(c *Checker, r *Request) bool {
	_, err := c.Receive(r, examined)
	return err != nil
}

// TestTheDoctorNamesTheFaultThatWasPlanted plants every fault in a good request of every
// provider: exactly that one is named.
func TestTheDoctorNamesTheFaultThatWasPlanted(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	planted := map[Cause]int{}
	for _, x := range patients(t) {
		expect := func(what string, c *Checker, r *Request, o Others, want Diagnosis) {
			t.Helper()
			o.Catalogue = cat
			got := c.Diagnose(r, examined, o)
			planted[want.Cause]++
			if want.Cause == OtherProvider && slices.Contains(got.Providers, want.Providers[0]) {
				got.Providers = want.Providers
			}
			got.Present, got.Event = nil, ""
			if got.String() != want.String() {
				t.Errorf("%s, %s: got %q, want %q", x.name, what, got, want)
			}
		}
		x.plantSecrets(t, expect)
		x.plantTimes(t, expect)
		x.plantHeaders(t, expect)
		x.plantBodies(t, expect)
		x.plantURLs(t, expect)
		x.plantProviders(t, cat, expect)
	}
	for cause, least := range map[Cause]int{OtherSecret: 65, SecretText: 200, TooOld: 20, TooNew: 20, HeaderMissing: 60, BodyChanged: 300, OtherURL: 20, OtherProvider: 80, CannotTell: 65} {
		if planted[cause] < least {
			t.Errorf("%s was planted %d times only", cause, planted[cause])
		}
	}
}

type expecting func(what string, c *Checker, r *Request, o Others, want Diagnosis)

func (x *patient) plantSecrets(t *testing.T, expect expecting) {
	if own := x.under(x.c.settings.Secrets...); own == nil || len(x.c.settings.Secrets) == 0 || !own.CanSign() {
		return // only the provider signs
	}
	secret := x.c.settings.Secrets[0]
	own := x.under(other(secret))
	r := x.signed(t, doorURL)
	if own != nil && refused(own, r) {
		expect("another secret", own, r, Others{Sources: []Neighbour{{"nobody", own}, {"shop", x.c}}}, Diagnosis{Cause: OtherSecret, Source: "shop"})
		expect("a forged one", own, r, Others{}, Diagnosis{Cause: CannotTell})
	}
	for how, texts := range map[string][]string{
		"space":          {" " + secret, secret + "  ", "\t" + secret, "\u00a0" + secret},
		"newline":        {secret + "\n", secret + "\r\n", secret + `\n`},
		"quotes":         {`"` + secret + `"`, "'" + secret + "'", "“" + secret + "”", `"` + secret + `",`},
		"name":           {"WEBHOOK_SECRET=" + secret},
		"prefix_extra":   {"whsec_" + secret, "Bearer " + secret},
		"prefix_missing": {strings.TrimPrefix(secret, "whsec_")},
	} {
		for _, text := range texts {
			if c := x.under(text); c != nil && text != secret && refused(c, r) {
				expect("secret with "+how, c, r, Others{}, Diagnosis{Cause: SecretText, How: how})
			}
		}
	}
}

func (x *patient) plantTimes(t *testing.T, expect expecting) {
	for _, skew := range []time.Duration{100 * time.Hour, -100 * time.Hour} {
		r := x.signed(t, doorURL)
		if err := x.c.Sign(r, 1, examined.Add(-skew)); err != nil {
			t.Fatal(err)
		}
		_, err := x.c.Receive(r, examined)
		refusal, ok := err.(*Refusal)
		if !ok || (refusal.Reason != TimestampExpired && refusal.Reason != TimestampFuture) {
			continue
		}
		want := Diagnosis{Cause: TooOld, Skew: skew, Allowed: refusal.Allowed}
		if skew < 0 {
			want.Cause = TooNew
		}
		expect("signed at another time", x.c, r, Others{}, want)
	}
}

func (x *patient) plantHeaders(t *testing.T, expect expecting) {
	for _, name := range x.c.AuthHeaders() {
		r := x.signed(t, doorURL)
		for have := range r.Header {
			if have == name || strings.HasSuffix(name, "*") && strings.HasPrefix(have, strings.TrimSuffix(name, "*")) {
				delete(r.Header, have)
			}
		}
		refusal, ok := x.c.Early("POST", r.Header).(*Refusal)
		if !ok {
			continue
		}
		r.Body = nil // is not read then
		expect("without "+name, x.c, r, Others{}, Diagnosis{Cause: HeaderMissing, Missing: refusal.Detail})
	}
}

// changes are what proxies, frameworks and people do to bodies.
var changes = map[string]func(r *Request) []byte{
	"newline_added":   func(r *Request) []byte { return append(slices.Clone(r.Body), '\n') },
	"space_added":     func(r *Request) []byte { return append([]byte("  "), r.Body...) },
	"byte_order_mark": func(r *Request) []byte { return append([]byte("\xef\xbb\xbf"), r.Body...) },
	"json_layout": func(r *Request) []byte {
		var b bytes.Buffer
		if json.Indent(&b, r.Body, "", "   ") != nil {
			return r.Body
		}
		return b.Bytes()
	},
	"json_escapes": func(r *Request) []byte {
		if !json.Valid(r.Body) {
			return r.Body
		}
		return bytes.ReplaceAll(r.Body, []byte("d"), []byte(`\u0064`))
	},
	"packed": func(r *Request) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(r.Body)
		_ = w.Close()
		r.Header.Set("Content-Encoding", "gzip")
		return b.Bytes()
	},
	"form": func(r *Request) []byte {
		if formType(r.Header.Get("Content-Type")) != "application/x-www-form-urlencoded" {
			return r.Body
		}
		return bytes.ReplaceAll(r.Body, []byte("a"), []byte("%61"))
	},
}

func (x *patient) plantBodies(t *testing.T, expect expecting) {
	for how, change := range changes {
		r := x.signed(t, doorURL)
		before := r.Body
		if how == "json_escapes" && bytes.Contains(before, []byte(`\`)) {
			continue // its own escapes would be lost too
		}
		r.Body = change(r)
		if bytes.Equal(before, r.Body) || !refused(x.c, r) {
			continue
		}
		expect("body: "+how, x.c, r, Others{}, Diagnosis{Cause: BodyChanged, How: how})
	}
}

func (x *patient) plantURLs(t *testing.T, expect expecting) {
	for how, signed := range map[string]string{
		"scheme": "http://hooks.example.org/in/x", "port": "https://hooks.example.org:8443/in/x", "host": "https://other.example.org/in/x", "slash": doorURL + "/",
		"scheme,port": "http://hooks.example.org:8080/in/x",
	} {
		r := x.signed(t, signed)
		bare, query, has := strings.Cut(r.URL, "?")
		r.URL = doorURL
		if has {
			r.URL += "?" + query
		}
		switch how {
		case "port":
			r.Host = "hooks.example.org:8443"
		case "scheme,port":
			r.Host = "hooks.example.org:8080"
		case "host":
			r.Header.Set("X-Forwarded-Host", "other.example.org")
		}
		if refused(x.c, r) {
			expect("url: "+how, x.c, r, Others{}, Diagnosis{Cause: OtherURL, How: how, URL: bare})
		}
	}
}

// plantProviders chooses each of the next providers in the list in place of the right one.
func (x *patient) plantProviders(t *testing.T, cat *Catalogue, expect expecting) {
	names := cat.Names()
	at := slices.Index(names, x.name)
	for i := range 4 {
		p, _ := cat.Get(names[(at+1+i*7)%len(names)])
		s := Settings{Secrets: x.c.settings.Secrets}
		c, err := p.Compile(s)
		r := x.signed(t, doorURL)
		if err != nil || len(s.Secrets) == 0 || c.unverified || !refused(c, r) || computes(c.auth) == nil {
			continue
		}
		if b := x.p.borrow(c); b == nil || !(&doctor{at: examined}).passes(b, r) {
			continue // it needs more than the secret
		}
		if x.name == "uptime-kuma" && p.Name == "auth0-logs" {
			continue // the one's "Bearer SECRET" is a whole secret of the other's: both remedies are shown
		}
		expect("taken for "+p.Name, c, r, Others{}, Diagnosis{Cause: OtherProvider, Providers: []string{x.name}, Shown: "verified"})
	}
}

func TestTheDoctorTellsTestFromLive(t *testing.T) {
	t.Parallel()
	p, _ := folder(t).Get("stripe")
	compile := func(secret string) *Checker {
		c, err := p.Compile(Settings{Secrets: []string{secret}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, one := range []struct{ name, own, others, livemode, want string }{
		{"live events at a test secret", "whsec_test_a", "whsec_b", "true", "cause=test_secret;how=test;source=shop;event=live"},
		{"test events at a live secret", "whsec_live_a", "whsec_b", "false", "cause=test_secret;how=live;source=shop;event=test"},
		{"the secret does not say", "whsec_a", "whsec_test_b", "true", "cause=other_secret;source=shop;event=live"},
		{"both agree", "whsec_test_a", "whsec_b", "false", "cause=other_secret;source=shop;event=test"},
		{"chance is no word", "whsec_test", "whsec_b", "true", "cause=other_secret;source=shop;event=live"},
	} {
		right := compile(one.others)
		r := &Request{Method: "POST", Target: "/in/x", Header: http.Header{}, Body: []byte(`{"id":"evt_1","livemode":` + one.livemode + `}`)}
		if err := right.Sign(r, 1, examined); err != nil {
			t.Fatal(err)
		}
		got := compile(one.own).Diagnose(r, examined, Others{Sources: []Neighbour{{"shop", right}}})
		if got.String() != one.want {
			t.Errorf("%s: %s", one.name, got)
		}
	}
}

func TestTheDoctorSaysThatTheTimeIsWrongToo(t *testing.T) {
	t.Parallel()
	right := checker(t, "stripe", Settings{Secrets: []string{"whsec_right"}})
	wrong := checker(t, "stripe", Settings{Secrets: []string{"whsec_wrong"}})
	r := post([]byte(`{"id":"evt_1"}`))
	if err := right.Sign(r, 1, examined.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	got := wrong.Diagnose(r, examined, Others{Sources: []Neighbour{{"shop", right}}}).String()
	if got != "cause=other_secret;source=shop;skew=3600s;allowed=300s" {
		t.Error(got)
	}
}

func TestTheDoctorSaysWhatAProxyLeft(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	github, _ := cat.Get("github")
	c, err := github.Compile(Settings{Secrets: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		name   string
		header http.Header
		want   string
	}{
		{"the signature alone is gone", http.Header{"X-Github-Event": {"push"}, "X-Github-Delivery": {"d"}},
			"cause=header_missing;missing=header:X-Hub-Signature-256;present=X-Github-Delivery,X-Github-Event"},
		{"nothing is there", http.Header{"Content-Type": {"application/json"}}, "cause=header_missing;missing=header:X-Hub-Signature-256"},
		{"it comes from somebody else", http.Header{"Stripe-Signature": {"t=1,v1=00"}}, "cause=other_provider;provider=stripe;shown=headers"},
	} {
		r := &Request{Method: "POST", Target: "/in/x", Header: one.header}
		if got := c.Diagnose(r, examined, Others{Catalogue: cat}).String(); got != one.want {
			t.Errorf("%s: %s", one.name, got)
		}
	}
}

// TestCausesOfTheRecordedRefusals runs the doctor over every vector that is refused: what
// it claims must fit what the vector says was done.
func TestCausesOfTheRecordedRefusals(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	seen := 0
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		for _, v := range vectorsOf(t, name) {
			if v.Expect.Verdict != "reject" || v.Case != "wrong_secret" && v.Case != "altered_body" && v.Case != "expired" && v.Case != "future" && v.Case != "rotation_none" {
				continue
			}
			c, err := p.Compile(v.Settings(p))
			if err != nil {
				continue
			}
			r := request(t, v)
			got := c.Diagnose(r, time.Unix(v.Now, 0), Others{Catalogue: cat})
			seen++
			switch v.Case {
			case "expired", "future":
				if v.Expect.Reason == string(TimestampExpired) && got.Cause != TooOld || v.Expect.Reason == string(TimestampFuture) && got.Cause != TooNew {
					t.Errorf("%s: %s", v.Name, got)
				}
			default:
				if want := v.Name == "plaid/reformatted-body"; got.Shows() != want { // indented anew on the way: that can be shown
					t.Errorf("%s (%s): %s", v.Name, v.Why, got)
				}
			}
		}
	}
	if seen < 200 {
		t.Errorf("%d only", seen)
	}
}

func TestDiagnosesReadBack(t *testing.T) {
	t.Parallel()
	d := Diagnosis{Cause: OtherURL, How: "scheme,port", URL: "http://h:8080/a;b=c%20d e/ñ"}
	text := d.String()
	if strings.ContainsAny(text, " ") || strings.Count(text, ";") != 2 {
		t.Errorf("%s", text)
	}
	got := ParseDetail("header:X;skew=840s;" + text)
	if got["cause"] != "other_url" || got["url"] != d.URL || got["how"] != d.How || got["skew"] != "840s" || got["at"] != "header:X" || len(got) != 5 {
		t.Errorf("%v", got)
	}
	if (Diagnosis{}).String() != "" || (Diagnosis{Cause: CannotTell}).Shows() {
		t.Error("nothing is something")
	}
}

func TestADiagnosisIsBounded(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	p, _ := cat.Get("github")
	secrets := []string{"a_1", "b_2", "c_3", "d_4", "e_5", "f_6", "g_7", "h_8"}
	c, err := p.Compile(Settings{Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte(`{"a":["é/<>",1,2,3]},`), 40_000)
	big = append(append([]byte("["), big[:len(big)-1]...), ']')
	r := &Request{Method: "POST", Target: "/in/x", Header: http.Header{"X-Hub-Signature-256": {"sha256=" + strings.Repeat("0", 64)}}, Body: big}
	d := &doctor{c: c, r: r, at: examined, others: Others{Catalogue: cat, Sources: slices.Repeat([]Neighbour{{"n", c}}, 500)}}
	refusal := d.refusal()
	for _, look := range []func(*Refusal) Diagnosis{d.secretText, d.otherSecret, d.otherURL, d.bodyChanged, d.otherProvider} {
		if got := look(refusal); got.Cause != "" {
			t.Errorf("%s", got)
		}
	}
	if d.tried > maxTried || d.hashed > maxHashed+8*(maxDiagnosed+1024) {
		t.Errorf("%d tried, %d bytes hashed", d.tried, d.hashed)
	}
	r.Body = append(big, big...)
	if got := c.Diagnose(r, examined, Others{Catalogue: cat}); got.Shows() {
		t.Errorf("over the limit: %s", got)
	}
}

// FuzzDiagnose looks for a panic, for a cause of a request whose signature is chance, and
// for a secret in a diagnosis.
func FuzzDiagnose(f *testing.F) {
	cat, err := Embedded()
	if err != nil {
		f.Fatal(err)
	}
	names := cat.Names()
	f.Add(0, "X-Hub-Signature-256", "sha256=00", []byte(`{"a":"\u00e9/"}`), "application/json", "https://h/in/x")
	f.Add(30, "Stripe-Signature", "t=1,v1=00", []byte("a=b&c=%20"), "application/x-www-form-urlencoded", "")
	f.Add(60, "Authorization", "Bearer x", []byte("\x1f\x8b\x08"), "", "h")
	f.Add(90, "X-Twilio-Signature", "AAAA", []byte("\xef\xbb\xbf[1 ,2]\r\n"), "", "http://[::1]:80/in/x/?a=b")
	const secret = "whsec_c2VjcmV0LW9mLXRoZS1kb2N0b3I="
	f.Fuzz(func(t *testing.T, which int, header, value string, body []byte, kind, url string) {
		p, _ := cat.Get(names[uint(which)%uint(len(names))])
		c, err := p.Compile(Settings{Secrets: []string{secret}})
		if err != nil {
			return
		}
		r := &Request{Method: "POST", Target: "/in/x?q=1", URL: url, Host: "h:1", Header: http.Header{http.CanonicalHeaderKey(header): {value}, "Content-Type": {kind}}, Body: body}
		got := c.Diagnose(r, examined, Others{Catalogue: cat, Sources: []Neighbour{{"n", c}}})
		if strings.Contains(got.String(), "c2VjcmV0") {
			t.Fatalf("%s", got)
		}
		switch got.Cause {
		case CannotTell, HeaderMissing:
		case OtherProvider:
			if got.Shown == "verified" && !strings.Contains(value, "c2VjcmV0") && !strings.Contains(string(body), "c2VjcmV0") {
				t.Fatalf("chance was taken for proof: %s", got)
			}
		default:
			if !strings.Contains(value, "c2VjcmV0") && !strings.Contains(string(body), "c2VjcmV0") {
				t.Fatalf("chance was taken for proof: %s", got)
			}
		}
	})
}
