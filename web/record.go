package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"acuse/provider"
	"acuse/store"
)

// record counts and logs what became of a request, and passes it on: to the lanes,
// the pages, the ring of rejections. The answer leaves when it returns, so nothing in
// it waits for anything. It names ids only: no payload, no header, no query.
func (e *Edge) record(r *http.Request, v *visit, a answer, err error) {
	if err == nil {
		e.recordSuccess(v, a)
		return
	}
	why := reason(err)
	e.set.GetOrCreateCounter(`acuse_rejections_total{reason="` + why + `"}`).Inc()
	switch {
	case errors.Is(err, errNoSource):
		e.miss(r, v)
	case a.status == http.StatusServiceUnavailable:
		e.recordTrouble(v, a, why, err)
	default:
		e.recordRefusal(r, v, a, why, err)
	}
}

func (e *Edge) recordSuccess(v *visit, a answer) {
	e.ack.Update(time.Since(v.start).Seconds())
	src := v.source
	if v.result.Handshake != nil {
		src.handshakes.Inc()
		if v.result.Then != "" {
			e.follow(src.Name, v.result.Then)
		}
		e.log.Info("receive", "source", src.Name, "outcome", "handshake", "status", a.status)
		return
	}
	e.stored(v, a.status)
}

// stored tells everybody who has to know of the events of a request that are on disk now.
func (e *Edge) stored(v *visit, status int) {
	src, wake := v.source, false
	for _, o := range v.outcomes {
		level := slog.LevelDebug
		switch o.Kind {
		case store.Accepted:
			src.accepted.Inc()
			wake = true
		case store.Duplicate:
			src.duplicates.Inc()
			wake = wake || o.Revived
		case store.Quarantined:
			src.quarantined.Inc()
			level = slog.LevelWarn
			e.alert()
		}
		e.changed(o.Delivery)
		if e.log.Enabled(context.Background(), level) {
			e.log.Log(context.Background(), level, "receive", "source", src.Name, "outcome", word(o.Kind),
				"delivery", o.Delivery, "revived", o.Revived, "size", len(v.request.Body), "slot", v.result.Slot,
				"remote", v.remote.String(), "status", status, "took", time.Since(v.start))
		}
	}
	if wake && len(v.lanes) > 0 {
		e.wake(v.lanes)
	}
}

// recordTrouble logs what is our fault, at most once a minute and kind.
func (e *Edge) recordTrouble(v *visit, a answer, why string, err error) {
	if errors.Is(err, errClock) {
		e.alert()
	}
	if passed, ok := e.trouble.speak(why, v.start); ok {
		e.log.Error("receive", "source", v.source.Name, "outcome", why, "status", a.status, "err", err.Error(), "suppressed", passed)
	}
}

// recordRefusal logs a refusal and hands it to the ring, as far as the source's
// share allows.
func (e *Edge) recordRefusal(r *http.Request, v *visit, a answer, why string, err error) {
	src := v.source
	if countsAgainst(err) {
		e.shed.refused(v.remote, src, v.start)
	}
	suppressed, ok := src.keep(v.start)
	if !ok {
		return
	}
	attrs := []any{"source", src.Name, "outcome", "rejected", "reason", why, "status", a.status, "method", methodWord(r.Method),
		"remote", v.remote.String(), "suppressed", suppressed}
	var refusal *provider.Refusal
	if errors.As(err, &refusal) {
		attrs = append(attrs, "detail", refusal.Detail)
		if refusal.Skew != 0 {
			attrs = append(attrs, "skew", refusal.Skew)
		}
		if src.publicBase != "" && refusal.Reason == provider.SignatureMismatch {
			attrs = append(attrs, "checked_url", src.publicBase) // the owner sees a wrong host or port; no query
		}
	}
	e.log.Info("receive", attrs...)
	if keepRejection(err) {
		e.rejects.put(rejectionOf(r, v, a, why, refusal))
	}
}

