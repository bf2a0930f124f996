package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// keyFile is a file of one signed kind; each case below is another way to write keys
// and signatures.
const keyFile = `{"name":"x","auth":{%s,"message":"{header:X-Time}.{body}","signature":{"from":"header:X-Sig","format":"plain","encoding":"base64"},
"timestamp":{"from":"{header:X-Time}","unit":"s","tolerance_seconds":300}},"id":{"key":"{json:id}"},"response":{"success":"2xx"}}`

// What a rehearsal signs, a source passes that is configured with its public key; and
// nothing else does.
func TestEveryFormOfAPublicKeyGoesRound(t *testing.T) {
	t.Parallel()
	for name, auth := range map[string]string{
		"ed25519 hex":         `"kind":"ed25519","secret":{"encoding":"raw-hex"}`,
		"ed25519 base64":      `"kind":"ed25519","secret":{"encoding":"raw-base64","strip_prefix":["whpk_"]}`,
		"ed25519 pem":         `"kind":"ed25519","secret":{"encoding":"pem"}`,
		"ed25519 jwk":         `"kind":"ed25519","secret":{"encoding":"jwk"}`,
		"ecdsa der":           `"kind":"ecdsa","format":"der","secret":{"encoding":"spki-der-base64"}`,
		"ecdsa p1363":         `"kind":"ecdsa","format":"p1363","hash":"sha512","secret":{"encoding":"jwk"}`,
		"ecdsa pem":           `"kind":"ecdsa","curve":"P-256","secret":{"encoding":"pem"}`,
		"rsa pkcs1":           `"kind":"rsa","padding":"pkcs1","secret":{"encoding":"pem"}`,
		"rsa pss":             `"kind":"rsa","padding":"pss","hash":"sha384","secret":{"encoding":"spki-der-base64"}`,
		"rsa pkcs1 with sha1": `"kind":"rsa","alg":"sha1","secret":{"encoding":"pem"}`,
	} {
		p := mustParse(t, fmt.Sprintf(keyFile, auth))
		waiting, err := p.Compile(Settings{Waiting: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if waiting.CanSign() {
			t.Errorf("%s: the provider's key is not ours", name)
		}
		ours, err := waiting.Rehearsal()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		other, err := waiting.Rehearsal()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c, err := p.Compile(Settings{Secrets: ours.TestKeys()})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := post([]byte(`{"id":"1"}`))
		if err := ours.Sign(r, 0, caseNow); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := c.Receive(r, caseNow); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.Receive(r, caseNow.Add(301*time.Second)); reasonOf(err) != TimestampExpired {
			t.Errorf("%s, too late: %v", name, err)
		}
		if _, err := waiting.Receive(r, caseNow); reasonOf(err) != SignatureMismatch {
			t.Errorf("%s: a source without a key: %v", name, err)
		}
		if err := other.Sign(r, 0, caseNow); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Receive(r, caseNow); reasonOf(err) != SignatureMismatch {
			t.Errorf("%s: signed by another key: %v", name, err)
		}
		if _, err := p.Compile(Settings{Secrets: []string{"hunter2"}}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: a text that is no key: %v", name, err)
		}
	}
}

func TestTokensOfEveryAlgorithmGoRound(t *testing.T) {
	t.Parallel()
	for _, alg := range []string{"RS256", "PS384", "ES256", "ES384", "ES512", "EdDSA"} {
		p := mustParse(t, `{"name":"x","auth":{"kind":"jwt","from":"header:X-Token","algs":["`+alg+`"],"secret":{"encoding":"jwk"},"issuer":"me",
			"audience":"{param:aud}","claims":{"role":"sender","ok":true},"max_age_seconds":60,"body_hash":{"claim":"h","alg":"sha256","encoding":"base64url"}},
			"id":{"key":"{jwt:role}:{json:id}"},"response":{"success":"2xx"}}`)
		set := Settings{Waiting: true, Params: map[string]string{"aud": "us"}}
		waiting, err := p.Compile(set)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := waiting.Rehearsal()
		if err != nil {
			t.Fatal(err)
		}
		set.Secrets = ours.TestKeys()
		c, err := p.Compile(set)
		if err != nil {
			t.Fatalf("%s: %v", alg, err)
		}
		set.Params = map[string]string{"aud": "them"}
		elsewhere, err := p.Compile(set)
		if err != nil {
			t.Fatal(err)
		}
		r := post([]byte(`{"id":"1"}`))
		if err := ours.Sign(r, 0, caseNow); err != nil {
			t.Fatalf("%s: %v", alg, err)
		}
		res, err := c.Receive(r, caseNow)
		if err != nil || res.Events[0].ID != "sender:1" {
			t.Errorf("%s: %v %+v", alg, err, res.Events)
		}
		if _, err := elsewhere.Receive(r, caseNow); reasonOf(err) != ClaimMismatch {
			t.Errorf("%s: meant for somebody else: %v", alg, err)
		}
		if _, err := c.Receive(r, caseNow.Add(-61*time.Second)); reasonOf(err) != TimestampFuture {
			t.Errorf("%s: from the future: %v", alg, err)
		}
		r.Body = []byte(`{"id":"2"}`)
		if _, err := c.Receive(r, caseNow); reasonOf(err) != ClaimMismatch {
			t.Errorf("%s: another body: %v", alg, err)
		}
	}
}

func TestFilesOfKeysThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"kind":"jwt","from":"header:T","algs":["HS256","RS256"]}`: "auth.algs: shared and public keys together",
		`{"kind":"jwt","from":"header:T","algs":["none"]}`:          `auth.algs: unknown algorithm "none"`,
		`{"kind":"jwt","from":"header:T","algs":[]}`:                "auth.algs: missing",
		`{"kind":"jwt","from":"header:T","algs":["HS256"],"key_source":{"kind":"jwks-url","url":"https://a.b/c","allow_hosts":["a.b"]}}`:   "auth.algs: a fetched key is public",
		`{"kind":"jwt","from":"header:T","algs":["RS256"],"key_source":{"kind":"jwks-url","url":"https://a.b/c"}}`:                         "auth.key_source.allow_hosts: missing",
		`{"kind":"jwt","from":"header:T","algs":["RS256"],"key_source":{"kind":"jwks-url","url":"https://a.b/c","allow_hosts":["*.com"]}}`: "is no host name",
		`{"kind":"jwt","from":"header:T","algs":["RS256"],"key_source":{"kind":"cert-url","url":"https://a.b/c","allow_hosts":["a.b"]}}`:   "auth.key_source.kind: want static",
		`{"kind":"ip","allow":[]}`:                                                            "auth.allow: missing",
		`{"kind":"ip","allow":["300.1.1.1"]}`:                                                 "is neither an address nor a range",
		`{"kind":"any","of":[{"kind":"callback"}]}`:                                           "without an API key it would let everything in",
		`{"kind":"callback","confirm":{"get":"https://a.b/{json:id}","allow_hosts":["a.b"]}}`: "auth.confirm.equals: missing",
	} {
		_, err := parse("x", []byte(`{"name":"x","auth":`+text+`,"id":{"key":null},"response":{"success":"2xx"}}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestHostsThatMayBeAsked(t *testing.T) {
	t.Parallel()
	l, err := parseHosts("h", []string{"sns.*.amazonaws.com", "api.paypal.com"})
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]bool{
		"https://sns.eu-west-1.amazonaws.com/x.pem":           true,
		"https://SNS.eu-west-1.amazonaws.com/x.pem":           true,
		"https://api.paypal.com:443/x":                        true,
		"http://api.paypal.com/x":                             false,
		"https://api.paypal.com:8443/x":                       false,
		"https://api.paypal.com./x":                           false,
		"https://api.paypal.com@evil.example/x":               false,
		"https://evil.example@api.paypal.com/x":               false,
		"https://api.paypal.com.evil.example/x":               false,
		"https://sns.a.b.amazonaws.com/x.pem":                 false,
		"https://sns..amazonaws.com/x.pem":                    false,
		"https://sns.amazonaws.com/x.pem":                     false,
		"https://sns.a_b.amazonaws.com/x.pem":                 false,
		`https://api.paypal.com\@evil.example/x`:              false,
		"https:api.paypal.com/x":                              false,
		"//api.paypal.com/x":                                  false,
		"https://api.paypal.com/ x":                           false,
		"https://api.paypal.com/" + strings.Repeat("x", 3000): false,
	} {
		if _, ok := l.allow(url); ok != want {
			t.Errorf("%.80s: %v", url, ok)
		}
	}
}

