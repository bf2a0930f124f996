package queue

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"acuse/store"
)

// TestP3 follows one job through every attempt and a resend: always the same key,
// at the times of the schedule, until it is a dead letter that is told of.
func TestP3EveryAttemptAndResendCarriesTheSameKey(t *testing.T) {
	t.Parallel()
	type try struct {
		at      time.Duration
		key     string
		attempt int
		resend  bool
	}
	var tries []try
	var start time.Time
	up := false
	app := sender(func(_ context.Context, l store.Lease) store.Result {
		tries = append(tries, try{time.Since(start), l.Key, l.Attempt, l.Resend})
		if up {
			return answers(204)(nil, l)
		}
		return answers(500)(nil, l)
	})
	died := 0
	run(t, Options{Died: func() { died++ }}, []Lane{{Name: "app", Sender: app}}, func(t *testing.T, r rig) {
		start = time.Now()
		r.add(1, "app")
		after(24 * time.Hour)
		if j := r.jobs.job(1); j.State != store.Dead || j.Reason != store.Exhausted || died != 1 || len(tries) != 12 {
			t.Fatalf("after a day: %+v, %d dead letters told, %d tries", j, died, len(tries))
		}
		at := time.Duration(0)
		for i, x := range tries {
			if x != (try{at, "s:evt:app", i + 1, false}) {
				t.Fatalf("try %d: %+v, want at %v", i+1, x, at)
			}
			if i < 11 {
				at += DefaultSchedule()[i]
			}
		}
		up = true
		r.jobs.resend(1)
		r.Wake([]string{"app"})
		synctest.Wait()
		if j := r.jobs.job(1); j.State != store.Delivered || len(tries) != 13 {
			t.Fatalf("after the resend: %+v", j)
		}
		if x := tries[12]; x != (try{24 * time.Hour, "s:evt:app", 13, true}) {
			t.Fatalf("resend: %+v", x)
		}
	})
}

func TestNoLaneExceedsItsConcurrencyAndNoneStarvesAnother(t *testing.T) {
	t.Parallel()
	var open, most atomic.Int32
	slow := sender(func(ctx context.Context, l store.Lease) store.Result {
		n := open.Add(1)
		defer open.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		sleep(ctx, time.Minute, nil)
		return answers(503)(ctx, l)
	})
	lanes := []Lane{{Name: "slow", Sender: slow, Concurrency: 3}, {Name: "quick", Sender: answers(200)}}
	run(t, Options{}, lanes, func(t *testing.T, r rig) {
		for id := range int64(50) {
			r.add(id, "slow")
		}
		synctest.Wait()
		for id := range int64(50) {
			r.add(100+id, "quick")
		}
		synctest.Wait() // no time has passed
		for id := range int64(50) {
			if j := r.jobs.job(100 + id); j.State != store.Delivered {
				t.Fatalf("a job of the quick lane waits: %+v", j)
			}
		}
		if open.Load() != 3 {
			t.Fatalf("%d sends open, want 3", open.Load())
		}
		after(30 * time.Second)
		lanes[0].Concurrency = 5
		r.SetLanes(lanes)
		synctest.Wait()
		if open.Load() != 5 {
			t.Fatalf("after a reload %d sends open, want 5", open.Load())
		}
		lanes[0].Concurrency = 1
		r.SetLanes(lanes)
		after(time.Hour)
		if most.Load() != 5 {
			t.Fatalf("at most %d sends were open, want 5", most.Load())
		}
		if n := r.lanes["slow"].busy(); n != 1 {
			t.Fatalf("%d sends open after the second reload, want 1", n)
		}
	})
}

func TestAllJobsOfABurstAreDeliveredOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	times := map[int64]int{}
	app := sender(func(ctx context.Context, l store.Lease) store.Result {
		sleep(ctx, 200*time.Millisecond, nil)
		mu.Lock()
		defer mu.Unlock()
		times[l.Job]++
		return answers(200)(ctx, l)
	})
	run(t, Options{}, []Lane{{Name: "app", Sender: app, Concurrency: 100}}, func(t *testing.T, r rig) {
		for id := range int64(1000) {
			r.add(id, "app")
		}
		after(2 * time.Second) // 10 rounds of 100
		if len(times) != 1000 {
			t.Fatalf("%d of 1000 jobs were sent in 2 s", len(times))
		}
		for id, n := range times {
			if n != 1 {
				t.Fatalf("job %d was sent %d times", id, n)
			}
		}
	})
}

func TestAnIdleQueueAsksNothing(t *testing.T) {
	t.Parallel()
	run(t, Options{}, []Lane{{Name: "app", Sender: answers(500)}, {Name: "agent"}}, func(t *testing.T, r rig) {
		r.add(1, "app")
		after(time.Second)
		before := r.jobs.count("Lease") + r.jobs.count("NextDue") + r.jobs.count("NextDeadline")
		after(8 * time.Second) // the retry comes at 10 s
		if n := r.jobs.count("Lease") + r.jobs.count("NextDue") + r.jobs.count("NextDeadline") - before; n != 0 {
			t.Fatalf("%d calls while nothing was due", n)
		}
		after(2 * time.Second)
		if j := r.jobs.job(1); j.Attempts != 2 {
			t.Fatalf("the retry did not come: %+v", j)
		}
	})
}