// reason is the machine word of an error.
func reason(err error) string {
	var (
		refusal *provider.Refusal
		tooMany *errTooMany
		noKey   *provider.NoKey
	)
	switch {
	case errors.As(err, &noKey):
		return "key_unavailable"
	case errors.As(err, &refusal):
		return string(refusal.Reason)
	case errors.As(err, &tooMany):
		return tooMany.word
	case errors.Is(err, errNoSource):
		return "unknown_source"
	case errors.Is(err, errMethod):
		return "method"
	case errors.Is(err, errUnsigned), errors.Is(err, errNotWaiting):
		return "unsigned"
	case errors.Is(err, errTooLarge):
		return string(provider.TooLarge)
	case errors.Is(err, errShort):
		return "cut_short"
	case errors.Is(err, errSlow):
		return "too_slow"
	case errors.Is(err, errClock):
		return "clock_not_set"
	case errors.Is(err, errNoShare), errors.Is(err, store.ErrBusy):
		return "busy"
	}
	return "storage"
}

// countsAgainst tells whether an error says something about the address it came from.
func countsAgainst(err error) bool {
	var refusal *provider.Refusal
	return errors.As(err, &refusal) || errors.Is(err, errUnsigned) || errors.Is(err, errNotWaiting) || errors.Is(err, errTooLarge)
}

// keepRejection tells whether the request goes to the ring, where a person may find
// out why and try it again.
func keepRejection(err error) bool { return countsAgainst(err) }

// methodWord keeps what a sender made up out of the log.
func methodWord(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// quiet lets one line of a kind through each interval and counts the others. The
// kinds are words of ours, so that the map stays small.
type quiet struct {
	every time.Duration

	mu    sync.Mutex
	kinds map[string]*spoken
}

type spoken struct {
	at     time.Time
	passed int
}

// speak tells whether to log now, and how many lines were left out since the last.
func (q *quiet) speak(kind string, now time.Time) (passed int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.kinds == nil {
		q.kinds = map[string]*spoken{}
	}
	s := q.kinds[kind]
	if s == nil {
		q.kinds[kind] = &spoken{at: now}
		return 0, true
	}
	if now.Sub(s.at) < q.every {
		s.passed++
		return 0, false
	}
	passed, s.at, s.passed = s.passed, now, 0
	return passed, true
}

// Miss is a request for a path beside a source, such as "/in/Stripe".
type Miss struct {
	At     time.Time
	Path   string // at most two segments, without the query
	Source string // the source it may have meant; empty: none
	Remote string
	Count  int
}

// misses keeps the latest paths that were asked for in vain.
type misses struct {
	quiet quiet

	mu  sync.Mutex
	all []Miss // newest last
}

const maxMisses = 50

func (m *misses) add(miss Miss) {
	m.mu.Lock()
	defer m.mu.Unlock()
	miss.Count = 1
	for i, old := range m.all {
		if old.Path == miss.Path {
			miss.Count += old.Count
			m.all = append(m.all[:i], m.all[i+1:]...)
			break
		}
	}
	if len(m.all) >= maxMisses {
		m.all = m.all[:copy(m.all, m.all[1:])]
	}
	m.all = append(m.all, miss)
}

func (m *misses) list() []Miss {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]Miss, 0, len(m.all))
	for i := len(m.all) - 1; i >= 0; i-- {
		out = append(out, m.all[i])
	}
	return out
}

// miss notes a path that is no way in. The log names a source only when the path
// resembles one that exists; what else a stranger writes is not repeated there.
func (e *Edge) miss(r *http.Request, v *visit) {
	if r.Method != http.MethodPost {
		return
	}
	path := rawPath(r)
	one, rest := segment(path)
	two, _ := segment(rest)
	near := e.resembles(one, two)
	remote := sender(r, e.trusted, e.forwardedHeader).String()
	e.misses.add(Miss{At: v.now, Path: printable("/" + one + "/" + two), Source: near, Remote: remote})
	if passed, ok := e.misses.quiet.speak("", v.start); ok {
		e.log.Info("receive", "outcome", "unknown_source", "status", http.StatusNotFound, "near", near, "remote", remote, "suppressed", passed)
	}
}

// resembles finds a source of which one of the segments is the name in another
// spelling.
func (e *Edge) resembles(segments ...string) string {
	for _, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil {
			continue
		}
		for name := range *e.sources.Load() {
			if strings.EqualFold(strings.TrimSpace(plain), name) {
				return name
			}
		}
	}
	return ""
}

// printable is at most 80 bytes of plain text.
func printable(s string) string {
	b := make([]byte, 0, 80)
	for i := 0; i < len(s) && len(b) < 80; i++ {
		if c := s[i]; c > 0x20 && c < 0x7f {
			b = append(b, c)
		} else {
			b = append(b, '?')
		}
	}
	return string(b)
}
