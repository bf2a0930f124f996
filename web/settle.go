package web

import (
	"net/http"
	"strings"
	"time"

	"acuse/store"
)

// renew moves the deadline of a lease, as far as the destination's hard limit lets it.
func (p *Pull) renew(r *http.Request, job store.Job) (any, error) {
	var c struct {
		Lease string `json:"lease"`
		TTL   *int   `json:"ttl_seconds"`
	}
	if err := decode(r, &c); err != nil {
		return nil, err
	}
	ttl, err := number(c.TTL, "ttl_seconds", 0, 1, maxTTL)
	if err != nil {
		return nil, err
	}
	token, start, err := parseLease(c.Lease)
	if err != nil {
		return nil, err
	}
	d, _ := p.destination(job.Destination)
	now := p.o.Now().UTC()
	until := now.Add(d.Lease)
	if ttl > 0 {
		until = now.Add(time.Duration(ttl) * time.Second)
	}
	answer := struct {
		Lease string  `json:"lease"`
		Until string  `json:"lease_until"`
		Hard  *string `json:"hard_limit_at"` // null: the lease may be renewed for ever
	}{Lease: c.Lease}
	if d.HardLimit > 0 {
		end := start.Add(d.HardLimit)
		if !now.Before(end) {
			return nil, &callError{http.StatusConflict, "hard-limit", "the job may not be worked on any longer; its lease runs out"}
		}
		if until.After(end) {
			until = end
		}
		at := stamp(end)
		answer.Hard = &at
	}
	if err := p.o.Jobs.Renew(r.Context(), job.ID, token, until); err != nil {
		return nil, err
	}
	answer.Until = stamp(until)
	return answer, nil
}

// settled tells a worker what became of its job.
type settled struct {
	State string  `json:"state"`
	DueAt *string `json:"due_at,omitempty"` // of a queued one
}

// ack says that the work is done.
func (p *Pull) ack(r *http.Request, job store.Job) (any, error) {
	var c struct {
		Lease string `json:"lease"`
	}
	if err := decode(r, &c); err != nil {
		return nil, err
	}
	token, start, err := parseLease(c.Lease)
	if err != nil {
		return nil, err
	}
	now := p.o.Now().UTC()
	s := store.Settlement{At: now, State: store.Delivered, Result: store.Result{Outcome: store.Succeeded}}
	if err := p.settle(r, job, token, start, s); err != nil {
		return nil, err
	}
	return settled{State: "delivered"}, nil
}

// nack gives a job back: for another try, or for good.
func (p *Pull) nack(r *http.Request, job store.Job) (any, error) {
	var c struct {
		Lease string `json:"lease"`
		Wait  *int   `json:"retry_after_seconds"`
		Dead  bool   `json:"dead"`
		Error string `json:"error"`
	}
	if err := decode(r, &c); err != nil {
		return nil, err
	}
	wait, err := number(c.Wait, "retry_after_seconds", 0, 0, maxNackWait)
	if err != nil {
		return nil, err
	}
	token, start, err := parseLease(c.Lease)
	if err != nil {
		return nil, err
	}
	now := p.o.Now().UTC()
	d, _ := p.destination(job.Destination)
	s := p.failed(d, job.Spent, now)
	switch {
	case c.Dead:
		s.State, s.Reason, s.Due = store.Dead, store.RefusedByApp, time.Time{}
	case s.State == store.Queued && c.Wait != nil:
		s.Due = now.Add(time.Duration(wait) * time.Second)
	}
	s.Result.Class, s.Result.Error = "nack", note(c.Error)
	if err := p.settle(r, job, token, start, s); err != nil {
		return nil, err
	}
	if s.State == store.Dead {
		p.o.Died()
		return settled{State: "dead"}, nil
	}
	p.polls.wake(job.Destination) // those who wait learn the new due time
	due := stamp(s.Due)
	return settled{State: "queued", DueAt: &due}, nil
}

// failed is the outcome of a failed attempt, the spent-th since the last resend: due
// again by the schedule, or dead when that was the last.
func (p *Pull) failed(d PullDestination, spent int, now time.Time) store.Settlement {
	s := store.Settlement{At: now, Result: store.Result{Outcome: store.Failed}}
	if spent >= d.Budget {
		s.State, s.Reason = store.Dead, store.Exhausted
		return s
	}
	s.State, s.Due = store.Queued, now.Add(d.Wait(spent))
	return s
}

// settle writes the outcome under the lease.
func (p *Pull) settle(r *http.Request, job store.Job, token int64, start time.Time, s store.Settlement) error {
	s.Job, s.Token = job.ID, token
	s.Result.Worker = p.o.Who(r)
	s.Result.Duration = max(0, s.At.Sub(start))
	if err := p.o.Jobs.Settle(r.Context(), s); err != nil {
		return err
	}
	p.o.Changed(job.Delivery)
	if job.Order != "" {
		p.polls.wake(job.Destination) // the next of its order may be due
	}
	return nil
}

// note is what is kept of a worker's own words: text, and not too much of it.
func note(s string) string {
	if len(s) > maxNote {
		s = s[:maxNote]
	}
	return strings.ToValidUTF8(s, "?")
}