// asking is Keys for callbacks: an answer, and what was asked.
type asking struct {
	noKeys
	status int
	body   string
	err    error
	asked  []string
}

func (a *asking) Ask(_ context.Context, url, authorization string) (int, []byte, error) {
	a.asked = append(a.asked, url+" "+authorization)
	return a.status, []byte(a.body), a.err
}

// A hint is believed once the provider confirmed it; what it does not know is refused,
// and what it does not answer can be judged neither way.
func TestP5AHintIsConfirmedBeforeItIsBelieved(t *testing.T) {
	t.Parallel()
	hint := func(form string) *Request {
		return post([]byte(form), "Content-Type", "application/x-www-form-urlencoded")
	}
	a := &asking{}
	c := checker(t, "mollie-classic", Settings{Secrets: []string{"test_key"}, Keys: a})
	for name, x := range map[string]struct {
		form   string
		status int
		body   string
		err    error
		want   Reason // empty: passes
		noKey  bool
	}{
		"confirmed":             {"id=tr_1", 200, `{"resource":"payment","id":"tr_1"}`, nil, "", false},
		"another thing":         {"id=tr_1", 200, `{"id":"tr_2"}`, nil, NotConfirmed, false},
		"a list in its place":   {"id=tr_1", 200, `{"count":0}`, nil, NotConfirmed, false},
		"no JSON":               {"id=tr_1", 200, `<html>`, nil, NotConfirmed, false},
		"not known there":       {"id=tr_1", 404, ``, nil, NotConfirmed, false},
		"our key is refused":    {"id=tr_1", 401, ``, nil, "", true},
		"too many questions":    {"id=tr_1", 429, ``, nil, "", true},
		"down":                  {"id=tr_1", 502, ``, nil, "", true},
		"no answer":             {"id=tr_1", 0, ``, errors.New("refused"), "", true},
		"no id":                 {"x=1", 200, ``, nil, MalformedBody, false},
		"an id of another kind": {"id=xx_1", 200, `{"id":"xx_1"}`, nil, MalformedBody, false},
		"a way out of the path": {"id=tr_..%2F..%2Fme", 200, `{"id":"tr_../../me"}`, nil, MalformedBody, false},
		"a query in the id":     {"id=tr_1%3Fx", 200, `{"id":"tr_1?x"}`, nil, "", false},
	} {
		a.status, a.body, a.err, a.asked = x.status, x.body, x.err, nil
		res, err := c.Receive(hint(x.form), caseNow)
		var noKey *NoKey
		switch {
		case errors.As(err, &noKey) != x.noKey, !x.noKey && reasonOf(err) != x.want:
			t.Errorf("%s: %v", name, err)
		case err == nil && (res.Unverified || res.Slot != 1 || len(res.Events) != 1):
			t.Errorf("%s: %+v", name, res)
		}
		for _, q := range a.asked { // whatever stands in the id, one segment of the path
			if path, _, _ := strings.Cut(strings.TrimPrefix(q, "https://api.mollie.com/v2/payments/"), " "); strings.ContainsAny(path, "/?#") || !strings.HasSuffix(q, " Bearer test_key") {
				t.Errorf("%s: asked %q", name, q)
			}
		}
	}
	g := checker(t, "gumroad", Settings{Secrets: []string{"k"}, Keys: a})
	a.status, a.body, a.asked = 200, `{"success":true}`, nil
	for _, id := range []string{".", "..", ""} {
		if _, err := g.Receive(hint("sale_id="+id), caseNow); err == nil {
			t.Errorf("the sale %q is confirmed", id)
		}
	}
	if slices.ContainsFunc(a.asked, func(q string) bool { return strings.Contains(q, "/.") }) {
		t.Errorf("asked %q", a.asked)
	}
}

