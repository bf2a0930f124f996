// Package web is what machines call: the public listener that receives webhooks, the
// pull API that hands jobs to workers, health and metrics.
package web

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/provider"
	"acuse/store"
)

// EdgeOptions configure an Edge. Only Inbox is required.
type EdgeOptions struct {
	Inbox      store.Inbox
	Rejections store.Rejections            // nil: rejections are logged and counted only
	Wake       func(destinations []string) // jobs were queued; must not block or keep the slice
	Changed    func(delivery int64)        // a delivery was written; must not block
	Captures   Captures                    // nil: no source learns its secret from a handshake
	Follow     func(source, url string)    // a handshake asks for this URL to be got once; must not block; nil: it is not
	Alert      func()                      // a matter for a person came up: a quarantined event, a clock that is not set; must not block

	TrustedProxies  []netip.Prefix // whose forwarded header is believed; default none
	ForwardedHeader string         // default X-Forwarded-For
	InFlight        int64          // bytes of all bodies under way; default 32 MiB

	BuildTime time.Time // of the binary: an older clock is not set; zero: not known
	Newest    time.Time // received_at of the newest delivery at start; zero: none
	// DigestKey keys the digests that stand for tokens in rejections, the same for all runs:
	// else those of an earlier run cannot be checked again. Default random.
	DigestKey []byte

	Now     func() time.Time // default time.Now
	Log     *slog.Logger     // default slog.Default
	Metrics *metrics.Set     // default a private set
}

// Edge is the handler of the public listener: POST /in/{source}[/rest], the
// handshakes of the providers, and GET /healthz.
type Edge struct {
	inbox           store.Inbox
	wake            func([]string)
	changed         func(int64)
	alert           func()
	follow          func(source, url string)
	captures        captures
	trusted         []netip.Prefix
	forwardedHeader string
	budget          *budget
	shed            *shed
	clock           *clock
	rejects         *rejects
	misses          misses
	announced       announced
	now             func() time.Time
	log             *slog.Logger
	trouble         quiet // log lines about storage
	set             *metrics.Set
	ack             *metrics.PrometheusHistogram

	sources atomic.Pointer[map[string]*source]
}

