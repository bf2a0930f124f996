package web

import (
	"net/http"
	"strings"
	"testing"

	"acuse/provider"
	"acuse/store"
)

func TestReceiveStoresAndAnswers(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	var woken []string
	e := newEdge(t, EdgeOptions{Inbox: in, Wake: func(d []string) { woken = append(woken, d...) }}, signedSource("stripe"))

	w := postSigned(e, "/in/stripe/rest?a=1&a=2", "evt_1", `{"n":1}`)
	if w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"status":"accepted","delivery":1}` {
		t.Fatalf("first: %d %s", w.Code, w.Body)
	}
	if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("nosniff: %q", got)
	}
	if w := postSigned(e, "/in/stripe", "evt_1", `{"n":1}`); strings.TrimSpace(w.Body.String()) != `{"status":"duplicate","delivery":1}` {
		t.Errorf("second: %d %s", w.Code, w.Body)
	}
	if got := strings.Join(woken, " "); got != "app agent" {
		t.Errorf("woken: %q, once for the new event only", got)
	}

	a := in.all()[0]
	if a.Target != "/in/stripe/rest?a=1&a=2" || string(a.Body) != `{"n":1}` || a.Slot != 1 || a.Method != "POST" {
		t.Errorf("arrival %+v", a)
	}
	h, err := store.DecodeHeader(a.Header)
	if err != nil || h.Get("X-Sig") != sign("s3cret", a.Body) || h.Get("Host") != "example.com" {
		t.Errorf("headers are kept as they came in: %v %v", h, err)
	}
	jobs := a.Events[0].Jobs
	if len(jobs) != 2 || jobs[0].Key != "stripe:evt_1:app" || jobs[1].Key != "stripe:evt_1:old-agent" || jobs[1].Destination != "agent" {
		t.Errorf("jobs %+v", jobs)
	}
}

func TestProvidersOwnAnswers(t *testing.T) {
	t.Parallel()
	text := http.Header{"Content-Type": {"text/plain"}}
	for _, c := range []struct {
		name     string
		reply    *provider.Reply
		response *provider.Reply
		code     int
		body     string
		ctype    string
	}{
		{"the provider's words", &provider.Reply{Status: 200, Header: text, Body: []byte("Hello API Event Received")}, nil, 200, "Hello API Event Received", "text/plain"},
		{"an empty answer where the provider shows the text to people", &provider.Reply{Status: 200}, nil, 200, "", ""},
		{"another status", &provider.Reply{Status: 204}, nil, 204, "", ""},
		{"the owner's response wins", &provider.Reply{Status: 204}, &provider.Reply{Status: 202, Body: []byte("ok")}, 202, "ok", "text/plain; charset=utf-8"},
		{"the owner's status with our receipt", nil, &provider.Reply{Status: 202}, 202, `{"status":"accepted","delivery":1}` + "\n", "application/json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := signedSource("s")
			s.Checker = &checker{secret: "s3cret", reply: c.reply}
			s.Response = c.response
			w := postSigned(newEdge(t, EdgeOptions{Inbox: &inbox{}}, s), "/in/s", "1", "{}")
			if w.Code != c.code || w.Body.String() != c.body || w.Header().Get("Content-Type") != c.ctype {
				t.Errorf("got %d %q %q", w.Code, w.Body, w.Header().Get("Content-Type"))
			}
		})
	}
}

func TestHealthz(t *testing.T) {
	t.Parallel()
	e := newEdge(t, EdgeOptions{})
	if w := do(e, "GET", "/healthz", ""); w.Code != 200 || w.Body.String() != "ok\n" {
		t.Errorf("GET: %d %q", w.Code, w.Body)
	}
	if w := do(e, "POST", "/healthz", ""); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}
