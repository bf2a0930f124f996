package web

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/provider"
	"acuse/store"
)

func TestRejectionsAreKeptForAPerson(t *testing.T) {
	t.Parallel()
	kept := &ring{}
	s := signedSource("g")
	s.MaxBody = 100_000
	s.Checker = &checker{secret: "s3cret"}
	e := NewEdge(EdgeOptions{Inbox: &inbox{}, Rejections: kept, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	e.SetSources([]Source{s})
	large := strings.Repeat("x", keptBody+1)
	post(e, "/in/g?a=1", `{"n":1}`, "X-Sig", "forged")
	post(e, "/in/g", "{}")
	post(e, "/in/g", large, "X-Sig", "forged")
	post(e, "/in/g", strings.Repeat("x", 100_001), "X-Sig", "forged")
	postSigned(e, "/in/g", "1", "{}")
	post(e, "/in/nowhere", "{}")
	do(e, "PUT", "/in/g", "{}")
	e.Close()

	want := []struct {
		reason string
		signed bool
		body   string
		size   int
		status int
	}{
		{"signature_mismatch", true, `{"n":1}`, 7, 401},
		{"missing_header", false, "", 2, 401},
		{"signature_mismatch", true, "", len(large), 401},
		{"too_large", false, "", 100_001, 413},
	}
	if len(kept.rows) != len(want) {
		t.Fatalf("%d rows: %+v", len(kept.rows), kept.rows)
	}
	for i, w := range want {
		r := kept.rows[i]
		if r.Reason != w.reason || r.Signed != w.signed || string(r.Body) != w.body || r.Size != w.size || r.Status != w.status || r.Count != 1 || r.Source != "g" {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	if kept.rows[0].Target != "/in/g?a=1" || kept.rows[1].Body != nil {
		t.Errorf("%+v", kept.rows[:2])
	}
}

func TestAFloodKeepsTwentyRejectionsASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &ring{}
		var log lockedBuffer
		e := newEdge(t, EdgeOptions{Inbox: &inbox{}, Rejections: kept, Log: slog.New(slog.NewTextHandler(&log, nil))}, signedSource("g"), signedSource("other"))
		for range 3 {
			for range 60 {
				post(e, "/in/g", "{}", "X-Sig", "forged")
				synctest.Wait()
			}
			time.Sleep(time.Second)
		}
		post(e, "/in/other", "{}", "X-Sig", "forged")
		synctest.Wait()
		if n := len(kept.rows); n != 61 {
			t.Errorf("%d kept, want 60 of the flood and the one of the other source", n)
		}
		if n := strings.Count(log.String(), "\n"); n != 61 {
			t.Errorf("%d lines in the log", n)
		}
		if !strings.Contains(log.String(), "suppressed=40") {
			t.Errorf("what was left out is not counted")
		}
	})
}

func TestMasking(t *testing.T) {
	t.Parallel()
	r := newRejects(nil, []byte("key"), slog.Default(), metrics.NewSet())
	defer r.close()
	h := r.maskHeader(http.Header{
		"X-Tok": {"secret", "secret", "other"}, "X-Docusign-Signature-1": {"s"}, "Authorization": {"Bearer x"}, "Cookie": {"a=b"}, "Accept": {"x"},
	}, append([]string{"x-tok", "X-DocuSign-Signature-*"}, always...))
	if h.Get("Accept") != "x" || h.Get("Authorization") != "Bearer "+r.digest("x") || !strings.HasPrefix(h.Get("Cookie"), "digest:") ||
		!strings.HasPrefix(h.Get("X-Docusign-Signature-1"), "digest:") {
		t.Errorf("%v", h)
	}
	tok := h["X-Tok"]
	if len(tok) != 3 || tok[0] != tok[1] || tok[0] == tok[2] || strings.Contains(tok[0], "secret") {
		t.Errorf("one token, one digest: %q", tok)
	}
	other := newRejects(nil, []byte("another key"), slog.Default(), metrics.NewSet())
	defer other.close()
	if other.digest("secret") == tok[0] {
		t.Error("the digest does not depend on the key")
	}
	for target, want := range map[string]string{
		"/in/g":                       "/in/g",
		"/in/g?":                      "/in/g?",
		"/in/g?a=1&tok%65n=x&b":       "/in/g?a=1&tok%65n=" + r.digest("x") + "&b",
		"/in/g?token=&token=x&tokens": "/in/g?token=" + r.digest("") + "&token=" + r.digest("x") + "&tokens",
		"/in/g?%zz=x":                 "/in/g?%zz=x",
	} {
		if got := r.maskTarget(target, []string{"token"}); got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
}

func TestSkewIsANumber(t *testing.T) {
	t.Parallel()
	r := &http.Request{Method: "POST", RequestURI: "/in/g", Header: http.Header{}}
	v := &visit{source: newSource(signedSource("g"), metrics.NewSet())}
	got := rejectionOf(r, v, answer{status: 401}, "timestamp_expired", &provider.Refusal{Reason: provider.TimestampExpired, Skew: -14 * time.Minute, Detail: "sig:t"})
	if got.Detail != "at=sig:t;skew=-840s" {
		t.Errorf("%q", got.Detail)
	}
	var _ store.Rejection = got.Rejection
}
