package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"acuse/store"
)

// lasting is a Sender that takes d, or until its context ends.
func lasting(d time.Duration, sends *atomic.Int32) sender {
	return func(ctx context.Context, l store.Lease) store.Result {
		sends.Add(1)
		if !sleep(ctx, d, nil) {
			return store.Result{Outcome: store.Failed, Class: "cancelled"}
		}
		return answers(200)(ctx, l)
	}
}

// leased leases job id at the store as somebody else's worker would.
func leased(t *testing.T, r rig, j store.Jobs, owner, destination string, ttl time.Duration) store.Lease {
	t.Helper()
	list, err := j.Lease(t.Context(), store.LeaseQuery{Destination: destination, Owner: owner, Max: 1, TTL: ttl, Now: time.Now()})
	if err != nil || len(list) != 1 {
		t.Fatalf("lease: %v, %v", list, err)
	}
	return list[0]
}

// TestDel02 is case del-02 for sends: work that outlasts its lease is done once.
func TestDel02TheLeaseIsKeptAliveWhileTheWorkRuns(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32
	run(t, Options{}, []Lane{{Name: "app", Sender: lasting(150*time.Second, &sends)}}, func(t *testing.T, r rig) {
		r.add(1, "app")
		after(150 * time.Second)
		if j := r.jobs.job(1); j.State != store.Delivered || sends.Load() != 1 || j.interrupted != 0 {
			t.Fatalf("%d sends, %+v", sends.Load(), j)
		}
		if n := r.jobs.count("Renew"); n != 7 { // every 20 s
			t.Fatalf("%d renewals in 150 s", n)
		}
		if n := r.jobs.count("NextDeadline"); n > 160 {
			t.Fatalf("the sweep asked %d times in 150 s", n)
		}
	})
}

func TestDel02TheHardLimitEndsASend(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32
	run(t, Options{}, []Lane{{Name: "app", Sender: lasting(time.Hour, &sends)}}, func(t *testing.T, r rig) {
		r.add(1, "app")
		after(15 * time.Minute)
		j := r.jobs.job(1)
		if j.State != store.Queued || len(j.settlements) != 1 || j.settlements[0].Result.Class != "hard_limit" || j.settlements[0].Result.Outcome != store.Failed {
			t.Fatalf("got %+v", j)
		}
	})
}

func TestP4ALostLeaseEndsTheSendAndWritesNothing(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32
	run(t, Options{}, []Lane{{Name: "app", Sender: lasting(50*time.Second, &sends)}}, func(t *testing.T, r rig) {
		r.add(1, "app")
		after(time.Second)
		r.jobs.EndLeases(t.Context(), "", time.Now()) // somebody takes the job away…
		leased(t, r, r.jobs, "other", "app", time.Hour)
		after(40 * time.Second)
		if n := r.lanes["app"].busy(); n != 0 {
			t.Fatal("the send goes on without its lease")
		}
		if n := r.jobs.count("Settle"); n != 0 {
			t.Fatalf("%d settlements were tried", n)
		}
		if j := r.jobs.job(1); j.LeaseOwner != "other" || sends.Load() != 1 {
			t.Fatalf("got %+v", j)
		}
	})
}

func TestP4AtStartOwnLeasesEndAtOnceAndPullLeasesLiveOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs := newShelf()
		for id, owner := range map[int64]string{1: "n1/old/http", 2: "n1/older/exec", 3: "pull/worker-7", 4: "n10/old/http"} {
			jobs.add(id, owner)
			leased(t, rig{}, jobs, owner, owner, time.Hour)
		}
		jobs.setFail(func(op string) error { // the disk is sick at first
			if op == "EndLeases" && jobs.calls[op] < 3 {
				return store.ErrUnavailable
			}
			return nil
		})
		q := New(Options{Jobs: jobs, Node: "n1", Log: discard})
		begin(t, q)
		after(2 * time.Second)
		for id, want := range map[int64]store.JobState{1: store.Queued, 2: store.Queued, 3: store.Leased, 4: store.Leased} {
			if j := jobs.job(id); j.State != want {
				t.Errorf("job of %s: state %d, want %d", j.LeaseOwner, j.State, want)
			}
		}
	})
}

