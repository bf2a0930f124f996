package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"acuse/store"
)

func newPull(s store.Jobs, change func(*PullOptions)) *Pull {
	o := PullOptions{
		Jobs:         s,
		Item:         func(_ string, b []byte, part int) ([]byte, error) { return []byte(fmt.Sprintf("[%c]", b[part])), nil },
		Allow:        func(*http.Request, string) error { return nil },
		Who:          func(*http.Request) string { return "bob" },
		Destinations: map[string]PullDestination{"agent": {Wait: func(int) time.Duration { return 10 * time.Second }}, "brief": {Lease: 10 * time.Second, HardLimit: 15 * time.Second, Budget: 2}},
		Log:          slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if change != nil {
		change(&o)
	}
	return NewPull(o)
}

// call posts to the pull API and decodes the answer.
func call(p http.Handler, path, body string) (int, map[string]any) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/jobs/"+path, strings.NewReader(body)))
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		return w.Code, map[string]any{"unreadable": w.Body.String()}
	}
	return w.Code, got
}

func leaseOne(t *testing.T, p http.Handler, destination string) map[string]any {
	t.Helper()
	code, got := call(p, "lease", `{"destination":"`+destination+`"}`)
	list, _ := got["jobs"].([]any)
	if code != 200 || len(list) != 1 {
		t.Fatalf("lease: %d %v", code, got)
	}
	return list[0].(map[string]any)
}

// docs/http.md H25.
func TestLeaseAnswersWithJobAndPayload(t *testing.T) {
	t.Parallel()
	s := newShelf()
	now := time.Date(2026, 1, 1, 0, 0, 0, 5e6, time.UTC)
	header := store.EncodeHeader(http.Header{"X-Name": {"caf\xe9", "b"}, "Cookie": {"c"}, "Connection": {"X-Hop"}, "X-Hop": {"1"},
		"X-Forwarded-For": {"1.1.1.1"}, "Acuse-Test": {"1"}, "Idempotency-Key": {"theirs"}, "Host": {"h"}})
	s.add(1, "agent", now, store.Payload{Header: header, Body: []byte("\xff{}"), Part: -1})
	s.add(2, "agent", now, store.Payload{Body: []byte("ab"), Part: 1})
	s.add(3, "agent", now, store.Payload{Part: -1})
	p := newPull(s, func(o *PullOptions) { o.Now = func() time.Time { return now } })
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("POST", "/api/v1/jobs/lease", strings.NewReader(`{"destination":"agent","max":2,"ttl_seconds":30}`)))
	lease := leaseText(1, now)
	const rest = `"resource":"","received_at":"0001-01-01T00:00:00.000Z","method":"","resend":false,"test":false,`
	want := `{"jobs":[` +
		`{"job":1,"lease":"` + lease + `","lease_until":"2026-01-01T00:00:30.005Z","attempt":1,"delivery":10001,"source":"s","event_id":"e1","type":"t","idempotency_key":"s:e1:agent",` + rest +
		`"headers":HEADERS,"body_base64":"` + base64.StdEncoding.EncodeToString([]byte("\xff{}")) + `"},` +
		`{"job":2,"lease":"` + lease + `","lease_until":"2026-01-01T00:00:30.005Z","attempt":1,"delivery":10002,"source":"s","event_id":"e2","type":"t","idempotency_key":"s:e2:agent",` + rest +
		`"headers":{},"body_base64":"` + base64.StdEncoding.EncodeToString([]byte("[b]")) + `"}]}` + "\n"
	got := w.Body.String()
	var read struct {
		Jobs []struct{ Headers map[string][]string }
	}
	if err := json.Unmarshal([]byte(got), &read); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	h := read.Jobs[0].Headers
	if len(h) != 3 || h["X-Name"][0] != "café" || h["X-Name"][1] != "b" || h["Host"][0] != "h" || h["Acuse-Original-Idempotency-Key"][0] != "theirs" {
		t.Errorf("headers %v", h)
	}
	from := strings.Index(got, `"headers":`) + len(`"headers":`)
	to := strings.Index(got, `,"body_base64"`)
	if got[:from]+"HEADERS"+got[to:] != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if third := leaseOne(t, p, "agent"); third["body_base64"] != "" {
		t.Errorf("an empty body is an empty text: %v", third["body_base64"])
	}
	if code, got := call(p, "lease", `{"destination":"agent"}`); code != 200 || fmt.Sprint(got) != "map[jobs:[]]" {
		t.Errorf("nothing left is an empty list: %d %v", code, got)
	}
	if owner := s.jobs[1].LeaseOwner; owner != "pull/bob" {
		t.Errorf("owner %q", owner)
	}
}

