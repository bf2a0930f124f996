package web

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"acuse/provider"
)

// stage is an edge with one source that only its provider can sign for, and a clock.
type stage struct {
	edge *Edge
	in   *inbox
	now  time.Time
}

func newStage(t *testing.T, c *provider.Checker) *stage {
	s := &stage{in: &inbox{}, now: time.Unix(1800000000, 0)}
	source := func(name string) Source {
		return Source{Name: name, Provider: "p", Checker: c, Destinations: []Destination{{Name: "app"}}, PublicURL: "https://hooks.example.org/in/" + name}
	}
	s.edge = newEdge(t, EdgeOptions{Inbox: s.in, Now: func() time.Time { return s.now }}, source("x"), source("y"))
	return s
}

// post sends a sample that was signed by signer, with the body changed to body when
// that is not nil.
func (s *stage) post(t *testing.T, p *provider.Provider, signer *provider.Checker, target string, body []byte) int {
	t.Helper()
	r := signed(t, p, signer, s.now)
	if body == nil {
		body = r.Body
	}
	hr := httptest.NewRequest("POST", "http://hooks.example.org"+target, strings.NewReader(string(body)))
	hr.RequestURI = target
	hr.Header = r.Header
	w := httptest.NewRecorder()
	s.edge.ServeHTTP(w, hr)
	return w.Code
}

func signed(t *testing.T, p *provider.Provider, signer *provider.Checker, now time.Time) *provider.Request {
	t.Helper()
	sample, err := p.Sample("", p.SampleID(7))
	if err != nil {
		t.Fatal(err)
	}
	r := &provider.Request{Method: "POST", Target: "/in/x", URL: "https://hooks.example.org/in/x", Header: sample.Header, Body: sample.Body}
	if err := signer.Sign(r, 1, now); err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return r
}

// docs/http.md H28, TestP5OnlyTheAnnouncedRequestPassesByATestKey: a test key opens the door for one
// request, the announced one, and for none beside it.
func TestP5OnlyTheAnnouncedRequestPassesByATestKey(t *testing.T) {
	t.Parallel()
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string][]string{"mollie-classic": {"key"}, "gumroad": {"key"}, "plaid": {"client:key"}}
	params := map[string]map[string]string{"aws-sns": {"topic_arn": "arn:aws:sns:eu-west-1:1:t"}, "paypal": {"webhook_id": "W"}, "google-pubsub-push": {"audience": "a", "service_account": "s"}}
	ran := 0
	for _, name := range []string{"aws-sns", "paypal", "google-pubsub-push", "plaid", "discord", "sendgrid", "standard-webhooks-v1a", "wise", "ip-allow", "mollie-classic", "gumroad"} {
		p, _ := cat.Get(name)
		set := provider.Settings{Secrets: secrets[name], Params: params[name]}
		if set.Secrets == nil && params[name] == nil && name != "ip-allow" {
			set.Secrets = []string{publicSecret[name]}
		}
		c, err := p.Compile(set)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ours, err := c.Rehearsal()
		if err != nil {
			t.Fatal(err)
		}
		other, err := c.Rehearsal()
		if err != nil {
			t.Fatal(err)
		}
		s := newStage(t, c)
		body := signed(t, p, ours, s.now).Body
		refused := func(what string, code int) {
			t.Helper()
			if code/100 == 2 || len(s.in.all()) != 0 {
				t.Errorf("%s: %s: %d, stored %d", name, what, code, len(s.in.all()))
			}
		}
		announce := func(a Announcement) {
			if a.Source == "" {
				a.Source = "x"
			}
			if a.Body == nil {
				a.Body = body
			}
			a.Destinations = []string{"acuse:echo"}
			s.edge.Announce(a)
		}
		refused("nothing is announced", s.post(t, p, ours, "/in/x", nil))
		announce(Announcement{})
		refused("announced without a test key", s.post(t, p, ours, "/in/x", nil))
		announce(Announcement{Checker: ours, Source: "y"})
		refused("announced for another source", s.post(t, p, ours, "/in/x", nil))
		announce(Announcement{Checker: ours, Body: append([]byte(" "), body...)})
		refused("another body is announced", s.post(t, p, ours, "/in/x", nil))
		announce(Announcement{Checker: ours})
		refused("a byte of the body is changed", s.post(t, p, ours, "/in/x", append(append([]byte(nil), body...), ' ')))
		refused("signed by the test key of another rehearsal", s.post(t, p, other, "/in/x", nil))
		s.now = s.now.Add(announceFor + time.Second)
		refused("too late", s.post(t, p, ours, "/in/x", nil))
		s.now = s.now.Add(-announceFor)

		announce(Announcement{Checker: ours, Body: signed(t, p, ours, s.now).Body})
		if code := s.post(t, p, ours, "/in/x", nil); code/100 != 2 || len(s.in.all()) != 1 {
			t.Errorf("%s: the announced request: %d, stored %d", name, code, len(s.in.all()))
			continue
		}
		for _, e := range s.in.all()[0].Events {
			if !e.Test || len(e.Jobs) != 1 || e.Jobs[0].Destination != "acuse:echo" {
				t.Errorf("%s: stored as a real event: %+v", name, e)
			}
		}
		if code := s.post(t, p, ours, "/in/x", nil); code/100 == 2 || len(s.in.all()) != 1 {
			t.Errorf("%s: a second copy: %d", name, code)
		}
		ran++
	}
	if ran != 11 {
		t.Errorf("only %d ran", ran)
	}
}

// publicSecret are public keys of nobody.
var publicSecret = map[string]string{
	"discord":               "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
	"standard-webhooks-v1a": "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
	"wise":                  "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAzLYzs1nKfC+RnDYAmDy3\nLv3czJvZUv+P0Ke0jCsPifTl9EtJz/oejdJJp7J4mUN3O+Atw9T2VGHhR1Mj61FX\nLVNMjGKfcmv8Y9dVu07xcr4jcOnS4jX+djn7IweSNHqRaob96p6QnTkgntrD6qFe\nAlQpMVemjR/srau8U2ZpPWYgxp2Yl69TYPHi1u/n4lbtCcV5U3K1M0qDao6LMLro\nmTnOuh607QTfhga+pqW35/U9aMZawGfix8qhR1gmnam2Y4M03I2WiefWrrW6UrK9\nyxAFc7TolT7NZo8hADqKmFUnz4CFq4Z3Vk3OaDri+YnxsbdeA4AFemN+n2oCij6M\nMQIDAQAB\n-----END PUBLIC KEY-----\n",
	"sendgrid":              "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==",
}
