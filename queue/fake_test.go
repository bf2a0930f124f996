package queue

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"acuse/store"
)

// shelf is a store.Jobs in memory.
type shelf struct {
	mu    sync.Mutex
	jobs  map[int64]*kept
	calls map[string]int
	fail  func(op string) error // nil: never
	stuck map[string]chan struct{}
}

type kept struct {
	store.Job
	settlements []store.Settlement
	interrupted int
	received    time.Time
}

func newShelf() *shelf {
	return &shelf{jobs: map[int64]*kept{}, calls: map[string]int{}, stuck: map[string]chan struct{}{}}
}

// add queues a job due now.
func (s *shelf) add(id int64, destination string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.jobs[id] = &kept{received: now, Job: store.Job{ID: id, Delivery: id + 10000, Destination: destination,
		Key: "s:evt:" + destination, State: store.Queued, DueAt: now}}
}

func (s *shelf) resend(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	j.State, j.DueAt, j.Spent, j.Resend = store.Queued, time.Now(), 0, true
}

// job reads a copy.
func (s *shelf) job(id int64) kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.jobs[id]
}

func (s *shelf) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

// setFail makes operations fail as f says.
func (s *shelf) setFail(f func(op string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// block makes the next calls of op hang until the channel is closed.
func (s *shelf) block(op string, until chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck[op] = until
}

func (s *shelf) begin(op string) error {
	s.mu.Lock()
	stuck := s.stuck[op]
	delete(s.stuck, op)
	s.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	s.mu.Lock()
	s.calls[op]++
	if s.fail != nil {
		return s.fail(op)
	}
	return nil
}

func (s *shelf) Lease(_ context.Context, q store.LeaseQuery) ([]store.Lease, error) {
	err := s.begin("Lease")
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var due []*kept
	for _, j := range s.jobs {
		if j.State == store.Queued && j.Destination == q.Destination && !j.DueAt.After(q.Now) {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(a, b *kept) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID))
	})
	var list []store.Lease
	for _, j := range due[:min(len(due), q.Max)] {
		if q.MaxAge > 0 && q.Now.Sub(j.received) > q.MaxAge {
			j.State, j.Reason = store.Dead, store.TooOld
			continue
		}
		if q.Budget > 0 && j.Spent >= q.Budget {
			j.State, j.Reason = store.Dead, store.Exhausted
			continue
		}
		j.State, j.LeaseOwner, j.LeaseUntil = store.Leased, q.Owner, q.Now.Add(q.TTL)
		j.LeaseToken++
		j.Attempts++
		j.Spent++
		list = append(list, store.Lease{Job: j.ID, Token: j.LeaseToken, Until: j.LeaseUntil, Destination: j.Destination,
			Key: j.Key, Attempt: j.Attempts, Spent: j.Spent, Resend: j.Resend,
			Delivery: store.DeliveryHead{ID: j.Delivery, Source: "s", EventID: "evt", ReceivedAt: j.received, Part: -1},
			Payload:  store.Payload{Method: "POST", Target: "/in/s", Body: []byte("case-SECRET-BODY"), Part: -1}})
	}
	return list, nil
}

func (s *shelf) current(job, token int64) (*kept, error) {
	j := s.jobs[job]
	if j == nil || j.State != store.Leased || j.LeaseToken != token {
		return nil, store.ErrLeaseLost
	}
	return j, nil
}

func (s *shelf) Renew(ctx context.Context, job, token int64, until time.Time) error {
	err := cmp.Or(s.begin("Renew"), ctx.Err())
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	j, err := s.current(job, token)
	if err == nil {
		j.LeaseUntil = until
	}
	return err
}

func (s *shelf) Settle(ctx context.Context, x store.Settlement) error {
	err := cmp.Or(s.begin("Settle"), ctx.Err())
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	j, err := s.current(x.Job, x.Token)
	if err != nil {
		return err
	}
	j.State, j.DueAt, j.Reason = x.State, x.Due, x.Reason
	j.settlements = append(j.settlements, x)
	return nil
}