// docs/http.md H20 and the pull API's table of errors.
func TestCallsAreStrict(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.add(1, "agent", time.Time{}, store.Payload{Part: -1})
	p := newPull(s, func(o *PullOptions) {
		o.Allow = func(_ *http.Request, scope string) error {
			if scope == "pull:secret" {
				return errors.New("no")
			}
			return nil
		}
	})
	s.add(2, "secret", time.Time{}, store.Payload{Part: -1})
	for _, c := range []struct {
		path, body string
		want       int
		slug       string
	}{
		{"lease", `{"destination":"agent","dest":1}`, 400, "bad-request"},
		{"lease", `{"destination":5}`, 400, "bad-request"},
		{"lease", `{}`, 400, "bad-request"},
		{"lease", ``, 400, "bad-request"},
		{"lease", `[]`, 400, "bad-request"},
		{"lease", `{"destination":"agent"} {}`, 400, "bad-request"},
		{"lease", `{"destination":"agent","max":0}`, 400, "bad-request"},
		{"lease", `{"destination":"agent","max":101}`, 400, "bad-request"},
		{"lease", `{"destination":"agent","ttl_seconds":0}`, 400, "bad-request"},
		{"lease", `{"destination":"agent","ttl_seconds":3601}`, 400, "bad-request"},
		{"lease", `{"destination":"agent","wait_seconds":61}`, 400, "bad-request"},
		{"lease", `{"destination":"agent","wait_seconds":-1}`, 400, "bad-request"},
		{"lease", `{"destination":"agent","max":1.5}`, 400, "bad-request"},
		{"lease", `{"destination":"nowhere"}`, 404, "no-such-destination"},
		{"lease", `{"destination":"secret"}`, 403, "not-allowed"},
		{"lease", `{"destination":"` + strings.Repeat("x", maxCall) + `"}`, 413, "too-large"},
		{"2/ack", `{"lease":"1.1"}`, 403, "not-allowed"},
		{"9/ack", `{"lease":"1.1"}`, 404, "no-such-job"},
		{"x/ack", `{"lease":"1.1"}`, 404, "no-such-job"},
		{"-1/ack", `{"lease":"1.1"}`, 404, "no-such-job"},
		{"1/ack", `{"lease":"1.1"}`, 409, "lease-lost"},
		{"1/ack", `{"lease":"nonsense"}`, 409, "lease-lost"},
		{"1/ack", `{}`, 409, "lease-lost"},
		{"1/ack", `{"lease":"1.1","token":"x"}`, 400, "bad-request"},
		{"1/nack", `{"lease":"1.1","retry_after_seconds":86401}`, 400, "bad-request"},
		{"1/nack", `{"lease":"1.1","retry_after_seconds":-1}`, 400, "bad-request"},
		{"1/renew", `{"lease":"1.1","ttl_seconds":0}`, 400, "bad-request"},
		{"1/steal", `{}`, 404, "not-found"},
		{"1", `{}`, 404, "not-found"},
		{"", `{}`, 404, "not-found"},
	} {
		code, got := call(p, c.path, c.body)
		if code != c.want || got["type"] != "urn:acuse:problem:"+c.slug {
			t.Errorf("%s %.60s: got %d %v, want %d %s", c.path, c.body, code, got, c.want, c.slug)
		}
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/jobs/lease", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d", w.Code)
	}
	s.err = store.ErrUnavailable
	if code, got := call(p, "lease", `{"destination":"agent"}`); code != 503 || got["type"] != "urn:acuse:problem:storage" {
		t.Errorf("a sick store: %d %v", code, got)
	}
}

