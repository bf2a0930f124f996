package queue

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"acuse/store"
)

// Retry is when a failed job is tried again.
type Retry struct {
	Schedule []time.Duration // waits between attempts; nil is the default, empty is one attempt only
	Jitter   float64         // part of the wait by which it varies either way; 0 is the default 0.1, negative none
	GiveUpOn []int           // statuses that end a job at once, besides 410
}

// maxRetryAfter is how far an app may move an attempt beyond its planned time.
const maxRetryAfter = time.Hour

// DefaultSchedule makes 12 attempts in about 16 hours.
func DefaultSchedule() []time.Duration {
	return []time.Duration{
		10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
	}
}

func defaultRandom() float64 { return rand.Float64() }

// Filled is r with its defaults filled in.
func (r Retry) Filled() Retry {
	if r.Schedule == nil {
		r.Schedule = DefaultSchedule()
	}
	if r.Jitter == 0 {
		r.Jitter = 0.1
	}
	r.Jitter = min(max(r.Jitter, 0), 1)
	return r
}

// Budget is how many attempts a job has.
func (r Retry) Budget() int { return len(r.Schedule) + 1 }

// plan says what becomes of a job whose attempt ended with res at the instant now.
// random is in [0, 1).
func (r Retry) plan(l store.Lease, res store.Result, now time.Time, random float64) store.Settlement {
	s := store.Settlement{Job: l.Job, Token: l.Token, At: now, Result: res}
	switch {
	case res.Outcome == store.Succeeded:
		s.State = store.Delivered
	case res.Status == http.StatusGone || res.Status != 0 && slices.Contains(r.GiveUpOn, res.Status):
		s.State, s.Reason = store.Dead, store.RefusedByApp
	case l.Spent >= r.Budget():
		s.State, s.Reason = store.Dead, store.Exhausted
	default:
		s.State, s.Due = store.Queued, now.Add(r.Wait(l.Spent, res.RetryAfter, random))
	}
	return s
}

// Wait is the time between the attempt number spent, from 1, and the next one; asked
// is the app's own wish, random in [0, 1) the part of chance. r is filled.
func (r Retry) Wait(spent int, asked time.Duration, random float64) time.Duration {
	if len(r.Schedule) == 0 {
		return 0
	}
	planned := r.Schedule[min(max(spent, 1), len(r.Schedule))-1]
	wait := planned + time.Duration(float64(planned)*r.Jitter*(2*random-1))
	return max(wait, min(asked, planned+maxRetryAfter))
}
