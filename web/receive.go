package web

import (
	"context"
	"errors"
	"net/http"
	"time"

	"acuse/provider"
)

// What the edge itself refuses.
var (
	errNoSource = errors.New("no such source")
	errMethod   = errors.New("method not answered by this source")
	errUnsigned = errors.New("the source has no authentication and is not said to be unsigned")
	errClock    = errors.New("the clock is not set and the signed time cannot be judged")
)

// errTooMany turns a request away for a while.
type errTooMany struct {
	word string // "flooded": refused unread; "rate": over the source's own limit
	wait time.Duration
}

func (e *errTooMany) Error() string { return "too many requests: " + e.word }

// ingest reads, verifies and stores one request. When it returns nil the events are
// on disk, or there was nothing to store: a handshake or an empty batch.
func (e *Edge) ingest(w http.ResponseWriter, r *http.Request, v *visit) error {
	if err := e.early(r, v); err != nil {
		return err
	}
	if v.source.readTime > bodyTime {
		_ = http.NewResponseController(w).SetReadDeadline(v.start.Add(v.source.readTime))
	}
	body, err := e.readBody(w, r, v)
	if err != nil {
		return err
	}
	if err := e.verify(r, v, body); err != nil {
		return err
	}
	if v.result.Handshake != nil || v.result.Empty {
		return nil
	}
	if wait, ok := v.source.withinRate(v.start); !ok {
		return &errTooMany{"rate", wait}
	}
	if v.test == nil {
		v.test = e.expected(v)
	}
	// On a context of its own: the event is stored and its lanes are woken whether or
	// not the sender stays to hear of it.
	v.outcomes, err = e.inbox.Accept(context.Background(), e.arrival(v))
	if err != nil {
		return err
	}
	e.clock.saw(v.now)
	return nil
}

// early refuses what can be refused before the body is read.
func (e *Edge) early(r *http.Request, v *visit) error {
	src := v.source
	if !src.takes(r.Method) {
		return errMethod
	}
	if len(src.AllowIPs) > 0 && !within(v.remote, src.AllowIPs) {
		if !v.remote.IsLoopback() || !e.announced.waiting(src.Name) {
			return &provider.Refusal{Reason: provider.IPNotAllowed}
		}
		v.stranger = true // unless it is the test of ours that is announced
	}
	if wait, away := e.shed.turnsAway(v.remote, src, v.start); away {
		return &errTooMany{"flooded", wait}
	}
	if r.ContentLength > src.MaxBody {
		return errTooLarge
	}
	if v.capturing = e.captures.isOpen(src.Name, v.now); v.capturing {
		return nil // the handshake that is waited for is not signed
	}
	return src.Checker.Early(r.Method, r.Header)
}

// verify judges the request by its raw bytes. When it returns nil, v.result says what
// the request means.
func (e *Edge) verify(r *http.Request, v *visit, body []byte) (err error) {
	if len(r.Header["Host"]) == 0 {
		r.Header["Host"] = []string{r.Host} // net/http keeps it apart; the archive has all headers
	}
	target := rawTarget(r)
	v.request = provider.Request{
		Method: r.Method, Target: target, URL: v.source.url(v.rest, target), Host: r.Host,
		Header: r.Header, Body: body, Remote: v.remote, Context: r.Context(), Capturing: v.capturing,
	}
	if v.stranger && e.announced.find(v.source.Name, body, v.now) == nil {
		return &provider.Refusal{Reason: provider.IPNotAllowed}
	}
	if !e.rehearse(v) {
		v.result, err = v.source.Checker.Receive(&v.request, v.now)
	}
	if err != nil {
		var refusal *provider.Refusal
		if errors.As(err, &refusal) && timeFault(refusal.Reason) && !e.clock.set(v.now) {
			return errClock
		}
		return err
	}
	if v.result.Captured != "" {
		return e.captures.keep(v.source.Name, v.result.Captured, v.remote.String(), v.now)
	}
	if v.result.Handshake != nil {
		return nil
	}
	if err := v.admissible(); err != nil {
		return err
	}
	v.conn.work(!v.result.Unverified)
	if !v.result.Unverified {
		e.shed.passed(v.remote, v.start)
	}
	return nil
}

// admissible refuses what the provider's rules let through and this source does not take.
func (v *visit) admissible() error {
	switch {
	case v.request.Method != http.MethodPost:
		return errMethod // the method is there for handshakes, and this was none
	case v.result.Unverified && !v.source.Unsigned:
		return errUnsigned
	case v.result.Quarantine != "" && v.result.Unverified:
		// Nobody vouches for it, so it is not kept for a person to look at.
		return &provider.Refusal{Reason: provider.MalformedBody, Detail: v.result.Quarantine}
	case len(v.result.Events) > maxItems:
		return &provider.Refusal{Reason: provider.TooLarge, Detail: "items>1000"}
	}
	return nil
}

func timeFault(r provider.Reason) bool {
	return r == provider.TimestampExpired || r == provider.TimestampFuture
}
