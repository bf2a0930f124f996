package web

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"acuse/provider"
)

// shake is one way in which a provider says hello, as its file has it.
type shake struct {
	Kind  string `json:"kind"`
	Auth  bool   `json:"auth"`
	Check *struct {
		Auth   bool   `json:"auth"`
		Equals string `json:"equals"`
	} `json:"check"`
	Capture *struct{} `json:"capture"`
	Match   struct {
		JSON map[string]any `json:"json"`
	} `json:"match"`
}

func (s shake) signed() bool  { return s.Auth || s.Check != nil && s.Check.Auth }
func (s shake) checked() bool { return s.Check != nil && s.Check.Equals != "" }

// shakesOf reads the handshakes of a catalogue file, one or several.
func shakesOf(t *testing.T, name string) []shake {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "provider", "catalogue", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Handshake json.RawMessage `json:"handshake"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	if string(file.Handshake) == "null" || len(file.Handshake) == 0 {
		return nil
	}
	var list []shake
	if json.Unmarshal(file.Handshake, &list) == nil {
		return list
	}
	var one shake
	if err := json.Unmarshal(file.Handshake, &one); err != nil {
		t.Fatal(err)
	}
	return []shake{one}
}

// hello sends a vector to a source of the edge; the window is open where capture says so.
func hello(t *testing.T, p *provider.Provider, s provider.Settings, r *provider.Request, now time.Time, capture bool) (*httptest.ResponseRecorder, int) {
	t.Helper()
	c, err := p.Compile(s)
	if err != nil {
		t.Fatal(p.Name, err)
	}
	return helloTo(t, p, c, r, now, capture)
}

func helloTo(t *testing.T, p *provider.Provider, c *provider.Checker, r *provider.Request, now time.Time, capture bool) (*httptest.ResponseRecorder, int) {
	t.Helper()
	in := &inbox{}
	e := newEdge(t, EdgeOptions{Inbox: in, Now: func() time.Time { return now }, Captures: settings{}},
		Source{Name: "x", Provider: p.Name, Checker: c, PublicURL: "https://hooks.example.test/in/x", RejectStatus: p.RejectStatus()})
	if capture {
		if _, err := e.OpenCapture(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	_, query, _ := strings.Cut(r.Target, "?")
	target := "/in/x"
	if query != "" {
		target += "?" + query
	}
	hr := httptest.NewRequest(r.Method, target, strings.NewReader(string(r.Body)))
	hr.Header = r.Header
	w := httptest.NewRecorder()
	e.ServeHTTP(w, hr)
	return w, len(in.all())
}

func handshakeVectors(t *testing.T, name string) (out []provider.Vector) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "provider", "testdata", "vectors", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := provider.ReadVectors(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Expect.Reason == "handshake" {
			out = append(out, v)
		}
	}
	return out
}

// Every provider that says hello is answered as it wants, through the whole edge, and
// never before its signature, its word or the open window where the file asks for one.
func TestP5EveryHandshakeIsAnsweredAndNoneBeforeItsCheck(t *testing.T) {
	t.Parallel()
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	providers, answered, refused := 0, 0, map[string]int{}
	for _, name := range cat.Names() {
		shakes := shakesOf(t, name)
		if len(shakes) == 0 {
			continue
		}
		providers++
		p, _ := cat.Get(name)
		vectors := handshakeVectors(t, name)
		if len(vectors) < len(shakes) && name != "aws-sns" { // the end of a subscription: below
			t.Errorf("%s has %d handshakes and vectors of %d", name, len(shakes), len(vectors))
		}
		for _, v := range vectors {
			s := which(shakes, &v)
			request := func() *provider.Request {
				r, err := v.Request()
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			now := time.Unix(v.Now, 0)
			settings := v.Settings(p)
			w, stored := hello(t, p, settings, request(), now, s.Capture != nil)
			checkHandshake(t, &v, w)
			if stored > 0 {
				t.Errorf("%s was stored", v.Name)
			}
			answered++
			refuse := func(why string, s provider.Settings, r *provider.Request) {
				t.Helper()
				refused[why]++
				w, stored := hello(t, p, s, r, now, false)
				if w.Code < 400 || w.Code == http.StatusServiceUnavailable || stored > 0 {
					t.Errorf("%s, %s: %d, stored %d", v.Name, why, w.Code, stored)
				}
				want := v.Expect.Response
				if want.Body != nil && *want.Body != "" && strings.Contains(w.Body.String(), *want.Body) {
					t.Errorf("%s, %s: answered all the same: %s", v.Name, why, w.Body)
				}
				for name, value := range want.Headers {
					if name != "Content-Type" && w.Header().Get(name) == value {
						t.Errorf("%s, %s: answered in the header %s", v.Name, why, name)
					}
				}
			}
			if s.Capture != nil {
				refuse("no window is open", settings, request())
			}
			if s.checked() {
				other := settings
				other.Params = maps.Clone(settings.Params)
				for param := range other.Params {
					other.Params[param] += "-other"
				}
				refuse("the word is another", other, request())
			}
			if s.signed() {
				c, err := p.Compile(settings)
				if err != nil {
					t.Fatal(err)
				}
				refuse("the signature is gone", settings, spoil(t, c, request(), func(string) string { return "" }))
				refuse("the signature is another", settings, spoil(t, c, request(), another))
			}
		}
	}
	if providers < 21 || answered < 25 || refused["the signature is another"] < 10 || refused["the word is another"] < 4 || refused["no window is open"] != 2 {
		t.Errorf("%d providers, %d answered, %v refused", providers, answered, refused)
	}
}

// which finds the handshake of a vector: the one whose JSON condition it fulfils.
func which(shakes []shake, v *provider.Vector) shake {
	for _, s := range shakes {
		for _, value := range s.Match.JSON {
			if text, ok := value.(string); ok && text != "*" && strings.Contains(v.Body, text) {
				return s
			}
		}
	}
	return shakes[len(shakes)-1]
}

// another changes the middle of a text, so that it stays as well formed as it was.
func another(s string) string {
	b := []byte(s)
	at := len(b) / 2
	switch {
	case b[at] == '1':
		b[at] = '2'
	default:
		b[at] = '1'
	}
	return string(b)
}

// spoil changes what proves the sender: headers, query, or the field of an SNS message.
func spoil(t *testing.T, c *provider.Checker, r *provider.Request, change func(string) string) *provider.Request {
	t.Helper()
	done := false
	set := func(value string, to func(string)) {
		if value != "" {
			to(change(value))
			done = true
		}
	}
	for _, name := range c.AuthHeaders() {
		if strings.Contains(strings.ToLower(name), "timestamp") {
			continue
		}
		set(r.Header.Get(name), func(v string) {
			if r.Header.Set(name, v); v == "" {
				r.Header.Del(name)
			}
		})
	}
	path, query, _ := strings.Cut(r.Target, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.AuthQuery() {
		set(values.Get(name), func(v string) { values.Set(name, v) })
	}
	if len(values) > 0 {
		r.Target = path + "?" + values.Encode()
	}
	if !done {
		var doc map[string]any
		if err := json.Unmarshal(r.Body, &doc); err != nil {
			t.Fatal(err)
		}
		text, _ := doc["Signature"].(string)
		set(text, func(v string) { doc["Signature"] = v })
		if r.Body, err = json.Marshal(doc); err != nil {
			t.Fatal(err)
		}
	}
	if !done {
		t.Fatal("nothing proves the sender")
	}
	return r
}

// A subscription of SNS is confirmed at an Amazon host alone, and its end is answered, when
// they are signed. (That of another topic: package provider.)
func TestP5SNSConfirmsNothingButAtAmazon(t *testing.T) {
	t.Parallel()
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	p, _ := cat.Get("aws-sns")
	const topic, there = "arn:aws:sns:eu-west-1:123456789012:orders", "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t"
	c, err := p.Compile(provider.Settings{Params: map[string]string{"topic_arn": topic}})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := c.Rehearsal()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1800000000, 0)
	for name, tc := range map[string]struct {
		kind, url string
		version   string
		change    func(r *provider.Request)
		status    int
		visited   string
	}{
		"version 1":             {"SubscriptionConfirmation", there, "1", nil, 200, there},
		"version 2":             {"SubscriptionConfirmation", there, "2", nil, 200, there},
		"a region of China":     {"SubscriptionConfirmation", "https://sns.cn-north-1.amazonaws.com.cn/?Action=ConfirmSubscription", "2", nil, 200, "https://sns.cn-north-1.amazonaws.com.cn/?Action=ConfirmSubscription"},
		"the end of one":        {"UnsubscribeConfirmation", there, "2", nil, 200, ""},
		"another host":          {"SubscriptionConfirmation", "https://sns.eu-west-1.amazonaws.com.example.test/", "2", nil, 401, ""},
		"another Amazon host":   {"SubscriptionConfirmation", "https://bucket.s3.amazonaws.com/", "2", nil, 401, ""},
		"two labels for one":    {"SubscriptionConfirmation", "https://sns.a.b.amazonaws.com/", "2", nil, 401, ""},
		"user information":      {"SubscriptionConfirmation", "https://sns.eu-west-1.amazonaws.com@example.test/", "2", nil, 401, ""},
		"plain http":            {"SubscriptionConfirmation", "http://sns.eu-west-1.amazonaws.com/", "2", nil, 401, ""},
		"another port":          {"SubscriptionConfirmation", "https://sns.eu-west-1.amazonaws.com:8443/", "2", nil, 401, ""},
		"a version that is not": {"SubscriptionConfirmation", there, "3", nil, 401, ""},
		"the URL changed after": {"SubscriptionConfirmation", there, "2", replace("Token=t", "Token=u"), 401, ""},
		"the end, not signed":   {"UnsubscribeConfirmation", there, "2", replace(`"Message":"m"`, `"Message":"n"`), 401, ""},
		"version 1 called 2":    {"SubscriptionConfirmation", there, "1", replace(`"SignatureVersion":"1"`, `"SignatureVersion":"2"`), 401, ""},
	} {
		b, err := json.Marshal(map[string]string{"Type": tc.kind, "MessageId": "1", "Token": "t", "TopicArn": topic, "Message": "m", "SubscribeURL": tc.url,
			"Timestamp": now.UTC().Format(time.RFC3339), "SignatureVersion": tc.version, "Signature": "QUFB", "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/c.pem"})
		if err != nil {
			t.Fatal(err)
		}
		body := strings.ReplaceAll(string(b), `\u0026`, "&")
		r := &provider.Request{Method: "POST", Target: "/in/x", Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte(body)}
		if tc.version != "3" {
			if err := signer.Sign(r, 1, now); err != nil {
				t.Fatal(name, err)
			}
		}
		if tc.change != nil {
			tc.change(r)
		}
		res, err := signer.Receive(r, now)
		if res.Then != tc.visited {
			t.Errorf("%s: asks for %q to be got", name, res.Then)
		}
		w, stored := helloTo(t, p, signer, r, now, false)
		if w.Code != tc.status || stored > 0 || (err == nil) != (tc.status == 200) {
			t.Errorf("%s: %d, stored %d, %v", name, w.Code, stored, err)
		}
	}
}

func replace(old, with string) func(*provider.Request) {
	return func(r *provider.Request) { r.Body = []byte(strings.Replace(string(r.Body), old, with, 1)) }
}
