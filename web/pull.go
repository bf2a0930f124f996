package web

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/problem"
	"acuse/store"
)

// Limits of the pull API, from design section 7.
const (
	maxJobs     = 100
	maxTTL      = 3600 // seconds
	maxPoll     = 60   // seconds
	maxNackWait = 24 * 3600
	maxNote     = 4 << 10 // bytes of a worker's own words that are kept
	pullRead    = 10 * time.Second
)

// PullOptions configure a Pull. Jobs, Item and Allow are required.
type PullOptions struct {
	Jobs store.Jobs
	// Item cuts one item out of a batch: *provider.Checker's Item of that source.
	Item func(source string, body []byte, part int) ([]byte, error)
	// Allow tells whether the caller holds the scope; its error is not shown.
	Allow func(r *http.Request, scope string) error
	// Who names the caller in leases and attempts; default "worker".
	Who          func(r *http.Request) string
	Destinations map[string]PullDestination
	Changed      func(delivery int64) // a job moved; must not block
	Died         func()               // a job became a dead letter; must not block
	Now          func() time.Time     // default time.Now
	Log          *slog.Logger         // default slog.Default
	Metrics      *metrics.Set         // default a private set
}

// PullDestination is how the jobs of a pull destination are leased and tried again.
type PullDestination struct {
	Lease     time.Duration // default 60 s
	HardLimit time.Duration // from the lease's start, renewals included; 0 is none
	MaxAge    time.Duration // older jobs die; 0 is none
	Budget    int           // attempts; default 12
	// Wait is the time between the attempt number spent, from 1, and the next one;
	// default a minute.
	Wait func(spent int) time.Duration
}

func (d PullDestination) withDefaults() PullDestination {
	if d.Lease <= 0 {
		d.Lease = time.Minute
	}
	if d.Budget <= 0 {
		d.Budget = 12
	}
	if d.Wait == nil {
		d.Wait = func(int) time.Duration { return time.Minute }
	}
	return d
}

// Pull hands jobs to workers that come and ask: POST /api/v1/jobs/lease,
// /api/v1/jobs/{id}/renew, /ack and /nack.
type Pull struct {
	o     PullOptions
	polls polls
	stop  chan struct{}

	mu    sync.RWMutex
	lanes map[string]PullDestination
}

// NewPull makes the handler of /api/v1/jobs/.
func NewPull(o PullOptions) *Pull {
	if o.Who == nil {
		o.Who = func(*http.Request) string { return "worker" }
	}
	if o.Changed == nil {
		o.Changed = func(int64) {}
	}
	if o.Died == nil {
		o.Died = func() {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	p := &Pull{o: o, stop: make(chan struct{})}
	p.SetDestinations(o.Destinations)
	o.Metrics.GetOrCreateGauge("acuse_pull_waiting", func() float64 { return float64(p.polls.waiting.Load()) })
	return p
}

// SetDestinations replaces the pull destinations. Leases that are out stay valid.
func (p *Pull) SetDestinations(list map[string]PullDestination) {
	lanes := make(map[string]PullDestination, len(list))
	for name, d := range list {
		lanes[name] = d.withDefaults()
	}
	p.mu.Lock()
	p.lanes = lanes
	p.mu.Unlock()
}

// Wake lets the polls that wait for the destination look again. It never blocks.
func (p *Pull) Wake(destination string) { p.polls.wake(destination) }

// Close ends the polls that wait, each with an empty list. Calls go on to work.
func (p *Pull) Close() { close(p.stop) }

// ServeHTTP answers /api/v1/jobs/….
func (p *Pull) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, ok := strings.CutPrefix(r.URL.Path, "/api/v1/jobs/")
	id, act, isJob := strings.Cut(call, "/")
	do := map[string]func(*http.Request, store.Job) (any, error){"renew": p.renew, "ack": p.ack, "nack": p.nack}[act]
	switch {
	case !ok || isJob && do == nil || !isJob && call != "lease":
		problem.Write(w, http.StatusNotFound, "not-found", "")
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		problem.Write(w, http.StatusMethodNotAllowed, "method-not-allowed", "")
		return
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(pullRead))
	r.Body = http.MaxBytesReader(w, r.Body, maxCall)
	var answer any
	var err error
	if isJob {
		answer, err = p.job(r, id, do)
	} else {
		answer, err = p.lease(r, func() { _ = c.SetReadDeadline(time.Time{}) })
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeTime))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	problem.WriteJSON(w, http.StatusOK, answer)
}

// callError is a mistake of the caller.
type callError struct {
	status int
	slug   string
	detail string
}

func (e *callError) Error() string { return e.slug + ": " + e.detail }

var (
	errNotAllowed = &callError{http.StatusForbidden, "not-allowed", "the token does not hold the scope pull for this destination"}
	errNoJob      = &callError{http.StatusNotFound, "no-such-job", ""}
	errLost       = &callError{http.StatusConflict, "lease-lost", "another worker holds the job by now, or it is settled: stop working on it"}
)

// fail turns an error into a problem document, once for all calls.
func (p *Pull) fail(w http.ResponseWriter, r *http.Request, err error) {
	var call *callError
	switch {
	case errors.As(err, &call):
	case errors.Is(err, store.ErrLeaseLost):
		call = errLost
	case errors.Is(err, store.ErrNotFound):
		call = errNoJob
	case r.Context().Err() != nil:
		return // the worker left
	default:
		p.o.Log.Error("pull", "call", strings.TrimPrefix(r.URL.Path, "/api/v1/jobs/"), "err", err.Error())
		w.Header().Set("Retry-After", "1")
		call = &callError{http.StatusServiceUnavailable, "storage", "try again"}
	}
	problem.Write(w, call.status, call.slug, call.detail)
}

// job runs a call that concerns one job, once the caller may have it.
func (p *Pull) job(r *http.Request, id string, do func(*http.Request, store.Job) (any, error)) (any, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return nil, errNoJob
	}
	job, err := p.o.Jobs.JobByID(r.Context(), n)
	if err != nil {
		return nil, err
	}
	if p.o.Allow(r, "pull:"+job.Destination) != nil {
		return nil, errNotAllowed
	}
	return do(r, job)
}

// destination reads the settings of a lane; those of a removed one are the defaults,
// so that its last leases can still be settled.
func (p *Pull) destination(name string) (PullDestination, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	d, ok := p.lanes[name]
	return d.withDefaults(), ok
}
