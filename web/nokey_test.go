package web

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"acuse/provider"
)

type comeAgain struct{ error }

func (comeAgain) RetryAfter() time.Duration { return 7 * time.Second }

// docs/http.md H26: what cannot be judged now is asked to come again; it counts against
// nobody, is kept nowhere, and is no secret in the log.
func TestP5AKeyThatCannotBeHadIs503(t *testing.T) {
	t.Parallel()
	in, rows := &inbox{}, &ring{}
	fail := error(&provider.NoKey{Host: "keys.example.test", Err: comeAgain{errors.New("answered 500")}})
	s := Source{Name: "g", Checker: &checker{receive: func(*provider.Request) (provider.Result, error) { return provider.Result{}, fail }}}
	e := newEdge(t, EdgeOptions{Inbox: in, Rejections: rows}, s)
	for range 3 * refusalsBurst {
		r := httptest.NewRequest("POST", "/in/g", strings.NewReader("{}"))
		r.RemoteAddr = "198.51.100.7:1"
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != 503 || w.Header().Get("Retry-After") != "7" || !strings.Contains(w.Body.String(), "key-unavailable") {
			t.Fatalf("%d, Retry-After %q, %s", w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
	if len(in.all()) != 0 || len(rows.rows) != 0 {
		t.Errorf("%d stored, %d kept", len(in.all()), len(rows.rows))
	}
}

// docs/http.md H27: one handshake, in an open window, on disk before its answer.
func TestP1ACapturedSecretIsOnDiskBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	kept := &fragile{settings: settings{}}
	now := time.Unix(1800000000, 0)
	c := compiled(t, "asana", provider.Settings{Waiting: true})
	e := newEdge(t, EdgeOptions{Inbox: &inbox{}, Captures: kept, Now: func() time.Time { return now }}, Source{Name: "a", Checker: c})
	hello := func(secret string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/in/a", strings.NewReader(""))
		r.Header.Set("X-Hook-Secret", secret)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	if w := hello("one"); w.Code != 401 {
		t.Errorf("no window is open: %d", w.Code)
	}
	if _, err := e.OpenCapture(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	kept.broken = true
	if w := hello("one"); w.Code != 503 || w.Header().Get("X-Hook-Secret") != "" {
		t.Errorf("the disk fails: %d %v", w.Code, w.Header())
	}
	kept.broken = false
	if w := hello("two"); w.Code != 200 || w.Header().Get("X-Hook-Secret") != "two" {
		t.Errorf("the handshake: %d %v", w.Code, w.Header())
	}
	if w := hello("three"); w.Code != 401 {
		t.Errorf("a second one: %d", w.Code)
	}
	got, err := e.CaptureOf(t.Context(), "a")
	if err != nil || got.Value != "two" || !got.Until.IsZero() || !got.At.Equal(now) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := e.OpenCapture(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(captureWindow)
	if w := hello("four"); w.Code != 401 {
		t.Errorf("after ten minutes: %d", w.Code)
	}
}

// Who waits learns at once that something came, that the window was closed, that its
// time is up, that acuse stops.
func TestAnOpenWindowIsWaitedForUntilItIsOver(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(t *testing.T, e *Edge, leave func()) time.Duration{
		"a handshake": func(t *testing.T, e *Edge, _ func()) time.Duration {
			r := httptest.NewRequest("POST", "/in/a", strings.NewReader(""))
			r.Header.Set("X-Hook-Secret", "one")
			e.ServeHTTP(httptest.NewRecorder(), r)
			return 0
		},
		"closed": func(t *testing.T, e *Edge, _ func()) time.Duration {
			if err := e.EndCapture(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			return 0
		},
		"opened anew": func(t *testing.T, e *Edge, _ func()) time.Duration {
			if _, err := e.OpenCapture(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			return 0
		},
		"ten minutes":     func(*testing.T, *Edge, func()) time.Duration { return captureWindow },
		"acuse stops":     func(_ *testing.T, e *Edge, _ func()) time.Duration { e.CloseWindows(); return 0 },
		"the caller left": func(_ *testing.T, _ *Edge, leave func()) time.Duration { leave(); return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := compiled(t, "asana", provider.Settings{Waiting: true})
				e := newEdge(t, EdgeOptions{Inbox: &inbox{}, Captures: settings{}}, Source{Name: "a", Checker: c})
				e.AwaitCapture(t.Context(), "a") // nothing is open: it does not wait
				if _, err := e.OpenCapture(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				began, over := time.Now(), make(chan struct{})
				go func() { e.AwaitCapture(ctx, "a"); close(over) }()
				synctest.Wait()
				select {
				case <-over:
					t.Fatal("it did not wait")
				default:
				}
				want := act(t, e, leave)
				<-over
				if took := time.Since(began); took != want {
					t.Errorf("took %v, want %v", took, want)
				}
			})
		})
	}
}

type fragile struct {
	settings
	broken bool
}

func (f *fragile) PutSetting(ctx context.Context, name, value string) error {
	if f.broken {
		return errors.New("disk")
	}
	return f.settings.PutSetting(ctx, name, value)
}

// Xero sends wrongly signed probes and wants 401 with nothing in it.
func TestARefusalIsEmptyWhereTheProviderWantsNoBody(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]bool{"xero": true, "stripe": false} {
		c := compiled(t, name, provider.Settings{Secrets: []string{"s"}})
		e := newEdge(t, EdgeOptions{Inbox: &inbox{}}, Source{Name: "a", Checker: c})
		for _, sig := range []string{"", "d3Jvbmc="} {
			r := httptest.NewRequest("POST", "/in/a", strings.NewReader(`{"events":[],"firstEventSequence":0,"lastEventSequence":0}`))
			if sig != "" {
				r.Header.Set("X-Xero-Signature", sig)
			}
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			if w.Code != 401 || (w.Body.Len() == 0) != empty || len(w.Header()["Set-Cookie"]) != 0 {
				t.Errorf("%s, signature %q: %d %q", name, sig, w.Code, w.Body)
			}
		}
	}
}

// A test of ours comes from this machine, whatever addresses the source takes; and
// nothing else does because of it.
func TestAnAnnouncedTestIsNotRefusedForItsAddress(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	s := signedSource("g")
	s.AllowIPs = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	e := newEdge(t, EdgeOptions{Inbox: in}, s)
	from := func(addr, body string) int {
		r := httptest.NewRequest("POST", "/in/g", strings.NewReader(body))
		r.RemoteAddr = addr
		r.Header.Set("X-Id", body)
		r.Header.Set("X-Sig", sign("s3cret", []byte(body)))
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w.Code
	}
	if code := from("127.0.0.1:1", "ours"); code != 401 {
		t.Errorf("nothing is announced: %d", code)
	}
	e.Announce(Announcement{Source: "g", Body: []byte("ours")})
	if code := from("127.0.0.1:1", "another"); code != 401 {
		t.Errorf("another body: %d", code)
	}
	if code := from("198.51.100.1:1", "ours"); code != 401 {
		t.Errorf("from elsewhere: %d", code)
	}
	if code := from("127.0.0.1:1", "ours"); code != 200 {
		t.Errorf("ours: %d", code)
	}
	if code := from("127.0.0.1:1", "ours"); code != 401 || len(in.all()) != 1 {
		t.Errorf("a second time: %d, %d stored", code, len(in.all()))
	}
}
