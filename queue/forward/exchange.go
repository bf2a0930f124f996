package forward

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"acuse/dial"
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
	var t dial.Trace
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, t.Client()), m.method, m.url.String(), http.NoBody)
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
		res := failure(ctx, err, t.Reached())
		fill(&res, &t)
		return res
	}
	defer resp.Body.Close()
	res := h.judge(resp, m.hint)
	body, cut := readAnswer(resp.Body)
	res.Body = body
	res.Header = store.EncodeHeader(resp.Header)
	if cut != nil && ctx.Err() == nil && res.Outcome == store.Succeeded {
		broken := failure(ctx, cut, t.Reached())
		res.Outcome, res.Class, res.Maybe = store.Failed, broken.Class, true
		res.Error = fmt.Sprintf("answered %d, but the answer broke off: maybe delivered", resp.StatusCode)
	}
	fill(&res, &t)
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

// failure says why no whole answer came. Every class can be tried again.
func failure(ctx context.Context, err error, p dial.Phase) store.Result {
	res := store.Result{Outcome: store.Failed, Maybe: p.Sent}
	res.Class, res.Error = dial.Failure(ctx, err, p)
	if p.Sent {
		res.Error += " after the request was sent: maybe delivered"
	}
	return res
}

// fill writes the measured phases into res.
func fill(res *store.Result, t *dial.Trace) { res.Connect, res.TLS, res.FirstByte = t.Times() }
