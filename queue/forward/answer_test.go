package forward

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"acuse/store"
)

func TestWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	elsewhere, other := app(t, nil)
	for _, c := range []struct {
		name       string
		status     int
		retryAfter string
		outcome    store.AttemptOutcome
		class      string
		wait       time.Duration
	}{
		{"200 is success", 200, "", store.Succeeded, "", 0},
		{"204 is success", 204, "", store.Succeeded, "", 0},
		{"299 is success", 299, "30", store.Succeeded, "", 0},
		{"a redirect is a failure and is not followed", 301, "", store.Failed, "redirect", 0},
		{"307 too", 307, "", store.Failed, "redirect", 0},
		{"304 too", 304, "", store.Failed, "redirect", 0},
		{"404", 404, "", store.Failed, "status", 0},
		{"410", 410, "", store.Failed, "status", 0},
		{"an unknown status", 599, "", store.Failed, "status", 0},
		{"Retry-After in seconds", 429, "120", store.Failed, "status", 2 * time.Minute},
		{"Retry-After as a date", 503, "Thu, 01 Jan 2026 01:00:00 GMT", store.Failed, "status", time.Hour},
		{"Retry-After in the past", 503, "Thu, 01 Jan 2015 01:00:00 GMT", store.Failed, "status", 0},
		{"negative Retry-After", 429, "-5", store.Failed, "status", 0},
		{"unreadable Retry-After", 429, "soon", store.Failed, "status", 0},
		{"fractions are unreadable", 429, "1.5", store.Failed, "status", 0},
		{"Retry-After too large to count", 503, "99999999999999999999", store.Failed, "status", maxRetryAfter * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, _ := app(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", elsewhere)
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
			})
			res := destination(t, Options{URL: url}).Send(t.Context(), lease("x", nil))
			if res.Outcome != c.outcome || res.Status != c.status || res.Class != c.class || res.RetryAfter != c.wait || res.Maybe {
				t.Fatalf("got %+v", res)
			}
			if (res.Error == "") != (c.outcome == store.Succeeded) {
				t.Fatalf("error text %q", res.Error)
			}
		})
	}
	t.Cleanup(func() {
		if len(other) != 0 {
			t.Error("a redirect was followed")
		}
	})
}

func TestARefusedSignatureThatCouldNotBeFreshCarriesAHint(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404} {
		url, _ := app(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) })
		for name, s := range map[string]Signer{"cannot sign": &signer{cannot: true}, "signs": &signer{}} {
			res := destination(t, Options{URL: url, Signers: signers(s)}).Send(t.Context(), lease("x", nil))
			want := name == "cannot sign" && status != 404
			if got := strings.Contains(res.Error, "use `standard`"); got != want {
				t.Errorf("%s, %d: %q", name, status, res.Error)
			}
		}
	}
}

func TestTheAnswerIsKeptToItsLimit(t *testing.T) {
	t.Parallel()
	url, _ := app(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-App", "1")
		fmt.Fprint(w, strings.Repeat("a", 1<<20))
	})
	res := destination(t, Options{URL: url}).Send(t.Context(), lease("x", nil))
	if res.Outcome != store.Succeeded || len(res.Body) != maxAnswer {
		t.Fatalf("%d, %d bytes", res.Outcome, len(res.Body))
	}
	if h, err := store.DecodeHeader(res.Header); err != nil || h.Get("X-App") != "1" {
		t.Fatalf("headers %v, %v", h, err)
	}
	if res.FirstByte <= 0 || res.Connect <= 0 || res.Duration < res.FirstByte || res.TLS != 0 {
		t.Fatalf("times %+v", res)
	}
}

func TestAnAnswerThatNeverEndsIsReadForFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		body, w := io.Pipe()
		go func() { w.Write([]byte("taken")) }()
		got, cut := readAnswer(body)
		if string(got) != "taken" || cut != nil || time.Since(start) != answerTime {
			t.Fatalf("got %q, %v after %v", got, cut, time.Since(start))
		}
	})
}
