package queue

import (
	"math"
	"testing"
	"time"

	"acuse/store"
)

// TestDel03 is case del-03: what each answer does to the job.
func TestDel03StatusRules(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767225600, 0).UTC()
	failed := func(status int, asked time.Duration) store.Result {
		return store.Result{Outcome: store.Failed, Status: status, RetryAfter: asked}
	}
	for _, c := range []struct {
		name   string
		spent  int
		res    store.Result
		state  store.JobState
		reason store.DeadReason
		wait   time.Duration
	}{
		{"2xx is delivered", 1, store.Result{Outcome: store.Succeeded, Status: 200}, store.Delivered, 0, 0},
		{"a redirect follows the schedule", 1, failed(301, 0), store.Queued, 0, 10 * time.Second},
		{"404 follows the schedule", 2, failed(404, 0), store.Queued, 0, 30 * time.Second},
		{"Retry-After beyond the plan is kept", 3, failed(429, 2*time.Minute), store.Queued, 0, 2 * time.Minute},
		{"Retry-After within the plan changes nothing", 11, failed(429, 2*time.Minute), store.Queued, 0, 8 * time.Hour},
		{"an hour beyond the plan is the most", 5, failed(503, 24*time.Hour), store.Queued, 0, 65 * time.Minute},
		{"no Retry-After", 6, failed(429, 0), store.Queued, 0, 15 * time.Minute},
		{"410 dies at once", 1, failed(410, 0), store.Dead, store.RefusedByApp, 0},
		{"a status of give_up_on dies at once", 1, failed(422, 0), store.Dead, store.RefusedByApp, 0},
		{"the last attempt dies of exhaustion", 12, failed(500, 0), store.Dead, store.Exhausted, 0},
		{"so does one over the budget", 13, failed(0, 0), store.Dead, store.Exhausted, 0},
		{"success on the last attempt counts", 12, store.Result{Outcome: store.Succeeded}, store.Delivered, 0, 0},
		{"no answer follows the schedule", 1, failed(0, 0), store.Queued, 0, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Retry{GiveUpOn: []int{422, 0}}.Filled()
			s := r.plan(store.Lease{Job: 7, Token: 3, Spent: c.spent}, c.res, now, 0.5)
			if s.State != c.state || s.Reason != c.reason || s.Job != 7 || s.Token != 3 || !s.At.Equal(now) {
				t.Fatalf("got %+v", s)
			}
			if c.state == store.Queued && s.Due.Sub(now) != c.wait {
				t.Fatalf("wait %v, want %v", s.Due.Sub(now), c.wait)
			}
		})
	}
}

func TestScheduleIsTwelveAttemptsInAboutSixteenHours(t *testing.T) {
	t.Parallel()
	r := Retry{}.Filled()
	var sum time.Duration
	for _, d := range r.Schedule {
		sum += d
	}
	if r.Budget() != 12 || sum != 15*time.Hour+53*time.Minute+40*time.Second {
		t.Fatalf("%d attempts in %v", r.Budget(), sum)
	}
	if one := (Retry{Schedule: []time.Duration{}}).Filled(); one.Budget() != 1 {
		t.Fatalf("an empty schedule makes %d attempts", one.Budget())
	}
}

func TestJitterIsTenPercentEitherWayAndGrowsWithTheWait(t *testing.T) {
	t.Parallel()
	r := Retry{}.Filled()
	for spent, planned := range r.Schedule {
		low, high := r.Wait(spent+1, 0, 0), r.Wait(spent+1, 0, math.Nextafter(1, 0))
		if low != planned*9/10 || high < planned*11/10-time.Microsecond || high > planned*11/10 {
			t.Fatalf("%v varies from %v to %v", planned, low, high)
		}
	}
	if d := (Retry{Jitter: -1}).Filled().Wait(1, 0, 0); d != 10*time.Second {
		t.Fatalf("without jitter: %v", d)
	}
	if d := r.Wait(1, 15*time.Second, 0); d != 15*time.Second {
		t.Fatalf("jitter made an attempt come before Retry-After: %v", d)
	}
}
