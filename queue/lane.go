package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"acuse/store"
)

// Lane is how one destination is served.
type Lane struct {
	Name        string        // the destination
	Sender      Sender        // nil: pull; the queue then only ends leases that ran out
	Kind        string        // last part of the lease owner: "http" (default), "exec"
	Concurrency int           // sends at the same time; default 4
	Lease       time.Duration // default 60 s; renewed at a third while a send runs
	HardLimit   time.Duration // a send is given up after it; default 15 min
	Retry       Retry
	MaxAge      time.Duration // older jobs die as too old; 0 is none
	Rate        float64       // sends a second; 0 is no limit
}

// maxLeases bounds one lease call, and with it the payloads that come at once.
const maxLeases = 64

// maxUnsettled is how many outcomes a slot may have wait for the store. It is reached
// only while the storage is sick.
const maxUnsettled = 4

// lane is a destination's place in the queue. It outlives its settings, so that a
// destination taken out and put back counts the sends still under way.
type lane struct {
	q    *Queue
	name string
	kick chan struct{} // of one: look again

	mu       sync.Mutex
	cfg      *Lane // nil: taken out
	limiter  *rate.Limiter
	running  int  // sends
	settling int  // outcomes on their way to the store
	full     bool // the last lease call may have left due jobs: a free slot looks again
	pace     pace
	dirty    bool // the standing is not stored as it is
	writing  bool // somebody is about to

	saving sync.Mutex      // one write of the standing at a time; taken before mu
	loaded bool            // under saving
	work   context.Context // of the loop; set before it starts
}

func newLane(q *Queue, name string) *lane {
	l := &lane{q: q, name: name, kick: make(chan struct{}, 1)}
	q.met.running(name, l.busy)
	q.met.down(name, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.pace.down() })
	return l
}

func (l *lane) configure(c *Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wake()
	old := l.cfg
	l.cfg = c
	if c == nil {
		return
	}
	if c.Kind == "" {
		c.Kind = "http"
	}
	if c.Concurrency <= 0 {
		c.Concurrency = 4
	}
	if c.Lease <= 0 {
		c.Lease = time.Minute
	}
	if c.HardLimit <= 0 {
		c.HardLimit = 15 * time.Minute
	}
	c.Retry = c.Retry.Filled()
	switch {
	case c.Rate <= 0:
		l.limiter = nil
	case old == nil || old.Rate != c.Rate || l.limiter == nil:
		// It starts with nothing saved up, so that a restart or a reload, which forget
		// what was spent, never send more than the rate allows over both.
		burst := max(1, int(c.Rate))
		l.limiter = rate.NewLimiter(rate.Limit(c.Rate), burst)
		l.limiter.AllowN(time.Now(), burst)
	}
}

func (l *lane) settings() *Lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg
}

func (l *lane) busy() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}

// wake makes the loop look again. It never blocks.
func (l *lane) wake() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run leases and starts until stop ends.
func (l *lane) run(stop, work context.Context) {
	var sick, dry backoff
	for stop.Err() == nil {
		err := l.load(stop)
		if err == nil {
			break
		}
		if errors.Is(err, store.ErrClosed) {
			return
		}
		if sick.tries%60 == 0 {
			l.q.opt.Log.Error("lane", "destination", l.name, "err", err)
		}
		sleep(stop, sick.next(time.Second, 5*time.Second), nil)
	}
	l.mu.Lock()
	if l.pace.Freeing {
		l.changed() // a crash came between
	}
	l.mu.Unlock()
	sick = backoff{}
	for stop.Err() == nil {
		got, wait, err := l.fill(work)
		kick := l.kick
		switch {
		case errors.Is(err, store.ErrClosed):
			return
		case err != nil:
			// A sick disk is not asked a hundred times a second, kicked or not.
			wait, kick = sick.next(time.Second, 5*time.Second), nil
			if sick.tries == 1 || sick.tries%60 == 0 {
				l.q.opt.Log.Error("lease", "destination", l.name, "err", err, "tries", sick.tries)
			}
		case wait == 0 && got == 0:
			// Due, and yet not given: something in the store holds it back.
			wait = dry.next(10*time.Millisecond, time.Second)
		default:
			sick, dry = backoff{}, backoff{}
		}
		if !sleep(stop, wait, kick) {
			return
		}
	}
}

