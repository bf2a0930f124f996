package keys

import (
	"context"
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

	"acuse/provider"
)

// host is a provider's host, without a network: it answers what its function says.
type host struct {
	asked  atomic.Int32
	answer func(r *http.Request) (status int, header http.Header, body string, err error)
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.asked.Add(1)
	status, header, body, err := h.answer(r)
	if err != nil {
		return nil, err
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func steady(body string, header ...string) *host {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &host{answer: func(*http.Request) (int, http.Header, string, error) { return 200, h, body, nil }}
}

// newKeys makes a Keys over a host. It is closed with the test.
func newKeys(t *testing.T, h http.RoundTripper, o Options) *Keys {
	t.Helper()
	o.Client = &http.Client{Transport: h, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	o.Log = slog.New(slog.DiscardHandler)
	k := New(o)
	t.Cleanup(k.Close)
	return k
}

var set = provider.KeyRequest{URL: "https://keys.example.test/set", Kind: provider.KeySet, Host: "keys.example.test"}

func want(t *testing.T, k *Keys, r provider.KeyRequest, body string) {
	t.Helper()
	got, err := k.Key(t.Context(), r)
	if err != nil || string(got) != body {
		t.Errorf("got %q, %v; want %q", got, err, body)
	}
}

func asked(t *testing.T, h *host, n int32) {
	t.Helper()
	synctest.Wait()
	if got := h.asked.Load(); got != n {
		t.Errorf("asked %d times, want %d", got, n)
	}
}

func TestADocumentIsKeptAsLongAsItsHostSaysWithinBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header []string
		life   time.Duration
	}{
		"nothing said":      {nil, time.Hour},
		"ten minutes":       {[]string{"Cache-Control", "public, max-age=600"}, 10 * time.Minute},
		"a part is over":    {[]string{"Cache-Control", "max-age=600", "Age", "300"}, 5 * time.Minute},
		"too short":         {[]string{"Cache-Control", "max-age=1"}, time.Minute},
		"too long":          {[]string{"Cache-Control", "max-age=99999999"}, 24 * time.Hour},
		"never":             {[]string{"Cache-Control", "no-store, max-age=600"}, time.Minute},
		"an unreadable age": {[]string{"Cache-Control", "max-age=soon"}, time.Hour},
	} {
		h := http.Header{}
		for i := 0; i+1 < len(c.header); i += 2 {
			h.Set(c.header[i], c.header[i+1])
		}
		if got := goodFor(h); got != c.life {
			t.Errorf("%s: %v, want %v", name, got, c.life)
		}
	}
}

func TestADocumentIsAskedForOnceAndRenewedBeforeAnybodyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := steady("A")
		k := newKeys(t, h, Options{})
		for range 10 {
			want(t, k, set, "A")
		}
		asked(t, h, 1)
		h.answer = steady("B").answer
		time.Sleep(49 * time.Minute) // four fifths of the hour are over
		want(t, k, set, "A")
		asked(t, h, 2)
		want(t, k, set, "B")
		asked(t, h, 2)
	})
}

func TestManyWhoWantOneDocumentAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{answer: func(*http.Request) (int, http.Header, string, error) {
			time.Sleep(time.Second)
			return 200, nil, "A", nil
		}}
		k := newKeys(t, h, Options{})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { want(t, k, set, "A") })
		}
		wg.Wait()
		asked(t, h, 1)
	})
}

// Who stays away does not take the answer from those that wait.
func TestACallerThatLeavesChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{answer: func(*http.Request) (int, http.Header, string, error) {
			time.Sleep(time.Second)
			return 200, nil, "A", nil
		}}
		k := newKeys(t, h, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := k.Key(ctx, set); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who left got %v", err)
		}
		want(t, k, set, "A")
		asked(t, h, 1)
	})
}