// NewEdge makes the edge; it answers 404 until SetSources. Close it after the server.
func NewEdge(o EdgeOptions) *Edge {
	e := &Edge{
		inbox: o.Inbox, wake: o.Wake, changed: o.Changed, alert: o.Alert, follow: o.Follow, captures: captures{store: o.Captures},
		trusted: o.TrustedProxies, forwardedHeader: http.CanonicalHeaderKey(o.ForwardedHeader),
		shed: newShed(), clock: newClock(o.BuildTime, o.Newest),
		now: o.Now, log: o.Log, set: o.Metrics,
		trouble: quiet{every: time.Minute},
		misses:  misses{quiet: quiet{every: time.Second}},
	}
	if e.wake == nil {
		e.wake = func([]string) {}
	}
	if e.changed == nil {
		e.changed = func(int64) {}
	}
	if e.alert == nil {
		e.alert = func() {}
	}
	if e.follow == nil {
		e.follow = func(string, string) {}
	}
	if e.forwardedHeader == "" {
		e.forwardedHeader = "X-Forwarded-For"
	}
	if o.InFlight <= 0 {
		o.InFlight = 32 << 20
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	if e.set == nil {
		e.set = metrics.NewSet()
	}
	if o.DigestKey == nil {
		o.DigestKey = make([]byte, 32)
		_, _ = rand.Read(o.DigestKey) // never fails
	}
	e.budget = newBudget(o.InFlight)
	e.rejects = newRejects(o.Rejections, o.DigestKey, e.log, e.set)
	e.ack = e.set.GetOrCreatePrometheusHistogramExt("acuse_ack_seconds", ackBounds)
	e.set.GetOrCreateGauge("acuse_bytes_in_flight", func() float64 { return float64(e.budget.inUse()) })
	e.set.GetOrCreateGauge("acuse_clock_not_set", func() float64 {
		if e.ClockSet() {
			return 0
		}
		return 1
	})
	e.SetSources(nil)
	return e
}

// SetSources replaces the ways in, all at once; requests under way keep the old ones.
func (e *Edge) SetSources(list []Source) {
	m := make(map[string]*source, len(list))
	for _, s := range list {
		m[s.Name] = newSource(s, e.set)
	}
	e.sources.Store(&m)
}

// Announce says that a request of ours is on its way in: its event is marked as a test
// and goes to the announced destinations instead of the source's own. One request is
// meant, by the digest of its body; it is forgotten after ten minutes.
func (e *Edge) Announce(n Announcement) { e.announced.add(n, e.now()) }

// ClockSet is false while the wall clock lies before the build or the newest event.
func (e *Edge) ClockSet() bool { return e.clock.set(e.now()) }

// Misses lists the latest requests that asked for a path beside a source, newest
// first, for the owner to see a mistyped address.
func (e *Edge) Misses() []Miss { return e.misses.list() }

// Close writes the rejections that wait and stops. No request may be under way.
func (e *Edge) Close() { e.rejects.close() }

// visit is one request on its way through the edge.
type visit struct {
	start     time.Time // monotonic: durations
	now       time.Time // what the clock says: verdicts and records
	source    *source
	rest      string // of the path, after the source
	remote    netip.Addr
	conn      *conn
	share     int64 // of the byte budget
	stranger  bool  // its address may only send what is announced
	capturing bool  // the source takes a secret from a handshake now
	unread    bool  // a part of the body was not read
	request   provider.Request
	result    provider.Result

	test     *announcement      // set: it is a test of ours
	makeID   func(i int) string // of an event whose sender gives none; nil: chance
	outcomes []store.Outcome    // set once the event is on disk
	lanes    []string           // whom to wake for it
	written  bool               // the answer is on its way
}

// ServeHTTP answers one request of the public listener. It never redirects.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := &visit{start: time.Now(), now: e.now().UTC(), conn: connOf(r.Context()), unread: r.ContentLength != 0}
	v.conn.serve()
	defer func() {
		e.budget.give(v.share)
		if p := recover(); p != nil {
			e.panicked(w, r, v, p)
		}
	}()
	place, name, rest := route(rawPath(r))
	if place == placeHealth {
		e.health(w, r, v)
		return
	}
	v.source, v.rest = (*e.sources.Load())[name], rest
	err := errNoSource
	if v.source != nil && place == placeIn {
		v.remote = sender(r, e.trusted, e.forwardedHeader)
		err = e.ingest(w, r, v)
	}
	if v.unread { // nothing of the body is kept, and the sender may be slow to leave
		e.budget.give(v.share)
		v.share = 0
	}
	a := answerTo(v, err)
	v.write(w, r, a)
	e.record(r, v, a, err)
}

// health answers 200 as long as the process serves.
func (e *Edge) health(w http.ResponseWriter, r *http.Request, v *visit) {
	a := answer{status: http.StatusOK, contentType: textType, body: []byte("ok\n")}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		a = refuse(http.StatusMethodNotAllowed, "method-not-allowed", "")
		a.allow = "GET, HEAD"
	}
	v.write(w, r, a)
}

// panicked answers for a bug of ours. The value of a panic may hold what a sender
// sent, so only that of the runtime is written down.
func (e *Edge) panicked(w http.ResponseWriter, r *http.Request, v *visit, p any) {
	what := fmt.Sprintf("%T", p)
	if err, ok := p.(runtime.Error); ok {
		what = err.Error()
	}
	name := ""
	if v.source != nil {
		name = v.source.Name
	}
	e.log.Error("receive: panic", "source", name, "panic", what, "stack", string(debug.Stack()))
	e.set.GetOrCreateCounter("acuse_panics_total").Inc()
	if !v.written {
		v.write(w, r, refuse(http.StatusInternalServerError, "internal", ""))
	}
}