// fill leases for the free slots and starts what it gets. wait is how long nothing
// more can be done unless a kick comes.
func (l *lane) fill(work context.Context) (got int, wait time.Duration, err error) {
	select {
	case <-l.kick: // whatever it announced is seen below
	default:
	}
	cfg, free, probe, wait := l.slots()
	if free == 0 {
		return 0, wait, nil
	}
	// With the context of work: a lease that is committed while stop ends would
	// otherwise be one that nobody knows of, and an attempt burned.
	now := l.q.opt.Now()
	list, err := l.q.opt.Jobs.Lease(work, store.LeaseQuery{
		Destination: l.name, Owner: l.q.opt.Node + "/" + l.q.opt.Run + "/" + cfg.Kind,
		Max: free, TTL: cfg.Lease, Now: now, Budget: cfg.Retry.Budget(), MaxAge: cfg.MaxAge,
	})
	if err != nil {
		return 0, 0, err
	}
	l.take(list, len(list) == free, probe)
	for _, j := range list {
		l.q.wg.Go(func() {
			defer l.settled()
			l.q.one(work, cfg, j, l)
		})
	}
	if len(list) > 0 {
		l.q.leased()
	}
	if len(list) == free {
		return free, 0, nil // there may be more: see whether a slot is left
	}
	due, ok, err := l.q.opt.Jobs.NextDue(work, l.name)
	if err != nil || !ok {
		return len(list), forever, err
	}
	return len(list), max(0, due.Sub(l.q.opt.Now())), nil
}

// slots says how many jobs may be leased now, and whether that is a probe. When none, wait
// is until one may.
func (l *lane) slots() (cfg *Lane, n int, probe bool, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cfg = l.cfg
	if cfg == nil || cfg.Sender == nil {
		return nil, 0, false, forever
	}
	l.full = true
	if wait, probe = l.pace.held(l.q.opt.Now()); wait != 0 {
		return nil, 0, probe, wait
	}
	n = min(l.pace.sends(cfg.Concurrency)-l.running, maxUnsettled*cfg.Concurrency-l.settling, maxLeases)
	if n <= 0 {
		return nil, 0, probe, forever
	}
	if probe {
		n = 1
	}
	if l.limiter != nil {
		tokens := l.limiter.Tokens()
		if tokens < 1 {
			return nil, 0, probe, time.Duration((1-tokens)/cfg.Rate*float64(time.Second)) + time.Millisecond
		}
		n = min(n, int(tokens))
	}
	return cfg, n, probe, 0
}

// take counts the leases as sends that run. full: the store may hold more due jobs.
func (l *lane) take(list []store.Lease, full, probe bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running += len(list)
	l.full = full
	if l.limiter != nil {
		l.limiter.AllowN(time.Now(), len(list))
	}
	if probe && len(list) > 0 {
		l.pace.probe = list[0].Token
	}
}

// judge tells the pace how an attempt ended, and whether its job may be tried at once since
// the outage that it met is over. It comes before sent: what it learns counts for the next
// lease.
func (l *lane) judge(e ended) (late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasDown := l.pace.down()
	changed, late := l.pace.judge(e)
	if changed {
		if down := l.pace.down(); down != wasDown {
			l.q.turned(l.name, &l.pace)
		}
		l.changed()
		l.wake()
	}
	return late
}

// sent ends a send: its slot is free while the outcome is being written, so that the
// next lease shares a transaction with it.
func (l *lane) sent() { l.count(-1, +1) }

// settled ends a job's stay in the lane.
func (l *lane) settled() { l.count(0, -1) }

// count changes what is under way. The loop looks for more only when it left some.
func (l *lane) count(running, settling int) {
	l.mu.Lock()
	l.running += running
	l.settling += settling
	full := l.full
	l.mu.Unlock()
	if full {
		l.wake()
	}
}

// backoff doubles a wait with every try.
type backoff struct{ tries int }

func (b *backoff) next(first, limit time.Duration) time.Duration {
	d := first << min(b.tries, 20)
	b.tries++
	return min(d, limit)
}