func TestASickDiskIsNotAskedAHundredTimesASecond(t *testing.T) {
	t.Parallel()
	run(t, Options{}, []Lane{{Name: "app", Sender: answers(200)}}, func(t *testing.T, r rig) {
		r.jobs.setFail(func(string) error { return store.ErrUnavailable })
		before := r.jobs.count("Lease")
		r.add(1, "app")
		for range 600 { // kicked all the time
			after(100 * time.Millisecond)
			r.Wake([]string{"app"})
		}
		if n := r.jobs.count("Lease") - before; n < 10 || n > 20 {
			t.Fatalf("the store was asked %d times in a minute", n)
		}
		r.jobs.setFail(nil)
		after(6 * time.Second)
		if j := r.jobs.job(1); j.State != store.Delivered {
			t.Fatalf("after the disk recovered: %+v", j)
		}
	})
}

func TestADueJobThatTheStoreHoldsBackIsNotAskedForInALoop(t *testing.T) {
	t.Parallel()
	run(t, Options{}, []Lane{{Name: "app", Sender: answers(200), MaxAge: time.Hour}}, func(t *testing.T, r rig) {
		jobs := stubborn{r.jobs}
		q := New(Options{Jobs: jobs, Log: r.opt.Log})
		q.SetLanes([]Lane{{Name: "app", Sender: answers(200)}})
		begin(t, q)
		r.jobs.add(1, "app") // the first queue is not woken
		q.Wake([]string{"app"})
		after(time.Minute)
		if n := r.jobs.count("NextDue"); n > 80 {
			t.Fatalf("asked %d times in a minute", n)
		}
	})
}

// stubborn says that a job is due and gives none.
type stubborn struct{ *shelf }

func (stubborn) Lease(context.Context, store.LeaseQuery) ([]store.Lease, error) { return nil, nil }

func TestRate(t *testing.T) {
	t.Parallel()
	var at []time.Duration
	var start time.Time
	app := sender(func(ctx context.Context, l store.Lease) store.Result {
		at = append(at, time.Since(start).Round(100*time.Millisecond))
		return answers(200)(ctx, l)
	})
	run(t, Options{}, []Lane{{Name: "app", Sender: app, Rate: 2, Concurrency: 1}}, func(t *testing.T, r rig) {
		after(5 * time.Second) // saves up two
		start = time.Now()
		for id := range int64(6) {
			r.jobs.add(id, "app")
		}
		r.Wake([]string{"app"})
		after(10 * time.Second)
		want := []time.Duration{0, 0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second}
		if !slices.Equal(at, want) {
			t.Fatalf("sent at %v, want %v", at, want)
		}
	})
}

// TestRateOverARestart starts again and again: what was spent is forgotten, and yet no
// second sees more than what is saved up plus what comes in.
func TestRateOverARestart(t *testing.T) {
	t.Parallel()
	jobs := newShelf()
	var at []time.Time
	app := sender(func(ctx context.Context, l store.Lease) store.Result {
		at = append(at, time.Now())
		return answers(200)(ctx, l)
	})
	synctest.Test(t, func(t *testing.T) {
		for id := range int64(200) {
			jobs.add(id, "app")
		}
		for range 20 {
			q := New(Options{Jobs: jobs, Log: slog.New(slog.DiscardHandler)})
			q.SetLanes([]Lane{{Name: "app", Sender: app, Rate: 5, Concurrency: 1}})
			_, halt := begin(t, q)
			after(700 * time.Millisecond)
			halt()
		}
	})
	for i := range at {
		n := 0
		for _, other := range at[i:] {
			if other.Sub(at[i]) < time.Second {
				n++
			}
		}
		if n > 5 {
			t.Fatalf("%d sends within a second at a rate of 5", n)
		}
	}
	if len(at) < 40 {
		t.Fatalf("only %d sends in 14 s", len(at))
	}
}

func TestTooOldJobsAreNotSent(t *testing.T) {
	t.Parallel()
	run(t, Options{}, []Lane{{Name: "app", Sender: answers(500), MaxAge: 30 * time.Second}}, func(t *testing.T, r rig) {
		r.add(1, "app")
		after(time.Hour)
		if j := r.jobs.job(1); j.State != store.Dead || j.Reason != store.TooOld || j.Attempts != 2 {
			t.Fatalf("got %+v", j)
		}
	})
}

func TestALaneTakenOutFinishesItsSendsAndLeasesNothing(t *testing.T) {
	t.Parallel()
	var open atomic.Int32
	slow := sender(func(ctx context.Context, l store.Lease) store.Result {
		open.Add(1)
		defer open.Add(-1)
		sleep(ctx, time.Minute, nil)
		return answers(200)(ctx, l)
	})
	lane := Lane{Name: "app", Sender: slow, Concurrency: 2}
	run(t, Options{}, []Lane{lane}, func(t *testing.T, r rig) {
		for id := range int64(4) {
			r.add(id, "app")
		}
		after(time.Second)
		r.SetLanes(nil)
		after(2 * time.Minute)
		if r.jobs.job(0).State != store.Delivered || r.jobs.job(1).State != store.Delivered || r.jobs.job(2).State != store.Queued {
			t.Fatalf("after it was taken out: %+v %+v", r.jobs.job(1).State, r.jobs.job(2).State)
		}
		r.SetLanes([]Lane{lane}) // and put back, while it works and idle
		after(time.Second)
		r.SetLanes(nil)
		r.SetLanes([]Lane{lane})
		r.add(5, "app")
		synctest.Wait()
		if open.Load() != 2 {
			t.Fatalf("%d sends open, want 2", open.Load())
		}
		after(3 * time.Minute)
		if r.jobs.job(3).State != store.Delivered || r.jobs.job(5).State != store.Delivered {
			t.Fatalf("after it was put back: %+v", r.jobs.job(5))
		}
	})
}