func TestAFailureIsRememberedForAWhileAndSaysWhenToComeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{answer: func(*http.Request) (int, http.Header, string, error) { return 500, nil, "oops", nil }}
		k := newKeys(t, h, Options{})
		for range 5 {
			if _, err := k.Key(t.Context(), set); err == nil {
				t.Fatal("a page of an error is a key")
			}
		}
		asked(t, h, 1)
		time.Sleep(10 * time.Second)
		var later *Later
		if _, err := k.Key(t.Context(), set); !errors.As(err, &later) || later.RetryAfter() != 20*time.Second {
			t.Errorf("got %v, %+v", err, later)
		}
		h.answer = steady("A").answer
		time.Sleep(21 * time.Second)
		want(t, k, set, "A")
		asked(t, h, 2)
	})
}

// The old document serves while there is no newer one, for a day and no longer.
func TestAnOldDocumentServesForADayWhileNothingNewerCanBeHad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := steady("A")
		k := newKeys(t, h, Options{})
		want(t, k, set, "A")
		h.answer = func(*http.Request) (int, http.Header, string, error) { return 0, nil, "", errors.New("refused") }
		for range 23 {
			time.Sleep(time.Hour)
			want(t, k, set, "A")
		}
		time.Sleep(time.Hour + time.Minute)
		if got, err := k.Key(t.Context(), set); err == nil {
			t.Errorf("after a day it is still %q", got)
		}
		h.answer = steady("B").answer
		time.Sleep(failedFor + time.Second)
		want(t, k, set, "B")
	})
}

func TestAnUnknownKeyIDIsLookedForOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := steady("A")
		k := newKeys(t, h, Options{})
		newer := set
		newer.Newer = true
		want(t, k, set, "A")
		want(t, k, newer, "A") // it was read this minute
		asked(t, h, 1)
		h.answer = steady("B").answer // rotated
		time.Sleep(time.Minute)
		for range 100 {
			want(t, k, newer, "B")
		}
		asked(t, h, 2)
		h.answer = func(*http.Request) (int, http.Header, string, error) { return 503, nil, "", nil }
		time.Sleep(time.Minute)
		for range 100 { // whether it is there now is what nobody knows
			if _, err := k.Key(t.Context(), newer); err == nil {
				t.Fatal("the answer of an hour ago says nothing about a key id of now")
			}
		}
		asked(t, h, 3)
		want(t, k, set, "B") // known ids go on
	})
}

func TestAnswersThatAreNoKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   string
		kind   provider.KeyKind
	}{
		"404":               {404, nil, "", provider.KeySet},
		"a redirect":        {302, http.Header{"Location": {"https://elsewhere.example.test/"}}, "", provider.KeySet},
		"a huge set":        {200, nil, strings.Repeat(" ", setSize+1), provider.KeySet},
		"a huge key":        {200, nil, strings.Repeat(" ", keySize+1), provider.PublicKey},
		"no certificate":    {200, nil, "<html>", provider.Certificate},
		"204":               {204, nil, "", provider.KeySet},
		"damaged":           {200, nil, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", provider.Certificate},
		"a private address": {200, nil, "", provider.KeySet},
	} {
		h := &host{answer: func(*http.Request) (int, http.Header, string, error) { return c.status, c.header, c.body, nil }}
		k := newKeys(t, h, Options{})
		r := set
		r.Kind = c.kind
		if name == "a private address" {
			r.URL = "http://keys.example.test/"
		}
		if got, err := k.Key(t.Context(), r); err == nil || errors.Is(err, provider.ErrUntrusted) || errors.Is(err, provider.ErrNoSuchKey) || len(got) > 0 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		} else if strings.Contains(err.Error(), "example.test") {
			t.Errorf("%s: the error names the address: %v", name, err)
		}
	}
}

func TestASlowHostIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{answer: func(r *http.Request) (int, http.Header, string, error) {
			<-r.Context().Done()
			return 0, nil, "", r.Context().Err()
		}}
		k := newKeys(t, h, Options{})
		begin := time.Now()
		if _, err := k.Key(t.Context(), set); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != askTime {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// A flood of addresses that were never seen costs the providers a question a second.
func TestAFloodOfAddressesIsNoFloodOfQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{answer: func(*http.Request) (int, http.Header, string, error) { return 404, nil, "", nil }}
		k := newKeys(t, h, Options{})
		known := steady("A")
		plain := h.answer
		h.answer = known.answer
		want(t, k, set, "A")
		h.answer = plain
		for i := range 10000 {
			r := set
			r.URL = fmt.Sprintf("https://sns.r%d.example.test/x.pem", i)
			if _, err := k.Key(t.Context(), r); err == nil {
				t.Fatal("passed")
			}
			time.Sleep(time.Millisecond)
		}
		if n := h.asked.Load(); n > 35 {
			t.Errorf("%d questions in ten seconds", n)
		}
		want(t, k, set, "A") // and what is known stays known
		if len(k.bad.by) > maxBad || len(k.docs.by) > maxGood {
			t.Errorf("kept: %d failures, %d documents", len(k.bad.by), len(k.docs.by))
		}
	})
}

func TestQuestionsUnderWayAndThoseThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{answer: func(r *http.Request) (int, http.Header, string, error) {
			time.Sleep(4 * time.Second)
			return 200, nil, "A", nil
		}}
		k := newKeys(t, h, Options{})
		var wg sync.WaitGroup
		var busy atomic.Int32
		for i := range 200 {
			wg.Go(func() {
				r := set
				r.URL = fmt.Sprintf("https://keys.example.test/%d", i%10)
				if _, err := k.Key(t.Context(), r); errors.Is(err, errBusy) {
					busy.Add(1)
				}
			})
		}
		wg.Wait()
		if n := h.asked.Load(); n > maxFlights {
			t.Errorf("%d questions at once", n)
		}
		if n := busy.Load(); n < 200-maxWaiting {
			t.Errorf("only %d of 200 were sent away", n)
		}
	})
}

func TestAKeyAskedForByItsID(t *testing.T) {
	t.Parallel()
	h := &host{answer: func(r *http.Request) (int, http.Header, string, error) {
		b, err := io.ReadAll(r.Body)
		switch {
		case err != nil || r.Method != "POST" || r.URL.Fragment != "" || r.Header.Get("Content-Type") != "application/json":
			return 500, nil, "", nil
		case string(b) == "k1":
			return 200, nil, "{}", nil
		case string(b) == "k2":
			return 400, nil, `{"error_code":"NO_SUCH_KEY"}`, nil
		}
		return 400, nil, `{"error_code":"BAD_CREDENTIALS"}`, nil
	}}
	k := newKeys(t, h, Options{})
	ask := func(id string) error {
		_, err := k.Key(t.Context(), provider.KeyRequest{URL: "https://keys.example.test/get#" + id, Post: []byte(id), Kind: provider.KeySet, Unknown: "NO_SUCH_KEY"})
		return err
	}
	if err := ask("k1"); err != nil {
		t.Errorf("a key that is there: %v", err)
	}
	if err := ask("k2"); !errors.Is(err, provider.ErrNoSuchKey) {
		t.Errorf("one that is not: %v", err)
	}
	if err := ask("k3"); err == nil || errors.Is(err, provider.ErrNoSuchKey) {
		t.Errorf("our own credentials are wrong: %v", err)
	}
}

func TestAskCarriesTheCredentialAndKeepsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{answer: func(r *http.Request) (int, http.Header, string, error) {
			return 200, nil, r.Header.Get("Authorization"), nil
		}}
		k := newKeys(t, h, Options{})
		sent := 0
		for range 200 {
			status, body, err := k.Ask(t.Context(), "https://api.example.test/x", "Bearer key")
			if err == nil && (status != 200 || string(body) != "Bearer key") {
				t.Fatalf("%d %q", status, body)
			}
			if err == nil {
				sent++
			}
		}
		if sent != 50 {
			t.Errorf("%d questions at once went out", sent)
		}
		if _, _, err := k.Ask(t.Context(), "http://api.example.test/x", "Bearer key"); err == nil {
			t.Error("the credential went out in the clear")
		}
	})
}

func TestASubscriptionIsVisitedUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		h.answer = func(*http.Request) (int, http.Header, string, error) {
			if h.asked.Load() < 3 {
				return 503, nil, "", nil
			}
			return 200, nil, "", nil
		}
		k := newKeys(t, h, Options{})
		k.Visit("sns", "https://sns.example.test/?Token=x")
		time.Sleep(time.Minute)
		asked(t, h, 3)
	})
}
