// Package queue works the jobs off. Every destination has a lane of its own: its
// own workers, its own pace. A lane leases due jobs, hands them to its Sender,
// keeps the leases alive meanwhile and settles what came of it. One sweep for all
// lanes queues again what dead workers left.
//
// See DESIGN.md for how the parts keep the promises P3, P4 and P8.
package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/store"
)

// Sender hands a delivery over. It returns soon after ctx ended; what it returns
// then does not matter unless the app answered. It is called from several
// goroutines, and must not change the lease's bytes.
type Sender interface {
	Send(ctx context.Context, l store.Lease) store.Result
}

// Options of a Queue. Only Jobs is needed.
type Options struct {
	Jobs store.Jobs
	// Standings keeps how the lanes stand over restarts; nil: only in memory.
	Standings Standings
	Node      string // name of this data folder's server; default "node"
	Run       string // this run of the process; default random
	// Changed is told of a delivery whose state changed. It must not block.
	Changed func(delivery int64)
	// Died is told that a job became a dead letter. It must not block.
	Died func()
	// Woken is told that a pull destination has due jobs. It must not block.
	Woken func(destination string)
	// Turned is told that a destination went down or came back. It must not block.
	Turned  func(destination string)
	Now     func() time.Time // the wall clock, default time.Now; waits are monotonic
	Random  func() float64   // [0, 1), for jitter; default math/rand
	Log     *slog.Logger     // default slog.Default
	Metrics *metrics.Set     // default a private set
}

// Queue runs the lanes. Make it with New.
type Queue struct {
	opt Options
	met meters

	mu         sync.Mutex
	lanes      map[string]*lane
	stop, work context.Context // nil before Run
	closed     bool            // Run is ending: no lane starts any more
	wg         sync.WaitGroup  // lane loops and sends

	given  chan struct{} // of one: a lease was given, for an idle sweep
	shaken atomic.Bool   // a renewal failed for storage reasons since the last beat
}

// New makes a Queue without lanes.
func New(o Options) *Queue {
	if o.Node == "" {
		o.Node = "node"
	}
	if o.Run == "" {
		o.Run = rand.Text()[:8]
	}
	if o.Changed == nil {
		o.Changed = func(int64) {}
	}
	if o.Died == nil {
		o.Died = func() {}
	}
	if o.Woken == nil {
		o.Woken = func(string) {}
	}
	if o.Turned == nil {
		o.Turned = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = defaultRandom
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	return &Queue{opt: o, met: meters{o.Metrics}, lanes: map[string]*lane{}, given: make(chan struct{}, 1)}
}

// SetLanes makes lanes the lanes: new ones start, changed ones go on with their new
// settings, those not named lease nothing further. Sends under way end under the
// settings they began with. It may be called before, during and after Run.
func (q *Queue) SetLanes(lanes []Lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	named := make(map[string]bool, len(lanes))
	for _, c := range lanes {
		named[c.Name] = true
		l, ok := q.lanes[c.Name]
		if !ok {
			l = newLane(q, c.Name)
			q.lanes[c.Name] = l
			q.start(l)
		}
		l.configure(&c)
	}
	for name, l := range q.lanes {
		if !named[name] {
			l.configure(nil)
		}
	}
}

// start begins l's loop when Run is under way. q.mu is held.
func (q *Queue) start(l *lane) {
	if q.stop != nil && !q.closed {
		stop, work := q.stop, q.work
		l.work = work
		q.wg.Go(func() { l.run(stop, work) })
	}
}

// Wake says that the destinations may have due jobs. It never blocks.
func (q *Queue) Wake(destinations []string) {
	for _, name := range destinations {
		q.mu.Lock()
		l := q.lanes[name]
		q.mu.Unlock()
		if l == nil {
			continue
		}
		l.wake()
		if c := l.settings(); c != nil && c.Sender == nil {
			q.opt.Woken(name)
		}
	}
}

// Run works until stop ends, then waits for the sends under way. When work ends,
// sends without an answer are given up; their leases are ended by the next start.
// It returns an error only when it could not begin.
func (q *Queue) Run(stop, work context.Context) error {
	if err := q.reclaim(stop); err != nil {
		return err
	}
	q.mu.Lock()
	q.stop, q.work = stop, work
	for _, l := range q.lanes {
		q.start(l)
	}
	q.mu.Unlock()
	q.sweep(stop)
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wg.Wait()
	return nil
}

// reclaim ends the leases of this node's own earlier runs: their workers died with
// their process. Pull workers are owners of another form and live on.
func (q *Queue) reclaim(stop context.Context) error {
	for {
		n, err := q.opt.Jobs.EndLeases(stop, q.opt.Node+"/", q.opt.Now())
		switch {
		case err == nil:
			if n > 0 {
				q.opt.Log.Info("leases of an earlier run ended", "jobs", n)
			}
			return nil
		case errors.Is(err, store.ErrClosed):
			return err
		case stop.Err() != nil:
			return nil
		}
		q.opt.Log.Error("end leases of an earlier run", "err", err)
		if !sleep(stop, time.Second, nil) {
			return nil
		}
	}
}

// leased tells an idle sweep that there is a deadline to watch.
func (q *Queue) leased() {
	select {
	case q.given <- struct{}{}:
	default:
	}
}

// forever is a wait without a timer.
const forever = time.Duration(-1)

// sleep waits for d, a kick or the end of ctx; only the last is false.
func sleep(ctx context.Context, d time.Duration, kick <-chan struct{}) bool {
	var due <-chan time.Time
	if d != forever {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-due:
	case <-kick:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