// docs/http.md H22, H23 and H24.
func TestAckRenewNack(t *testing.T) {
	t.Parallel()
	begin := func(destination string, change func(*PullOptions)) (*shelf, *Pull, func(act, more string) (int, map[string]any), *time.Time) {
		s := newShelf()
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s.add(1, destination, now, store.Payload{Part: -1})
		p := newPull(s, func(o *PullOptions) {
			o.Now = func() time.Time { return now }
			if change != nil {
				change(o)
			}
		})
		lease := leaseOne(t, p, destination)["lease"].(string)
		return s, p, func(act, more string) (int, map[string]any) {
			return call(p, "1/"+act, `{"lease":"`+lease+`"`+more+`}`)
		}, &now
	}
	t.Run("ack delivers, once", func(t *testing.T) {
		t.Parallel()
		var moved []int64
		s, _, do, now := begin("agent", func(o *PullOptions) { o.Changed = func(id int64) { moved = append(moved, id) } })
		*now = now.Add(7 * time.Second)
		if code, got := do("ack", ""); code != 200 || got["state"] != "delivered" {
			t.Fatalf("%d %v", code, got)
		}
		x := s.settled[0]
		if x.State != store.Delivered || x.Result.Outcome != store.Succeeded || x.Result.Worker != "bob" || x.Result.Duration != 7*time.Second || x.Token != 1 {
			t.Errorf("%+v", x)
		}
		if code, got := do("ack", ""); code != 409 || got["type"] != "urn:acuse:problem:lease-lost" {
			t.Errorf("again: %d %v", code, got)
		}
		if fmt.Sprint(moved) != "[10001 10001]" {
			t.Errorf("changed: %v", moved)
		}
	})
	t.Run("renew moves the deadline by the destination's lease or as asked", func(t *testing.T) {
		t.Parallel()
		s, _, do, now := begin("agent", nil)
		if code, got := do("renew", ""); code != 200 || got["lease_until"] != "2026-01-01T00:01:00.000Z" || got["hard_limit_at"] != nil {
			t.Errorf("%d %v", code, got)
		}
		if code, got := do("renew", `,"ttl_seconds":5`); code != 200 || !s.renewed.Equal(now.Add(5*time.Second)) {
			t.Errorf("%d %v %v", code, got, s.renewed)
		}
	})
	t.Run("renew stops at the hard limit", func(t *testing.T) {
		t.Parallel()
		_, _, do, now := begin("brief", nil)
		*now = now.Add(9 * time.Second)
		if code, got := do("renew", ""); code != 200 || got["lease_until"] != "2026-01-01T00:00:15.000Z" || got["hard_limit_at"] != "2026-01-01T00:00:15.000Z" {
			t.Errorf("%d %v", code, got)
		}
		*now = now.Add(6 * time.Second)
		if code, got := do("renew", ""); code != 409 || got["type"] != "urn:acuse:problem:hard-limit" {
			t.Errorf("%d %v", code, got)
		}
	})
	t.Run("nack queues by the schedule", func(t *testing.T) {
		t.Parallel()
		s, _, do, _ := begin("agent", nil)
		code, got := do("nack", `,"error":"no `+strings.Repeat("x", 2*maxNote)+`"`)
		if code != 200 || got["state"] != "queued" || got["due_at"] != "2026-01-01T00:00:10.000Z" {
			t.Errorf("%d %v", code, got)
		}
		if x := s.settled[0].Result; x.Outcome != store.Failed || x.Class != "nack" || len(x.Error) != maxNote {
			t.Errorf("%+v", x)
		}
	})
	t.Run("nack queues when it is asked to", func(t *testing.T) {
		t.Parallel()
		_, _, do, _ := begin("agent", nil)
		if code, got := do("nack", `,"retry_after_seconds":30`); code != 200 || got["due_at"] != "2026-01-01T00:00:30.000Z" {
			t.Errorf("%d %v", code, got)
		}
	})
	t.Run("nack dead is a dead letter refused by the app", func(t *testing.T) {
		t.Parallel()
		died := 0
		s, _, do, _ := begin("agent", func(o *PullOptions) { o.Died = func() { died++ } })
		if code, got := do("nack", `,"dead":true,"retry_after_seconds":30`); code != 200 || got["state"] != "dead" || got["due_at"] != nil {
			t.Errorf("%d %v", code, got)
		}
		if x := s.settled[0]; x.State != store.Dead || x.Reason != store.RefusedByApp || !x.Due.IsZero() || died != 1 {
			t.Errorf("%+v, died %d", x, died)
		}
	})
	t.Run("the last attempt of the budget is the end, whatever wait is asked", func(t *testing.T) {
		t.Parallel()
		s, p, do, now := begin("brief", nil) // a schedule of one wait: two attempts
		if _, got := do("nack", ""); got["due_at"] != "2026-01-01T00:01:00.000Z" {
			t.Errorf("%v", got)
		}
		*now = now.Add(time.Minute)
		lease := leaseOne(t, p, "brief")["lease"].(string)
		if code, got := call(p, "1/nack", `{"lease":"`+lease+`","retry_after_seconds":30}`); code != 200 || got["state"] != "dead" {
			t.Errorf("%d %v", code, got)
		}
		if x := s.settled[1]; x.Reason != store.Exhausted {
			t.Errorf("%+v", x)
		}
	})
	t.Run("P4: who lost the lease may not settle", func(t *testing.T) {
		t.Parallel()
		s, p, do, now := begin("agent", nil)
		s.jobs[1].State, s.jobs[1].DueAt = store.Queued, *now // the sweep found its deadline passed
		cur := leaseOne(t, p, "agent")["lease"].(string)
		for _, act := range []string{"ack", "nack", "renew"} {
			if code, got := do(act, ""); code != 409 || got["type"] != "urn:acuse:problem:lease-lost" {
				t.Errorf("late %s: %d %v", act, code, got)
			}
		}
		if code, _ := call(p, "1/ack", `{"lease":"`+cur+`"}`); code != 200 || len(s.settled) != 1 {
			t.Errorf("the holder: %d", code)
		}
	})
}

func TestAnItemThatCannotBeCutOutIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.add(1, "agent", time.Time{}, store.Payload{Part: 3})
	p := newPull(s, func(o *PullOptions) {
		o.Item = func(string, []byte, int) ([]byte, error) { return nil, errors.New("no such item") }
	})
	if code, got := call(p, "lease", `{"destination":"agent"}`); code != 200 || fmt.Sprint(got) != "map[jobs:[]]" {
		t.Errorf("%d %v", code, got)
	}
	if len(s.settled) != 1 || s.settled[0].State != store.Queued || s.settled[0].Result.Class != "payload" {
		t.Errorf("%+v", s.settled)
	}
}

// docs/http.md H21.
func TestLongPolls(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, wait string) (*shelf, *Pull, chan int) {
		s := newShelf()
		p := newPull(s, nil)
		n := make(chan int, 1)
		go func() {
			_, got := call(p, "lease", `{"destination":"agent","wait_seconds":`+wait+`}`)
			list, _ := got["jobs"].([]any)
			n <- len(list)
		}()
		synctest.Wait()
		return s, p, n
	}
	t.Run("a wake ends the wait at once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, p, n := begin(t, "60")
			start := time.Now()
			time.Sleep(7 * time.Second)
			p.Wake("other")
			s.add(1, "agent", time.Now(), store.Payload{Part: -1})
			p.Wake("agent")
			if got := <-n; got != 1 || time.Since(start) != 7*time.Second {
				t.Errorf("%d jobs after %v", got, time.Since(start))
			}
		})
	})
	t.Run("a job that comes due ends the wait without a wake", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, p, n := begin(t, "60")
			start := time.Now()
			s.add(1, "agent", time.Now().Add(20*time.Second), store.Payload{Part: -1})
			p.Wake("agent")
			if got := <-n; got != 1 || time.Since(start) != 20*time.Second {
				t.Errorf("%d jobs after %v", got, time.Since(start))
			}
		})
	})
	t.Run("without jobs it lasts as long as asked", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, _, n := begin(t, "60")
			if got := <-n; got != 0 || time.Since(start) != time.Minute {
				t.Errorf("%d jobs after %v", got, time.Since(start))
			}
		})
	})
	t.Run("closing ends it with an empty list", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			_, p, n := begin(t, "60")
			start := time.Now()
			p.Close()
			if got := <-n; got != 0 || time.Since(start) != 0 {
				t.Errorf("%d jobs after %v", got, time.Since(start))
			}
		})
	})
	t.Run("a job that is due and not given out does not spin", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &held{shelf: newShelf()}
			s.add(1, "agent", time.Time{}, store.Payload{Part: -1})
			p := newPull(s, nil)
			call(p, "lease", `{"destination":"agent","wait_seconds":10}`)
			if s.asked > 12 {
				t.Errorf("asked %d times in ten seconds", s.asked)
			}
		})
	})
	t.Run("a worker that leaves takes no jobs", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newShelf()
			p := newPull(s, nil)
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				r := httptest.NewRequest("POST", "/api/v1/jobs/lease", strings.NewReader(`{"destination":"agent","wait_seconds":60}`))
				p.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
			}()
			synctest.Wait()
			leave()
			<-done
			s.add(1, "agent", time.Now(), store.Payload{Part: -1})
			p.Wake("agent")
			synctest.Wait()
			if s.jobs[1].State != store.Queued {
				t.Error("it was leased to nobody")
			}
		})
	})
}

// held gives nothing out, as when the head of an order waits.
type held struct {
	*shelf
	asked int
}

func (h *held) Lease(context.Context, store.LeaseQuery) ([]store.Lease, error) {
	h.asked++
	return nil, nil
}

func FuzzCalls(f *testing.F) {
	f.Add("lease", `{"destination":"agent","max":1}`)
	f.Add("1/ack", `{"lease":"1.1"}`)
	f.Add("1/nack", `{"lease":"zz.zz","retry_after_seconds":1e9}`)
	f.Fuzz(func(t *testing.T, path, body string) {
		s := newShelf()
		s.add(1, "agent", time.Time{}, store.Payload{Part: -1})
		p := newPull(s, nil)
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.URL.Path = "/api/v1/jobs/" + path
		w := httptest.NewRecorder()
		if strings.Contains(body, "wait_seconds") {
			p.Close()
		}
		p.ServeHTTP(w, r)
		if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}