func TestP4TheSweepActsWithinASecondOfADeadline(t *testing.T) {
	t.Parallel()
	woken := make(chan string, 10)
	o := Options{Woken: func(d string) { woken <- d }}
	run(t, o, []Lane{{Name: "agent"}}, func(t *testing.T, r rig) {
		for id, ttl := range []time.Duration{time.Hour, 7300 * time.Millisecond, time.Second} {
			r.jobs.add(int64(id), "agent")
			leased(t, r, r.Watched(), "pull/w", "agent", ttl)
			after(100 * time.Millisecond)
		}
		for _, id := range []int64{2, 1} {
			for range 1000 {
				if r.jobs.job(id).State != store.Leased {
					break
				}
				after(10 * time.Millisecond)
			}
			if late := time.Since(r.jobs.job(id).LeaseUntil); late < 0 || late > time.Second {
				t.Fatalf("job %d was queued %v after its deadline", id, late)
			}
		}
		if r.jobs.job(0).State != store.Leased {
			t.Fatal("a live lease was ended")
		}
		if d := <-woken; d != "agent" {
			t.Fatalf("woke %q", d)
		}
	})
}

// TestP4AfterAStall: the whole process stood still beyond the deadline of its own
// worker. The worker renews, and the sweep lets it.
func TestP4AfterAStallTheSweepWaitsOneRenewal(t *testing.T) {
	t.Parallel()
	for name, leap := range map[string]bool{"the process was stopped": false, "the machine slept: only the wall clock moved": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64 // of the wall clock
			var sends atomic.Int32
			o := Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
			run(t, o, []Lane{{Name: "app", Sender: lasting(10*time.Minute, &sends)}}, func(t *testing.T, r rig) {
				r.add(1, "app")
				after(15500 * time.Millisecond)
				if leap {
					ahead.Store(int64(2 * time.Minute))
				} else { // every goroutine of the queue hangs in the store
					gate := make(chan struct{})
					r.jobs.block("NextDeadline", gate)
					r.jobs.block("Renew", gate)
					after(2 * time.Minute)
					close(gate)
				}
				after(time.Minute)
				if j := r.jobs.job(1); j.interrupted != 0 || sends.Load() != 1 {
					t.Fatalf("the sweep took the job from its living worker: %+v", j)
				}
				// A worker that died in the stall is found out all the same.
				r.jobs.add(2, "gone")
				leased(t, r, r.Watched(), "pull/w", "gone", time.Second)
				after(3 * time.Second)
				if j := r.jobs.job(2); ahead.Load() == 0 && j.State != store.Queued {
					t.Fatalf("a dead worker's lease lives on: %+v", j)
				}
			})
		})
	}
}

func TestP4ALeaseThatRanOutWhileNobodyWatchedGetsOneRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		jobs := newShelf()
		jobs.add(1, "agent")
		l := leased(t, rig{}, jobs, "pull/w", "agent", time.Minute)
		jobs.add(2, "agent")
		leased(t, rig{}, jobs, "pull/dead", "agent", time.Minute)
		time.Sleep(2 * time.Minute) // acuse was down
		q := New(Options{Jobs: jobs, Log: discard})
		q.SetLanes([]Lane{{Name: "agent"}})
		begin(t, q)
		after(10 * time.Second)
		if err := jobs.Renew(t.Context(), l.Job, l.Token, time.Now().Add(time.Minute)); err != nil {
			t.Fatalf("the living worker's renewal: %v", err)
		}
		after(12 * time.Second)
		if jobs.job(1).State != store.Leased || jobs.job(2).State != store.Queued {
			t.Fatalf("living %+v, dead %+v", jobs.job(1).State, jobs.job(2).State)
		}
	})
}

// TestP8 keeps a 200 through a full disk: the outcome is written when it can be,
// and the job is not sent again.
func TestP8ADeliveredJobIsNotForgottenBecauseOfAFullDisk(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32
	run(t, Options{}, []Lane{{Name: "app", Sender: lasting(time.Second, &sends)}}, func(t *testing.T, r rig) {
		r.add(1, "app")
		after(500 * time.Millisecond)
		r.jobs.setFail(func(op string) error {
			if op == "Settle" || op == "Renew" || op == "Lease" {
				return store.ErrUnavailable
			}
			return nil // reads work, and so does the sweep: the job must not be taken from its worker
		})
		after(10 * time.Minute) // far beyond the lease
		if n := r.jobs.count("Settle"); n > 400 {
			t.Fatalf("%d settlements tried in 10 min", n)
		}
		r.jobs.setFail(nil)
		after(10 * time.Second)
		if j := r.jobs.job(1); j.State != store.Delivered || sends.Load() != 1 || j.interrupted != 0 {
			t.Fatalf("%d sends, %+v", sends.Load(), j)
		}
	})
}

