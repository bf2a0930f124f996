package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/provider"
	"acuse/store"
)

// P1, docs/http.md H3: no 2xx leaves before Accept returned nil.
func TestP1NoAnswerBeforeTheEventIsOnDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		onDisk := make(chan struct{})
		var durable atomic.Bool
		in := &inbox{before: func() error { <-onDisk; durable.Store(true); return nil }}
		p := servePipes(t, newEdge(t, EdgeOptions{Inbox: in}, signedSource("g")))
		c := p.dial()
		go func() { _, _ = io.WriteString(c, signedRequest("g", "1", "{}")) }()
		said := make(chan bool, 1)
		go func() {
			b := make([]byte, 12)
			_, _ = io.ReadFull(c, b)
			said <- string(b) == "HTTP/1.1 200" && durable.Load()
		}()
		time.Sleep(10 * time.Second) // fake: nothing but the write is waited for, however long
		select {
		case <-said:
			t.Fatal("an answer left while the write was under way")
		default:
		}
		close(onDisk)
		if !<-said {
			t.Error("no 200 after the write, or it left too early")
		}
		_ = c.Close()
	})
}

func TestP1AFailingStoreIs503WithRetryAfter(t *testing.T) {
	t.Parallel()
	for _, fail := range []error{store.ErrUnavailable, store.ErrBusy, store.ErrRefused, store.ErrClosed, context.Canceled, errors.New("other")} {
		in := &inbox{before: func() error { return fmt.Errorf("accept: %w", fail) }}
		woken := false
		e := newEdge(t, EdgeOptions{Inbox: in, Wake: func([]string) { woken = true }}, signedSource("g"))
		w := postSigned(e, "/in/g", "1", "{}")
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || woken {
			t.Errorf("%v: %d, Retry-After %q, woken %v", fail, w.Code, w.Header().Get("Retry-After"), woken)
		}
		in.before = nil
		if w := postSigned(e, "/in/g", "1", "{}"); w.Code != 200 || !strings.Contains(w.Body.String(), "accepted") {
			t.Errorf("%v: the same event later: %d %s", fail, w.Code, w.Body)
		}
	}
}

// A sender that leaves does not stop the write, nor the wake of the lanes.
func TestP1ASenderThatLeavesIsStillServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		onDisk := make(chan struct{})
		in := &inbox{before: func() error { <-onDisk; return nil }}
		woken := make(chan []string, 1)
		p := servePipes(t, newEdge(t, EdgeOptions{Inbox: in, Wake: func(d []string) { woken <- d }}, signedSource("g")))
		c := p.dial()
		_, _ = io.WriteString(c, signedRequest("g", "1", "{}"))
		_ = c.Close()
		synctest.Wait()
		close(onDisk)
		if got := <-woken; len(got) != 2 || len(in.all()) != 1 {
			t.Errorf("woken %v, stored %d", got, len(in.all()))
		}
	})
}

// P5: what is not signed by a configured secret is stored by no source, unless the
// owner said that nothing needs to be signed.
func TestP5NothingUnsignedPasses(t *testing.T) {
	t.Parallel()
	unsaid, said := signedSource("unsaid"), signedSource("said")
	unsaid.Checker = &checker{none: true}
	said.Checker, said.Unsigned = &checker{none: true}, true
	empty := signedSource("empty")
	empty.Checker = &checker{secret: ""}
	in := &inbox{}
	e := newEdge(t, EdgeOptions{Inbox: in}, signedSource("signed"), unsaid, said, empty)
	for _, c := range []struct {
		name, source string
		header       []string
		want         int
	}{
		{"no signature", "signed", nil, 401},
		{"an empty signature", "signed", []string{"X-Sig", ""}, 401},
		{"a forged one", "signed", []string{"X-Sig", sign("other", []byte("{}"))}, 401},
		{"one of another body", "signed", []string{"X-Sig", sign("s3cret", []byte("{ }"))}, 401},
		{"a retry header earns nothing", "signed", []string{"X-Slack-Retry-Num", "1"}, 401},
		{"a signature by the empty secret", "empty", []string{"X-Sig", sign("", []byte("{}"))}, 401},
		{"a provider that signs nothing, not said to be unsigned", "unsaid", nil, 401},
		{"the same, said to be unsigned", "said", nil, 200},
	} {
		before := len(in.all())
		w := post(e, "/in/"+c.source, "{}", c.header...)
		if w.Code != c.want || (len(in.all()) > before) != (c.want == 200) {
			t.Errorf("%s: %d, stored %d", c.name, w.Code, len(in.all())-before)
		}
	}
}

