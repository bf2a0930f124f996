package web

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"acuse/problem"
	"acuse/provider"
	"acuse/store"
)

// Header values that every answer shares; net/http does not change them.
var (
	jsonType = []string{"application/json"}
	textType = []string{"text/plain; charset=utf-8"}
	nosniff  = []string{"nosniff"}
	noStore  = []string{"no-store"}
	closing  = []string{"close"}
)

// answer is an outcome as HTTP.
type answer struct {
	status      int
	header      http.Header // a provider's own; may be nil
	contentType []string
	body        []byte
	slug        string        // of a problem document, which replaces the body
	detail      string        // for the sender, who learns little
	retryAfter  time.Duration // 0: none
	allow       string        // of 405
}

func refuse(status int, slug, detail string) answer {
	return answer{status: status, slug: slug, detail: detail}
}

// answerTo is the only place where an outcome becomes an answer.
func answerTo(v *visit, err error) answer {
	var (
		refusal *provider.Refusal
		tooMany *errTooMany
		noKey   *provider.NoKey
	)
	switch {
	case err == nil:
		return success(v)
	case errors.Is(err, errNoSource):
		return refuse(http.StatusNotFound, "no-such-source", "")
	case errors.Is(err, errMethod):
		a := refuse(http.StatusMethodNotAllowed, "method-not-allowed", "")
		a.allow = v.source.allow
		return a
	case errors.Is(err, errUnsigned), errors.Is(err, errNotWaiting):
		return unverified(v)
	case errors.As(err, &noKey):
		return later(refuse(http.StatusServiceUnavailable, "key-unavailable", "not stored, send again"), noKey.RetryAfter())
	case errors.As(err, &refusal):
		return refused(v, refusal)
	case errors.Is(err, errTooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "too-large", "the body is larger than this source allows")
	case errors.Is(err, errSlow):
		return refuse(http.StatusRequestTimeout, "too-slow", "the body did not come in in time")
	case errors.Is(err, errShort):
		return refuse(http.StatusBadRequest, "cut-short", "the body ended early; nothing was stored")
	case errors.As(err, &tooMany):
		return later(refuse(http.StatusTooManyRequests, "too-many-requests", ""), tooMany.wait)
	case errors.Is(err, errNoShare), errors.Is(err, store.ErrBusy):
		return later(refuse(http.StatusServiceUnavailable, "busy", "not stored, send again"), time.Second)
	case errors.Is(err, errClock):
		return later(refuse(http.StatusServiceUnavailable, "clock-not-set", "not stored, send again"), 30*time.Second)
	default: // storage, whatever it says
		return later(refuse(http.StatusServiceUnavailable, "not-stored", "not stored, send again"), 10*time.Second)
	}
}

// refused answers what the provider's contract does not let in.
func refused(v *visit, r *provider.Refusal) answer {
	switch r.Reason {
	case provider.MalformedBody:
		return refuse(http.StatusBadRequest, "malformed", "the request was not understood")
	case provider.TooLarge:
		return refuse(http.StatusRequestEntityTooLarge, "too-large", "the body is larger than this source allows")
	case provider.UnsupportedEncoding:
		return refuse(http.StatusUnsupportedMediaType, "unsupported-encoding", "this Content-Encoding is not understood")
	}
	return unverified(v)
}

func unverified(v *visit) answer {
	if v.source.silent {
		return answer{status: v.source.RejectStatus}
	}
	return refuse(v.source.RejectStatus, "not-verified", "the request could not be verified")
}

func later(a answer, wait time.Duration) answer {
	a.retryAfter = max(wait, time.Second)
	return a
}

// success answers a stored event, a handshake or an empty batch, in the provider's
// own terms where it reads the answer.
func success(v *visit) answer {
	if h := v.result.Handshake; h != nil {
		return inTermsOf(h)
	}
	own := answer{status: http.StatusOK, contentType: jsonType, body: receipt(v)}
	if r := v.source.Response; r != nil {
		a := inTermsOf(r)
		if r.Body == nil && a.status != http.StatusNoContent {
			a.contentType, a.body = own.contentType, own.body
		}
		return a
	}
	if r := v.source.Checker.Reply(&v.request); r != nil {
		return inTermsOf(r)
	}
	return own
}

func inTermsOf(r *provider.Reply) answer {
	a := answer{status: r.Status, header: r.Header, body: r.Body}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if len(a.body) > 0 {
		a.contentType = textType // unless r.Header says otherwise
	}
	return a
}

// receipt is acuse's own answer to a stored event.
func receipt(v *visit) []byte {
	b := make([]byte, 0, 80)
	if batch(v) {
		return batchReceipt(b, v.outcomes)
	}
	o := v.outcomes[0]
	b = append(b, `{"status":"`...)
	b = append(b, word(o.Kind)...)
	b = append(b, `","delivery":`...)
	b = strconv.AppendInt(b, o.Delivery, 10)
	if o.Revived {
		b = append(b, `,"revived":true`...)
	}
	return append(b, "}\n"...)
}

// batch tells whether the request held a list of events, which may be empty.
func batch(v *visit) bool {
	return v.result.Empty || len(v.outcomes) != 1 || v.result.Events[0].Part >= 0
}

func batchReceipt(b []byte, list []store.Outcome) []byte {
	var accepted, duplicates int64
	revived := false
	for _, o := range list {
		if o.Kind == store.Duplicate {
			duplicates++
		} else {
			accepted++
		}
		revived = revived || o.Revived
	}
	status := "accepted"
	if accepted == 0 && duplicates > 0 {
		status = "duplicate"
	}
	b = append(b, `{"status":"`...)
	b = append(b, status...)
	b = append(b, `","accepted":`...)
	b = strconv.AppendInt(b, accepted, 10)
	b = append(b, `,"duplicates":`...)
	b = strconv.AppendInt(b, duplicates, 10)
	if revived {
		b = append(b, `,"revived":true`...)
	}
	return append(b, "}\n"...)
}

func word(k store.Kind) string {
	switch k {
	case store.Duplicate:
		return "duplicate"
	case store.Quarantined:
		return "quarantined"
	}
	return "accepted"
}

// write sends the answer. A connection whose framing was not seen to its end, or
// could be read in two ways, is not used again.
func (v *visit) write(w http.ResponseWriter, r *http.Request, a answer) {
	v.written = true
	h := w.Header()
	if r.ContentLength < 0 || v.unread || !r.ProtoAtLeast(1, 1) {
		h["Connection"] = closing
	}
	if time.Since(v.start) > time.Second { // the server's write deadline began with the request
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
	}
	if a.retryAfter > 0 {
		h["Retry-After"] = []string{strconv.Itoa(int((a.retryAfter + time.Second - 1) / time.Second))}
	}
	if a.allow != "" {
		h["Allow"] = []string{a.allow}
	}
	if a.slug != "" {
		problem.Write(w, a.status, a.slug, a.detail)
	} else {
		if a.contentType != nil {
			h["Content-Type"] = a.contentType
		}
		for k, vs := range a.header {
			h[http.CanonicalHeaderKey(k)] = vs
		}
		h["X-Content-Type-Options"] = nosniff
		h["Cache-Control"] = noStore
		if v.unread && a.status != http.StatusNoContent {
			h.Set("Content-Length", strconv.Itoa(len(a.body))) // linger ends our side after it
		}
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body) // the sender left: the event is stored all the same
	}
	if v.unread && a.status != http.StatusRequestTimeout { // who was too slow has had its time
		v.linger(w, r)
	}
}
