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
	idle, last := true, q.instant()
	for stop.Err() == nil {
		until, live, err := q.opt.Jobs.NextDeadline(stop)
		if err == nil && !live {
			sleep(stop, forever, q.given)
			idle, last = true, q.instant()
			continue
		}
		if err == nil {
			// One that nobody watched running out: the process was not there.
			unwatched := idle && !until.After(q.opt.Now())
			idle = false
			wait := q.until(until, hold)
			sleep(stop, wait, nil)
			now := q.instant()
			if unwatched || now.since(last) > wait+stalled || q.shaken.Swap(false) {
				// The workers had no chance to renew: they get one.
				hold = now.mono.Add(q.renewal())
			}
			last = now
			if stop.Err() == nil && now.wall.After(until) && !now.mono.Before(hold) {
				err = q.expire(stop, now.wall)
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

// instant is now on both clocks: the wall clock leaps with a suspended machine, the
// monotonic one goes on while the process is stopped.
type instant struct{ wall, mono time.Time }

func (q *Queue) instant() instant { return instant{q.opt.Now().Round(0), time.Now()} }

// since is the longer of the times passed on the two clocks.
func (i instant) since(past instant) time.Duration {
	return max(i.wall.Sub(past.wall), i.mono.Sub(past.mono))
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