func (s *shelf) end(now time.Time, which func(*kept) bool) map[string]int {
	n := map[string]int{}
	for _, j := range s.jobs {
		if j.State == store.Leased && which(j) {
			j.State, j.DueAt = store.Queued, now
			j.interrupted++
			n[j.Destination]++
		}
	}
	return n
}

func (s *shelf) Expire(_ context.Context, now time.Time) (map[string]int, error) {
	err := s.begin("Expire")
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.end(now, func(j *kept) bool { return j.LeaseUntil.Before(now) }), nil
}

func (s *shelf) EndLeases(_ context.Context, prefix string, now time.Time) (int, error) {
	err := s.begin("EndLeases")
	defer s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	total := 0
	for _, n := range s.end(now, func(j *kept) bool { return strings.HasPrefix(j.LeaseOwner, prefix) }) {
		total += n
	}
	return total, nil
}

// earliest is the smallest of at over the jobs in state.
func (s *shelf) earliest(state store.JobState, destination string, at func(*kept) time.Time) (t time.Time, ok bool) {
	for _, j := range s.jobs {
		if j.State == state && (destination == "" || j.Destination == destination) && (!ok || at(j).Before(t)) {
			t, ok = at(j), true
		}
	}
	return t, ok
}

func (s *shelf) NextDue(_ context.Context, destination string) (time.Time, bool, error) {
	err := s.begin("NextDue")
	defer s.mu.Unlock()
	t, ok := s.earliest(store.Queued, destination, func(j *kept) time.Time { return j.DueAt })
	return t, ok, err
}

func (s *shelf) NextDeadline(context.Context) (time.Time, bool, error) {
	err := s.begin("NextDeadline")
	defer s.mu.Unlock()
	t, ok := s.earliest(store.Leased, "", func(j *kept) time.Time { return j.LeaseUntil })
	return t, ok, err
}

func (s *shelf) JobByID(_ context.Context, id int64) (store.Job, error) {
	err := s.begin("JobByID")
	defer s.mu.Unlock()
	if err == nil && s.jobs[id] == nil {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Job{}, err
	}
	return s.jobs[id].Job, nil
}

// sender is a function as a Sender.
type sender func(context.Context, store.Lease) store.Result

func (f sender) Send(ctx context.Context, l store.Lease) store.Result { return f(ctx, l) }

// answers is a Sender that always answers status.
func answers(status int) sender {
	return func(context.Context, store.Lease) store.Result {
		if status/100 == 2 {
			return store.Result{Outcome: store.Succeeded, Status: status}
		}
		return store.Result{Outcome: store.Failed, Status: status, Class: "status"}
	}
}

// rig is a queue that runs in a bubble of fake time.
type rig struct {
	*Queue
	jobs *shelf
	kill func() // ends work
	halt func() // ends stop, waits for Run
}

// run calls f with a running queue; the bubble's time stands while anything works.
func run(t *testing.T, o Options, lanes []Lane, f func(t *testing.T, r rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		jobs, ok := o.Jobs.(*shelf)
		if !ok {
			jobs = newShelf()
			o.Jobs = jobs
		}
		if o.Log == nil {
			o.Log = slog.New(slog.DiscardHandler)
		}
		if o.Random == nil {
			o.Random = func() float64 { return 0.5 } // no jitter
		}
		q := New(o)
		q.SetLanes(lanes)
		kill, halt := begin(t, q)
		synctest.Wait()
		f(t, rig{q, jobs, kill, halt})
	})
}

// begin runs q until the test ends. halt ends stop and waits for Run; kill ends work.
func begin(t *testing.T, q *Queue) (kill, halt func()) {
	stop, endStop := context.WithCancel(context.Background())
	work, kill := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(stop, work) }()
	halt = sync.OnceFunc(func() {
		endStop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { kill(); halt() })
	return kill, halt
}

// add queues a job and wakes its lane.
func (r rig) add(id int64, destination string) {
	r.jobs.add(id, destination)
	r.Wake([]string{destination})
}

// after lets d pass and everything due in it happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
