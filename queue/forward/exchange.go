package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"acuse/store"
)

// Kept of an answer.
const (
	maxAnswer = 64 << 10 // bytes of body; the store keeps less of older attempts
	// answerTime bounds the reading of a body once its header is there, so that an
	// answer that trickles does not hold a worker. The status is known by then.
	answerTime = 5 * time.Second
)

// exchange sends m and reads the answer. Only 2xx is success, whatever the body
// says; but an answer that the app broke off is none.
func (h *HTTP) exchange(ctx context.Context, m message) store.Result {
	var t timeline
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, t.trace()), m.method, m.url.String(), http.NoBody)
	if err != nil {
		return store.Result{Outcome: store.Failed, Class: "compose", Error: "the request cannot be made: bad method or URL"}
	}
	if len(m.body) > 0 {
		req.Body = io.NopCloser(bytes.NewReader(m.body))
		req.ContentLength = int64(len(m.body))
	}
	req.Header = m.header
	if host := m.header.Get("Host"); host != "" { // only the destination's own settings put it there
		req.Host = host
		m.header.Del("Host")
	}
	resp, err := h.opt.Client.Do(req)
	if err != nil {
		res := failure(ctx, err, t.reached())
		t.fill(&res)
		return res
	}
	defer resp.Body.Close()
	res := h.judge(resp, m.hint)
	body, cut := readAnswer(resp.Body)
	res.Body = body
	res.Header = store.EncodeHeader(resp.Header)
	if cut != nil && ctx.Err() == nil && res.Outcome == store.Succeeded {
		broken := failure(ctx, cut, t.reached())
		res.Outcome, res.Class, res.Maybe = store.Failed, broken.Class, true
		res.Error = fmt.Sprintf("answered %d, but the answer broke off: maybe delivered", resp.StatusCode)
	}
	t.fill(&res)
	return res
}

// judge is what the status of an answer means.
func (h *HTTP) judge(resp *http.Response, hint string) store.Result {
	code := resp.StatusCode
	res := store.Result{Outcome: store.Failed, Status: code, Class: "status", Error: statusText(code)}
	switch {
	case code >= 200 && code <= 299:
		return store.Result{Outcome: store.Succeeded, Status: code}
	case code >= 300 && code <= 399:
		res.Class = "redirect"
		res.Error += ": redirects are not followed"
	case hint != "" && (code == 400 || code == 401 || code == 403):
		res.Error += ": " + hint
	}
	res.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), h.opt.Now())
	return res
}

func statusText(code int) string {
	if t := http.StatusText(code); t != "" {
		return fmt.Sprintf("%d %s", code, t)
	}
	return fmt.Sprint(code)
}

// readAnswer reads up to maxAnswer bytes. cut is set when the app broke the answer
// off; that we stopped reading, for size or time, is no fault of the app's.
func readAnswer(r io.ReadCloser) (body []byte, cut error) {
	var late sync.Once
	stopped := false
	timer := time.AfterFunc(answerTime, func() { late.Do(func() { stopped = true; r.Close() }) })
	defer timer.Stop()
	body, err := io.ReadAll(io.LimitReader(r, maxAnswer))
	late.Do(func() {}) // from here on stopped stays as it is
	if err == nil || stopped {
		return body, nil
	}
	return body, err
}

// timeline collects the phases of one exchange. The transport may call its hooks
// from goroutines that outlive the exchange.
type timeline struct {
	mu                     sync.Mutex
	connectStart, tlsStart time.Time
	wrote                  time.Time
	connect, tls, first    time.Duration
	phase                  phase
}

// phase is how far an exchange came.
type phase struct {
	resolving bool // a name is being looked up
	connected bool
	tlsFailed bool
	sent      bool // the header is on its way: the app may have acted
}

func (t *timeline) trace() *httptrace.ClientTrace {
	locked := func(f func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		f()
	}
	return &httptrace.ClientTrace{
		GetConn:  func(string) { locked(func() { t.connectStart = time.Now() }) },
		DNSStart: func(httptrace.DNSStartInfo) { locked(func() { t.phase.resolving = true }) },
		DNSDone:  func(httptrace.DNSDoneInfo) { locked(func() { t.phase.resolving = false }) },
		ConnectDone: func(_, _ string, err error) {
			locked(func() {
				if err == nil && !t.phase.connected {
					t.phase.connected, t.connect = true, time.Since(t.connectStart)
				}
			})
		},
		GotConn:           func(i httptrace.GotConnInfo) { locked(func() { t.phase.connected = true }) },
		TLSHandshakeStart: func() { locked(func() { t.tlsStart = time.Now() }) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			locked(func() { t.tls, t.phase.tlsFailed = time.Since(t.tlsStart), err != nil })
		},
		WroteHeaders: func() { locked(func() { t.phase.sent = true }) },
		WroteRequest: func(httptrace.WroteRequestInfo) { locked(func() { t.wrote = time.Now() }) },
		GotFirstResponseByte: func() {
			locked(func() {
				if !t.wrote.IsZero() {
					t.first = time.Since(t.wrote)
				}
			})
		},
	}
}

// fill writes the measured phases into res.
func (t *timeline) fill(res *store.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	res.Connect, res.TLS, res.FirstByte = t.connect, t.tls, t.first
}

func (t *timeline) reached() phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase
}
