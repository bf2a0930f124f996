package queue

import (
	"net/http"
	"slices"
	"time"

	"acuse/store"
)

// When the breaker opens: so many failures in a row, of so many jobs at least, so that one
// poisonous event closes no lane.
const (
	openAfter = 5
	openJobs  = 3
)

// The wait before a probe: it doubles from the first to the last, a tenth more or less. An
// app's Retry-After may lengthen it up to maxRetryAfter.
const (
	firstProbe = 5 * time.Second
	lastProbe  = time.Minute
)

// standing is what of a lane outlives the process: JSON in the setting "lane:NAME".
type standing struct {
	PausedAt  time.Time `json:"paused_at,omitzero"`
	DownSince time.Time `json:"down_since,omitzero"` // zero: the breaker is closed
	Status    int       `json:"status,omitempty"`    // of the outage: how the latest attempt ended
	Class     string    `json:"class,omitempty"`
	Probes    int       `json:"probes,omitempty"`    // since the breaker opened
	ProbeAt   time.Time `json:"probe_at,omitzero"`   // when the next may be sent
	HoldUntil time.Time `json:"hold_until,omitzero"` // a 429 asked to be left alone until then
	Slow      bool      `json:"slow,omitempty"`      // not yet back at its full concurrency
	Freeing   bool      `json:"freeing,omitempty"`   // closed, and what the outage held up is not yet due
}

// pace decides how many jobs of a lane may be under way. It is a pure state machine: the
// lane holds the lock, stores the standing, and hands in the time.
type pace struct {
	standing

	row      int       // failures in a row while closed
	rowSince time.Time // when the attempt began that started the row
	jobs     []int64   // of the row: the first openJobs different ones
	limit    int       // sends at a time while Slow
	probe    int64     // token of the probe under way; 0: none
	closedAt time.Time // latest closing in this run
	closings int
}

// ended is an attempt as pace sees it.
type ended struct {
	job, token  int64
	result      store.Result
	began, now  time.Time // wall clock
	concurrency int       // of the lane
	random      float64
}

// verdict is what an attempt tells of its destination.
type verdict int

const (
	tellsNothing verdict = iota // a fault of acuse's own, or no attempt at all
	tellsUp
	tellsDown
)

func weigh(r store.Result) verdict {
	switch {
	case r.Outcome == store.Succeeded:
		return tellsUp
	case store.Outage(r.Status, r.Class):
		return tellsDown
	case r.Status != 0:
		return tellsUp // it answered, if only that it does not want this one
	}
	return tellsNothing
}

func (p *pace) down() bool { return !p.DownSince.IsZero() }

// sends is how many sends the lane may have under way.
func (p *pace) sends(concurrency int) int {
	if p.Slow {
		return min(max(p.limit, 1), concurrency)
	}
	return concurrency
}

// judge takes note of an attempt. changed says that the standing is to be stored, late that
// the attempt failed by an outage that is over by now: its job need not wait.
func (p *pace) judge(e ended) (changed, late bool) {
	if p.probe != 0 && p.probe == e.token {
		p.probe = 0
		return p.probed(e), false
	}
	if p.down() {
		return false, false // sent before the breaker opened: the probes decide
	}
	switch weigh(e.result) {
	case tellsUp:
		p.row, p.jobs = 0, p.jobs[:0]
		return p.faster(e.concurrency), false
	case tellsDown:
		if e.began.Before(p.closedAt) {
			return false, true
		}
		return p.failed(e), false
	}
	return false, false
}

// failed counts a failure in the row and opens the breaker.
func (p *pace) failed(e ended) (changed bool) {
	if p.row++; p.row == 1 {
		p.rowSince = e.began
	}
	if len(p.jobs) < openJobs && !slices.Contains(p.jobs, e.job) {
		p.jobs = append(p.jobs, e.job)
	}
	if p.row >= openAfter && len(p.jobs) >= openJobs {
		p.DownSince, p.Status, p.Class = p.rowSince, e.result.Status, e.result.Class
		p.Probes, p.ProbeAt = 0, e.now.Add(probeWait(0, e))
		p.row, p.jobs, p.Freeing = 0, p.jobs[:0], false
		return true
	}
	switch {
	case e.result.Status == http.StatusTooManyRequests:
		changed = !p.Slow
		p.limit, p.Slow = max(1, p.sends(e.concurrency)/2), true
		if until := e.now.Add(min(e.result.RetryAfter, maxRetryAfter)); e.result.RetryAfter > 0 && until.After(p.HoldUntil) {
			p.HoldUntil, changed = until, true
		}
	case p.Slow:
		p.limit = 1
	}
	return changed
}

// faster gives a slow lane one send more for each that was answered.
func (p *pace) faster(concurrency int) (changed bool) {
	if !p.Slow {
		return false
	}
	p.limit = p.sends(concurrency) + 1
	p.Slow = p.limit < concurrency
	return !p.Slow
}

// probed ends a probe: the breaker closes, or the next probe is set. Only an answer closes
// it, whatever the answer says of the job.
func (p *pace) probed(e ended) (changed bool) {
	switch weigh(e.result) {
	case tellsUp:
		p.DownSince, p.ProbeAt, p.HoldUntil, p.Status, p.Class, p.Probes = time.Time{}, time.Time{}, time.Time{}, 0, "", 0
		p.Slow, p.limit, p.Freeing = 1 < e.concurrency, 1, true
		p.closedAt = e.now
		p.closings++
		return true
	case tellsDown:
		p.Status, p.Class = e.result.Status, e.result.Class
		p.Probes++
	}
	p.ProbeAt = e.now.Add(probeWait(p.Probes, e))
	return true
}

// probeWait is the wait before the next probe, when n came to nothing.
func probeWait(n int, e ended) time.Duration {
	d := min(firstProbe<<min(n, 10), lastProbe)
	d += time.Duration(float64(d) / 10 * (2*e.random - 1))
	return max(d, min(e.result.RetryAfter, maxRetryAfter))
}

// held is how long nothing may be sent from now on; forever until somebody says so.
// probe says that what may be sent is one probe.
func (p *pace) held(now time.Time) (wait time.Duration, probe bool) {
	// A clock that was set back makes no wait longer than the longest there is.
	left := func(until time.Time) time.Duration { return min(max(until.Sub(now), 0), maxRetryAfter) }
	switch {
	case !p.PausedAt.IsZero():
		return forever, false
	case p.down() && p.probe != 0:
		return forever, true
	case p.down():
		return left(p.ProbeAt), true
	}
	return left(p.HoldUntil), false
}