func TestARefusedSettlementIsWrittenWithoutTheAnswer(t *testing.T) {
	t.Parallel()
	app := sender(func(context.Context, store.Lease) store.Result {
		return store.Result{Outcome: store.Succeeded, Status: 200, Body: []byte("x")}
	})
	jobs := picky{newShelf()}
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Jobs: jobs, Log: discard})
		q.SetLanes([]Lane{{Name: "app", Sender: app}})
		begin(t, q)
		jobs.add(1, "app")
		q.Wake([]string{"app"})
		synctest.Wait()
		if j := jobs.job(1); j.State != store.Delivered {
			t.Fatalf("got %+v", j)
		}
	})
}

// picky refuses settlements with a body.
type picky struct{ *shelf }

func (p picky) Settle(ctx context.Context, s store.Settlement) error {
	if s.Result.Body != nil {
		return store.ErrRefused
	}
	return p.shelf.Settle(ctx, s)
}

func TestStopWaitsForSendsAndWorkEndsThem(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32
	lanes := []Lane{{Name: "app", Sender: lasting(20*time.Second, &sends), Concurrency: 1}}
	t.Run("stop alone lets a send end, and leases nothing more", func(t *testing.T) {
		run(t, Options{}, lanes, func(t *testing.T, r rig) {
			r.add(1, "app")
			r.add(2, "app")
			after(time.Second)
			r.halt()
			if r.jobs.job(1).State != store.Delivered || r.jobs.job(2).State != store.Queued {
				t.Fatalf("got %+v, %+v", r.jobs.job(1).State, r.jobs.job(2).State)
			}
		})
	})
	t.Run("the end of work leaves the lease to the next start", func(t *testing.T) {
		run(t, Options{}, lanes, func(t *testing.T, r rig) {
			r.add(1, "app")
			after(time.Second)
			r.kill()
			r.halt()
			if j := r.jobs.job(1); j.State != store.Leased || len(j.settlements) != 0 {
				t.Fatalf("got %+v", j)
			}
			// What the next run of the same node does with it.
			if n, err := r.jobs.EndLeases(t.Context(), "node/", time.Now()); n != 1 || err != nil {
				t.Fatalf("%d leases ended, %v", n, err)
			}
		})
	})
	t.Run("an answer that came as work ended is written", func(t *testing.T) {
		stubbornApp := sender(func(ctx context.Context, l store.Lease) store.Result {
			<-ctx.Done()
			return answers(200)(ctx, l)
		})
		run(t, Options{}, []Lane{{Name: "app", Sender: stubbornApp}}, func(t *testing.T, r rig) {
			r.add(1, "app")
			after(time.Second)
			r.kill()
			r.halt()
			if j := r.jobs.job(1); j.State != store.Delivered {
				t.Fatalf("got %+v", j)
			}
		})
	})
}

func TestAPanicInASenderIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	boom := sender(func(context.Context, store.Lease) store.Result { panic("case-SECRET-BODY") })
	run(t, Options{}, []Lane{{Name: "app", Sender: boom}}, func(t *testing.T, r rig) {
		r.add(1, "app")
		after(time.Second)
		j := r.jobs.job(1)
		if j.State != store.Queued || len(j.settlements) != 1 || j.settlements[0].Result.Class != "panic" || j.settlements[0].Result.Outcome != store.Failed {
			t.Fatalf("got %+v", j)
		}
	})
}

func TestAJobOverItsBudgetIsNotSent(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32
	run(t, Options{}, nil, func(t *testing.T, r rig) {
		jobs := generous{r.jobs}
		q := New(Options{Jobs: jobs, Log: discard})
		q.SetLanes([]Lane{{Name: "app", Sender: lasting(0, &sends)}})
		begin(t, q)
		r.jobs.add(1, "app")
		q.Wake([]string{"app"})
		after(time.Second)
		if j := r.jobs.job(1); j.State != store.Dead || j.Reason != store.Exhausted || sends.Load() != 0 {
			t.Fatalf("%d sends, %+v", sends.Load(), j)
		}
	})
}

// generous leases jobs that used up their attempts.
type generous struct{ *shelf }

func (g generous) Lease(ctx context.Context, q store.LeaseQuery) ([]store.Lease, error) {
	list, err := g.shelf.Lease(ctx, q)
	for i := range list {
		list[i].Spent = q.Budget + 1
	}
	return list, err
}