func TestP5HandshakesStoreNothing(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	s := signedSource("g")
	s.Checker = &checker{methods: []string{"GET"}, receive: func(r *provider.Request) (provider.Result, error) {
		if r.Method == "GET" && !strings.Contains(r.Target, "challenge") {
			return provider.Result{Unverified: true, Events: []provider.Event{{ID: "1", Part: -1}}}, nil
		}
		return provider.Result{Handshake: &provider.Reply{Status: 200, Header: http.Header{"content-type": {"text/plain"}}, Body: []byte("c-<b>1")}}, nil
	}}
	s.Unsigned = true
	e := newEdge(t, EdgeOptions{Inbox: in}, s)
	w := do(e, "GET", "/in/g?challenge=x", "")
	if w.Code != 200 || w.Body.String() != "c-<b>1" || w.Header().Get("Content-Type") != "text/plain" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	if w := do(e, "GET", "/in/g", ""); w.Code != 405 || w.Header().Get("Allow") != "POST, GET" {
		t.Errorf("a GET that is no handshake: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
	if n := len(in.all()); n != 0 {
		t.Errorf("%d stored", n)
	}
}

// P7: the answer waits for nobody but the store: not for the ring of rejections, which
// may hang, and not for the lanes.
func TestP7TheAnswerWaitsForTheStoreOnly(t *testing.T) {
	t.Parallel()
	stuck := &stuckRing{free: make(chan struct{})}
	e := newEdge(t, EdgeOptions{Inbox: &inbox{}, Rejections: stuck}, signedSource("g"))
	defer close(stuck.free)
	for range 150 { // more than the queue holds
		if w := post(e, "/in/g", "{}", "X-Sig", "no"); w.Code != 401 {
			t.Fatalf("%d", w.Code)
		}
	}
	if w := postSigned(e, "/in/g", "1", "{}"); w.Code != 200 {
		t.Errorf("a good one: %d", w.Code)
	}
}

type stuckRing struct {
	free chan struct{}
	store.Rejections
}

func (s *stuckRing) Reject(context.Context, store.Rejection) error { <-s.free; return nil }

// P9, docs/http.md H19: nothing of what senders and owners keep secret stands in the log, in the
// metrics or in an answer, at whatever level, for good and bad requests and panics.
func TestP9LogsAreSilent(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	set := metrics.NewSet()
	kept := &ring{}
	panics := signedSource("panics")
	panics.Checker = &checker{receive: func(r *provider.Request) (provider.Result, error) { panic("case-SECRET-P " + string(r.Body)) }}
	broken := &inbox{}
	e := NewEdge(EdgeOptions{
		Inbox: broken, Rejections: kept, Metrics: set,
		Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug - 4})),
	})
	e.SetSources([]Source{signedSource("g"), panics})
	addr := serve(t, e, 0)

	body := `{"update_id":1,"text":"case-SECRET-BODY"}`
	var answers bytes.Buffer
	ask := func(path, sig, more string) {
		d := dial(t, addr).send("POST " + path + " HTTP/1.1\r\nHost: h\r\nX-Id: case-1\r\nX-Sig: " + sig +
			"\r\nAuthorization: Bearer case-SECRET-E\r\nCookie: s=case-SECRET-F\r\n" + more + "Connection: close\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body)
		_, _ = io.Copy(&answers, d.in)
	}
	good := sign("s3cret", []byte(body))
	ask("/in/g?token=case-SECRET-B&a=1", good, "")
	ask("/in/g?token=case-SECRET-B", good, "")
	ask("/in/g?token=case-SECRET-B&a=1", "case-SECRET-A-wrong", "X-Tok: case-SECRET-A\r\n")
	ask("/in/g/case-SECRET-C?token=case-SECRET-B", "", "")
	ask("/in/case-SECRET-C?token=case-SECRET-B", good, "")
	ask("/case-SECRET-C/g?token=case-SECRET-B", good, "")
	ask("/in/panics?token=case-SECRET-B", good, "")
	d := dial(t, addr).send("POST /in/g?token=case-SECRET-B HTTP/1.1\r\nHost: h\r\nX-Sig: " + good + "\r\nContent-Length: 99\r\n\r\ncase-SECRET-BODY")
	_ = d.c.Close()
	dial(t, addr).send("case-SECRET-X / HTTP/9.9\r\n\r\n")
	broken.before = func() error { return store.ErrUnavailable }
	ask("/in/g?token=case-SECRET-B&a=1", good, "")
	e.Close()

	set.WritePrometheus(&answers)
	for name, text := range map[string]string{"log": log.String(), "answers and metrics": answers.String()} {
		for _, secret := range []string{"case-SECRET", "s3cret", good, "update_id"} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s holds %q:\n%s", name, secret, text)
			}
		}
	}
	for _, want := range []string{`"outcome":"accepted"`, `"outcome":"duplicate"`, `"reason":"signature_mismatch"`, `"reason":"missing_header"`, `"outcome":"storage"`, `"panic":"string"`, `"outcome":"unknown_source"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}

	// What is kept for a person to look at has digests in place of tokens.
	rows, err := json.Marshal(kept.rows)
	if err != nil || len(kept.rows) == 0 {
		t.Fatalf("%d rejections, %v", len(kept.rows), err)
	}
	for _, row := range kept.rows {
		text := string(row.Header) + row.Target + row.Detail
		for _, secret := range []string{"case-SECRET-B", "case-SECRET-E", "case-SECRET-F"} {
			if strings.Contains(text, secret) {
				t.Errorf("a rejection holds %s: %s", secret, text)
			}
		}
	}
	if !strings.Contains(string(rows), "digest:") {
		t.Errorf("no digests: %s", rows)
	}
}

// A dead disk is logged once a minute and not once a request.
func TestTroubleIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		e := newEdge(t, EdgeOptions{Inbox: &inbox{before: func() error { return store.ErrUnavailable }},
			Log: slog.New(slog.NewTextHandler(&log, nil))}, signedSource("g"))
		for range 180 {
			postSigned(e, "/in/g", "1", "{}")
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "storage"); n < 2*3 || n > 2*4 { // the word stands twice in a line
			t.Errorf("%d:\n%s", n, log.String())
		}
		if !strings.Contains(log.String(), "suppressed=59") {
			t.Errorf("the lines left out are not counted:\n%s", log.String())
		}
	})
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