func TestP5AHintNeedsAKeyOrAWord(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mollie-classic", "gumroad"} {
		p, _ := folder(t).Get(name)
		if _, err := p.Compile(Settings{}); err == nil || !strings.Contains(err.Error(), "unsigned: true") {
			t.Errorf("%s: %v", name, err)
		}
		c, err := p.Compile(Settings{Unsigned: true})
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Receive(post([]byte("id=tr_1&sale_id=s"), "Content-Type", "application/x-www-form-urlencoded"), caseNow)
		if err != nil || !res.Unverified {
			t.Errorf("%s: %v %+v", name, err, res)
		}
	}
}

// TestP5WithoutItsKeyNothingPasses: where the key has to be fetched and nothing can be,
// no good request is let in, and none is refused.
func TestP5WithoutItsKeyNothingPasses(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	ran := 0
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		for _, v := range goodVectors(t, name) {
			if len(v.Fetch) == 0 || len(v.Secrets) > 0 {
				continue
			}
			s := v.Settings(p)
			s.Keys = nil
			c, err := p.Compile(s)
			if err != nil {
				t.Fatal(err)
			}
			var noKey *NoKey
			if _, err := c.Receive(request(t, v), time.Unix(v.Now, 0)); !errors.As(err, &noKey) {
				t.Errorf("%s: %v", v.Name, err)
			}
			ran++
		}
	}
	if ran < 20 {
		t.Errorf("only %d", ran)
	}
	c := checker(t, "ip-allow", Settings{})
	for _, from := range []netip.Addr{{}, netip.MustParseAddr("192.0.2.1")} {
		r := post([]byte(`{"id":"1"}`), "X-Forwarded-For", "203.0.113.9")
		if r.Remote = from; reasonOf(second(c.Receive(r, caseNow))) != IPNotAllowed {
			t.Errorf("from %v", from)
		}
	}
}

