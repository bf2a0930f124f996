package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"acuse/provider"
	"acuse/store"
)

func itoa(n int) string { return strconv.Itoa(n) }

// post sends a request straight to the handler.
func post(e *Edge, target, body string, header ...string) *httptest.ResponseRecorder {
	return do(e, http.MethodPost, target, body, header...)
}

func do(e *Edge, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RequestURI = target
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

func postSigned(e *Edge, target, id, body string) *httptest.ResponseRecorder {
	return post(e, target, body, "X-Id", id, "X-Sig", sign("s3cret", []byte(body)))
}

// docs/http.md H4.
func TestAnswersToStoredEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		outcomes []store.Outcome
		parts    []int
		want     string
	}{
		{"a new event", []store.Outcome{{Kind: store.Accepted, Delivery: 10482}}, []int{-1},
			`{"status":"accepted","delivery":10482}`},
		{"a repeat names the first delivery", []store.Outcome{{Kind: store.Duplicate, Delivery: 10482}}, []int{-1},
			`{"status":"duplicate","delivery":10482}`},
		{"a repeat that queued a dead letter again", []store.Outcome{{Kind: store.Duplicate, Delivery: 7, Revived: true}}, []int{-1},
			`{"status":"duplicate","delivery":7,"revived":true}`},
		{"one that cannot be identified", []store.Outcome{{Kind: store.Quarantined, Delivery: 8}}, []int{-1},
			`{"status":"quarantined","delivery":8}`},
		{"a batch is counted", []store.Outcome{{Kind: store.Accepted, Delivery: 1}, {Kind: store.Duplicate, Delivery: 2}, {Kind: store.Accepted, Delivery: 3}},
			[]int{0, 1, 2}, `{"status":"accepted","accepted":2,"duplicates":1}`},
		{"a batch of one is still a batch", []store.Outcome{{Kind: store.Accepted, Delivery: 1}}, []int{0},
			`{"status":"accepted","accepted":1,"duplicates":0}`},
		{"a batch of repeats", []store.Outcome{{Kind: store.Duplicate, Delivery: 1}, {Kind: store.Duplicate, Delivery: 2, Revived: true}}, []int{0, 1},
			`{"status":"duplicate","accepted":0,"duplicates":2,"revived":true}`},
		{"an empty batch", nil, nil, `{"status":"accepted","accepted":0,"duplicates":0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := &visit{source: newSource(signedSource("s"), newEdge(t, EdgeOptions{}).set), outcomes: c.outcomes}
			v.result.Empty = len(c.outcomes) == 0
			for _, p := range c.parts {
				v.result.Events = append(v.result.Events, provider.Event{Part: p})
			}
			a := answerTo(v, nil)
			if a.status != 200 || strings.TrimSpace(string(a.body)) != c.want {
				t.Errorf("got %d %s, want 200 %s", a.status, a.body, c.want)
			}
		})
	}
}

// docs/http.md H5: the table of errors.
func TestAnswersToFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		err        error
		status     int
		slug       string
		retryAfter time.Duration
	}{
		{"unknown source", errNoSource, 404, "no-such-source", 0},
		{"method", errMethod, 405, "method-not-allowed", 0},
		{"a bad signature has the source's status", &provider.Refusal{Reason: provider.SignatureMismatch}, 498, "not-verified", 0},
		{"a missing header too", &provider.Refusal{Reason: provider.MissingHeader}, 498, "not-verified", 0},
		{"an old signature too", &provider.Refusal{Reason: provider.TimestampExpired}, 498, "not-verified", 0},
		{"a wrapped refusal keeps its meaning", fmt.Errorf("x: %w", &provider.Refusal{Reason: provider.TokenMismatch}), 498, "not-verified", 0},
		{"a source that was not said to be unsigned", errUnsigned, 498, "not-verified", 0},
		{"a body that is not understood", &provider.Refusal{Reason: provider.MalformedBody}, 400, "malformed", 0},
		{"an encoding that is not understood", &provider.Refusal{Reason: provider.UnsupportedEncoding}, 415, "unsupported-encoding", 0},
		{"a body that unpacks too large", &provider.Refusal{Reason: provider.TooLarge}, 413, "too-large", 0},
		{"a body over the limit", errTooLarge, 413, "too-large", 0},
		{"a body cut short", fmt.Errorf("%w: %w", errShort, errors.New("reset")), 400, "cut-short", 0},
		{"a slow body", errSlow, 408, "too-slow", 0},
		{"a flood", &errTooMany{"flooded", 1500 * time.Millisecond}, 429, "too-many-requests", 1500 * time.Millisecond},
		{"no share of the byte budget", errNoShare, 503, "busy", time.Second},
		{"a full queue", fmt.Errorf("accept: %w", store.ErrBusy), 503, "busy", time.Second},
		{"a clock that is not set", errClock, 503, "clock-not-set", 30 * time.Second},
		{"a full disk", fmt.Errorf("accept: %w", store.ErrUnavailable), 503, "not-stored", 10 * time.Second},
		{"a write the engine refuses", store.ErrRefused, 503, "not-stored", 10 * time.Second},
		{"a closed store", store.ErrClosed, 503, "not-stored", 10 * time.Second},
		{"anything else is ours", errors.New("what"), 503, "not-stored", 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := signedSource("s")
			s.RejectStatus = 498
			v := &visit{source: newSource(s, newEdge(t, EdgeOptions{}).set)}
			a := answerTo(v, c.err)
			if a.status != c.status || a.slug != c.slug || a.retryAfter != c.retryAfter {
				t.Errorf("got %d %q %v, want %d %q %v", a.status, a.slug, a.retryAfter, c.status, c.slug, c.retryAfter)
			}
		})
	}
}
