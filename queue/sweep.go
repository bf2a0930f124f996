package queue

import (
	"context"
	"errors"
	"time"

	"acuse/store"
)

const (
	// beat is the longest the sweep sleeps while a lease is live: a lease with a
	// nearer deadline may be given at any time.
	beat = time.Second
	// stalled is how late a beat may come before it means that the process stood
	// still: SIGSTOP, a suspended machine, a clock that leapt.
	stalled = 2 * time.Second
	// maxRenewal bounds the wait after a stall when leases are long.
	maxRenewal = 30 * time.Second
)

// sweep queues the jobs of leases that ran out, until stop ends. With no lease live
// it sleeps until one is given.
func (q *Queue) sweep(stop context.Context) {
	var hold time.Time // nothing is expired before it
	var sick backoff
	idle := true
	for stop.Err() == nil {
		until, live, err := q.opt.Jobs.NextDeadline(stop)
		if err == nil && !live {
			idle = true
			sleep(stop, forever, q.given)
			continue
		}
		if err == nil {
			passed := !until.After(q.opt.Now())
			if idle && passed {
				// Nobody watched it run out: the process was not there.
				hold = time.Now().Add(q.renewal())
			}
			idle = false
			if q.pause(stop, q.until(until, hold)) || q.shaken.Swap(false) || q.unsettled.Load() > 0 {
				// Workers had no chance to renew: they get one.
				hold = time.Now().Add(q.renewal())
			}
			if now := q.opt.Now(); stop.Err() == nil && now.After(until) && !time.Now().Before(hold) {
				err = q.expire(stop, now)
			}
		}
		if err == nil {
			sick = backoff{}
			continue
		}
		if stop.Err() != nil || errors.Is(err, store.ErrClosed) {
			return
		}
		wait := sick.next(time.Second, 5*time.Second)
		if sick.tries == 1 || sick.tries%60 == 0 {
			q.opt.Log.Error("sweep", "err", err, "tries", sick.tries)
		}
		sleep(stop, wait, nil)
		hold = time.Now().Add(q.renewal())
	}
}

// until is how long to sleep when the earliest deadline is at until.
func (q *Queue) until(until, hold time.Time) time.Duration {
	wait := max(until.Sub(q.opt.Now())+time.Millisecond, 10*time.Millisecond)
	return min(max(wait, time.Until(hold)), beat)
}

// pause sleeps for d and tells whether it came back much too late, by the wall
// clock or by the monotonic one.
func (q *Queue) pause(stop context.Context, d time.Duration) (late bool) {
	wall, mono := q.opt.Now().Round(0), time.Now()
	sleep(stop, d, nil)
	return max(q.opt.Now().Round(0).Sub(wall), time.Since(mono)) > d+stalled
}

// renewal is the time within which every living worker renews once.
func (q *Queue) renewal() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := time.Second
	for _, l := range q.lanes {
		if c := l.settings(); c != nil {
			d = max(d, c.Lease/3)
		}
	}
	return min(d, maxRenewal)
}

// expire ends the leases that ran out before now and wakes their destinations.
func (q *Queue) expire(ctx context.Context, now time.Time) error {
	byDestination, err := q.opt.Jobs.Expire(ctx, now)
	for name, n := range byDestination {
		q.met.expired(name, n)
		q.opt.Log.Warn("leases ran out", "destination", name, "jobs", n)
		q.Wake([]string{name})
	}
	return err
}