func second(_ Result, err error) error { return err }

// A subscription is confirmed for the topic that the source names, at a host of the
// list, and after its signature was checked.
func TestSNSConfirmsOnlyItsTopic(t *testing.T) {
	t.Parallel()
	p, _ := folder(t).Get("aws-sns")
	const topic = "arn:aws:sns:eu-west-1:1:mine"
	base, err := p.Compile(Settings{Params: map[string]string{"topic_arn": topic}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := base.Rehearsal()
	if err != nil {
		t.Fatal(err)
	}
	hello := func(arn, url string) *Request {
		r := post([]byte(`{"Type":"SubscriptionConfirmation","MessageId":"1","Token":"t","TopicArn":"`+topic+`","Message":"m","SubscribeURL":"`+url+
			`","Timestamp":"x","SignatureVersion":"1","Signature":"x","SigningCertURL":"x"}`), "Content-Type", "text/plain")
		if err := c.Sign(r, 0, caseNow); err != nil {
			t.Fatal(err)
		}
		r.Body = []byte(strings.Replace(string(r.Body), topic, arn, 1))
		return r
	}
	good := "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t"
	res, err := c.Receive(hello(topic, good), caseNow)
	if err != nil || res.Then != good || res.Handshake == nil || res.Handshake.Status != http.StatusOK {
		t.Errorf("%v %+v", err, res)
	}
	if _, err := c.Receive(hello("arn:aws:sns:eu-west-1:2:theirs", good), caseNow); reasonOf(err) != SignatureMismatch {
		t.Errorf("a topic that is not the one signed: %v", err)
	}
	theirs := *c // the same key, another topic: as Amazon signs for everybody
	theirs.params = map[string]string{"topic_arn": "arn:aws:sns:eu-west-1:2:theirs"}
	signed := hello(topic, good)
	if err := theirs.Sign(signed, 0, caseNow); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Receive(signed, caseNow); err != nil {
		t.Fatal(err)
	}
	if res, err := c.Receive(signed, caseNow); reasonOf(err) != ClaimMismatch || res.Then != "" {
		t.Errorf("another owner's topic, signed well: %v %+v", err, res)
	}
	if res, err := c.Receive(hello(topic, "https://evil.example/?Token=t"), caseNow); reasonOf(err) != KeyUntrusted || res.Then != "" {
		t.Errorf("another host: %v %+v", err, res)
	}
}
