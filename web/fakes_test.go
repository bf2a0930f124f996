package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"acuse/provider"
	"acuse/store"
)

// TestMain sees to it that no test leaves a goroutine behind, but for net/http's half
// second in which a refused sender may read its answer.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// checker is a small provider: the header X-Sig is the hex HMAC of the body, X-Id
// the event id. Fields bend it for single tests.
type checker struct {
	secret  string // empty: nothing passes
	none    bool   // a provider without authentication
	methods []string
	reply   *provider.Reply
	receive func(r *provider.Request) (provider.Result, error) // instead of all this
}

func (c *checker) Early(method string, h http.Header) error {
	if c.none || c.receive != nil || method == http.MethodGet || h.Get("X-Sig") != "" {
		return nil
	}
	return &provider.Refusal{Reason: provider.MissingHeader, Detail: "header:X-Sig"}
}

func (c *checker) Receive(r *provider.Request, _ time.Time) (provider.Result, error) {
	if c.receive != nil {
		return c.receive(r)
	}
	res := c.Identify(r)
	if res.Unverified = c.none; c.none {
		return res, nil
	}
	if c.secret == "" || !hmac.Equal([]byte(r.Header.Get("X-Sig")), []byte(sign(c.secret, r.Body))) {
		return provider.Result{}, &provider.Refusal{Reason: provider.SignatureMismatch, Signed: true}
	}
	res.Slot = 1
	return res, nil
}

func (c *checker) Identify(r *provider.Request) provider.Result {
	id := r.Header.Get("X-Id")
	return provider.Result{Events: []provider.Event{{ID: id, NoID: id == "", Type: "t", Part: -1}}}
}

func (c *checker) Methods() []string                       { return c.methods }
func (c *checker) Reply(*provider.Request) *provider.Reply { return c.reply }
func (c *checker) AuthHeaders() []string                   { return []string{"X-Sig"} }
func (c *checker) TokenHeaders() []string                  { return []string{"X-Sig"} }
func (c *checker) TokenQuery() []string                    { return []string{"token"} }

func (c *checker) Restore(func(string) bool) (string, bool) { return "", false }

func sign(secret string, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(body)
	return hex.EncodeToString(m.Sum(nil))
}

// inbox keeps what it accepts in memory and knows repeats.
type inbox struct {
	before func() error // runs before anything is kept; its error is Accept's

	mu       sync.Mutex
	arrivals []store.Arrival
	seen     map[string]int64
	next     int64
}

func (in *inbox) Accept(_ context.Context, a store.Arrival) ([]store.Outcome, error) {
	if in.before != nil {
		if err := in.before(); err != nil {
			return nil, err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.seen == nil {
		in.seen = map[string]int64{}
	}
	in.arrivals = append(in.arrivals, a)
	var out []store.Outcome
	for _, e := range a.Events {
		k := a.Source + "\x00" + e.ID
		if id, ok := in.seen[k]; ok && e.Quarantine == "" {
			out = append(out, store.Outcome{Kind: store.Duplicate, Delivery: id})
			continue
		}
		in.next++
		kind := store.Accepted
		if e.Quarantine != "" {
			kind = store.Quarantined
		} else {
			in.seen[k] = in.next
		}
		out = append(out, store.Outcome{Kind: kind, Delivery: in.next})
	}
	return out, nil
}

func (in *inbox) all() []store.Arrival {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]store.Arrival(nil), in.arrivals...)
}

// settings keeps captured secrets in memory.
type settings map[string]string

func (s settings) Setting(_ context.Context, name string) (string, bool, error) {
	v, ok := s[name]
	return v, ok, nil
}

func (s settings) PutSetting(_ context.Context, name, value string) error {
	s[name] = value
	return nil
}

// ring keeps rejections in memory.
type ring struct {
	mu   sync.Mutex
	rows []store.Rejection
	store.Rejections
}

func (r *ring) Reject(_ context.Context, x store.Rejection) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, x)
	return nil
}

func signedSource(name string) Source {
	return Source{Name: name, Provider: "test", Checker: &checker{secret: "s3cret"},
		Destinations: []Destination{{Name: "app"}, {Name: "agent", KeyName: "old-agent"}}}
}

// newEdge makes an edge that is closed with the test. The log goes nowhere unless
// the options say so.
func newEdge(t testing.TB, o EdgeOptions, sources ...Source) *Edge {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	e := NewEdge(o)
	e.SetSources(sources)
	t.Cleanup(e.Close)
	return e
}

// serve starts the public listener in front of the edge and tells its address.
func serve(t testing.TB, e *Edge, maxConns int) string {
	t.Helper()
	s := NewServer(ServerOptions{Handler: e, MaxConns: maxConns, Log: e.log})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return l.Addr().String()
}

// signedRequest is a good request as bytes for a raw socket.
func signedRequest(source, id, body string, more ...string) string {
	return "POST /in/" + source + " HTTP/1.1\r\nHost: h\r\nX-Id: " + id + "\r\nX-Sig: " + sign("s3cret", []byte(body)) + "\r\n" +
		strings.Join(more, "") + "Content-Length: " + itoa(len(body)) + "\r\n\r\n" + body
}

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

// null accepts everything and keeps nothing.
type null struct{}

var taken = []store.Outcome{{Kind: store.Accepted, Delivery: 10482}}

func (null) Accept(context.Context, store.Arrival) ([]store.Outcome, error) { return taken, nil }
