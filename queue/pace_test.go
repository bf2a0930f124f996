package queue

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"acuse/store"
)

// try is one attempt in the tables below.
type try struct {
	job    int64
	status int // 0: refused
}

func (x try) result() store.Result {
	switch {
	case x.status == 0:
		return store.Result{Outcome: store.Failed, Class: "refused", Error: "connection refused"}
	case x.status/100 == 2:
		return store.Result{Outcome: store.Succeeded, Status: x.status}
	}
	return store.Result{Outcome: store.Failed, Status: x.status, Class: "status", Error: fmt.Sprint(x.status)}
}

func TestWhenTheBreakerOpens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		tries string // job:status …; 0 is refused
		opens int    // after so many of them; 0: never
	}{
		{"five failures in a row of three jobs", "1:0 2:503 3:502 1:504 2:429", 5},
		{"the third job comes late", "1:0 1:0 1:0 1:0 2:0 2:0 3:0 4:0", 7},
		{"one poisonous event alone", "1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0 1:0", 0},
		{"two poisonous events", "1:0 2:503 1:0 2:503 1:0 2:503 1:0 2:503", 0},
		{"a poisonous event among others", "1:0 2:200 1:0 3:200 1:0 4:200 1:0 5:200 1:0", 0},
		{"a success ends the row", "1:0 2:0 3:0 4:0 5:200 6:0 7:0 8:0 9:0", 0},
		{"so does any other answer", "1:0 2:0 3:0 4:0 5:404 6:0 7:0 8:0 9:0", 0},
		{"a 500 is no outage", "1:500 2:500 3:500 4:500 5:500 6:500", 0},
		{"nor is a 4xx", "1:401 2:401 3:401 4:401 5:401 6:401", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var p pace
			now := time.Unix(1000, 0)
			opened := 0
			for i, word := range strings.Fields(c.tries) {
				var x try
				if _, err := fmt.Sscanf(word, "%d:%d", &x.job, &x.status); err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Second)
				p.judge(ended{job: x.job, token: int64(i + 1), result: x.result(), began: now, now: now, concurrency: 4, random: 0.5})
				if p.down() && opened == 0 {
					opened = i + 1
				}
			}
			if opened != c.opens {
				t.Fatalf("opened after %d, want %d", opened, c.opens)
			}
		})
	}
}

// opened is a pace whose breaker opened at now.
func opened(now time.Time, concurrency int) *pace {
	p := &pace{}
	for job := range int64(5) {
		p.judge(ended{job: job, token: job + 1, result: try{job, 0}.result(), began: now, now: now, concurrency: concurrency, random: 0.5})
	}
	return p
}

func TestProbesBackOffAndAnAnswerClosesTheBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := opened(now, 4)
	for i, want := range []time.Duration{5, 10, 20, 40, 60, 60, 60} {
		wait, probe := p.held(now)
		if wait != want*time.Second || !probe {
			t.Fatalf("wait %d: %v, probe %v, want %v s", i, wait, probe, want)
		}
		now = now.Add(wait)
		p.probe = int64(100 + i)
		if wait, _ := p.held(now); wait != forever {
			t.Fatalf("a second probe after %v", wait)
		}
		p.judge(ended{job: int64(50 + i), token: 7, result: try{1, 200}.result(), began: now, now: now, concurrency: 4}) // sent before
		if !p.down() {
			t.Fatal("a send of before closed the breaker")
		}
		p.judge(ended{job: int64(50 + i), token: p.probe, result: try{1, 503}.result(), began: now, now: now, concurrency: 4, random: 0.5})
	}
	if p.Probes != 7 || p.Status != 503 || p.Class != "status" {
		t.Fatalf("%+v", p.standing)
	}
	p.probe = 1000
	p.judge(ended{job: 90, token: 1000, result: try{90, 422}.result(), began: now, now: now, concurrency: 4, random: 0.5})
	if p.down() || !p.Freeing || p.sends(4) != 1 {
		t.Fatalf("after an answer: %+v", p.standing)
	}
	for _, want := range []int{2, 3, 4, 4} {
		p.judge(ended{job: 91, token: 1, result: try{91, 200}.result(), began: now, now: now, concurrency: 4})
		if p.sends(4) != want {
			t.Fatalf("slow start: %d sends, want %d", p.sends(4), want)
		}
	}
	if p.Slow {
		t.Fatal("still slow at full concurrency")
	}
}

func TestAProbeThatSaysNothingIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := opened(now, 4)
	p.probe = 9
	p.judge(ended{job: 1, token: 9, now: now.Add(time.Minute), random: 0.5})
	if wait, probe := p.held(now.Add(time.Minute)); !p.down() || wait != firstProbe || !probe {
		t.Fatalf("wait %v, %+v", wait, p.standing)
	}
}

func TestRetryAfterOfAProbeMovesTheNextUpToAnHour(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for asked, want := range map[time.Duration]time.Duration{time.Second: 10 * time.Second, 5 * time.Minute: 5 * time.Minute, 24 * time.Hour: time.Hour} {
		p := opened(now, 4)
		p.probe = 9
		r := try{1, 503}.result()
		r.RetryAfter = asked
		p.judge(ended{job: 1, token: 9, result: r, now: now, random: 0.5})
		if wait, _ := p.held(now); wait != want {
			t.Errorf("asked %v: %v, want %v", asked, wait, want)
		}
	}
}

func TestA429SlowsTheWholeLane(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var p pace
	tooMany := try{1, http.StatusTooManyRequests}.result()
	for i, want := range []int{4, 2, 1, 1} {
		p.judge(ended{job: 1, token: int64(i), result: tooMany, began: now, now: now, concurrency: 8})
		if got := p.sends(8); got != want {
			t.Fatalf("after %d: %d sends, want %d", i+1, got, want)
		}
	}
	tooMany.RetryAfter = 90 * time.Second
	if changed, _ := p.judge(ended{job: 1, token: 9, result: tooMany, began: now, now: now, concurrency: 8}); !changed {
		t.Fatal("the hold is not stored")
	}
	if wait, probe := p.held(now); wait != 90*time.Second || probe {
		t.Fatalf("held %v", wait)
	}
	if wait, _ := p.held(now.Add(91 * time.Second)); wait != 0 {
		t.Fatalf("still held %v", wait)
	}
	// Of two wishes the longer holds.
	tooMany.RetryAfter = time.Second
	p.judge(ended{job: 1, token: 10, result: tooMany, began: now, now: now, concurrency: 8})
	if wait, _ := p.held(now); wait != 90*time.Second {
		t.Fatalf("held %v", wait)
	}
}

func TestAFailureOfAnOutageThatIsOverIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := opened(now, 4)
	p.probe = 9
	p.judge(ended{job: 1, token: 9, result: try{1, 200}.result(), began: now.Add(10 * time.Second), now: now.Add(11 * time.Second), concurrency: 4})
	_, late := p.judge(ended{job: 2, token: 4, result: try{2, 0}.result(), began: now, now: now.Add(12 * time.Second), concurrency: 4})
	if !late || p.row != 0 {
		t.Fatalf("late %v, row %d", late, p.row)
	}
	_, late = p.judge(ended{job: 2, token: 5, result: try{2, 0}.result(), began: now.Add(13 * time.Second), now: now.Add(13 * time.Second), concurrency: 4})
	if late || p.row != 1 {
		t.Fatalf("a new failure: late %v, row %d", late, p.row)
	}
}

// TestWhileDownOneProbeOfEachJobInTurn counts what a lane sends while its app is down.
func TestWhileDownOneProbeOfEachJobInTurn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var jobs []int64
	open, most := 0, 0
	app := sender(func(_ context.Context, l store.Lease) store.Result {
		mu.Lock()
		jobs = append(jobs, l.Job)
		open++
		most = max(most, open)
		mu.Unlock()
		time.Sleep(time.Second)
		mu.Lock()
		open--
		mu.Unlock()
		return try{l.Job, 0}.result()
	})
	run(t, Options{}, []Lane{{Name: "app", Sender: app, Concurrency: 1}}, func(t *testing.T, r rig) {
		for id := range int64(40) {
			r.jobs.add(id, "app")
		}
		r.Wake([]string{"app"})
		counted := func() (sent []int64, atOnce int) {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(jobs), most
		}
		after(6 * time.Second)
		sent, _ := counted()
		s, _ := r.Status("app")
		if s.Down.IsZero() || len(sent) != 5 {
			t.Fatalf("%d sent, %+v", len(sent), s)
		}
		after(10 * time.Minute)
		sent, atOnce := counted()
		if n := len(sent) - 5; n < 9 || n > 14 || atOnce != 1 {
			t.Fatalf("%d probes in 10 min, %d at a time", n, atOnce)
		}
		seen := map[int64]bool{}
		for _, id := range sent[5:] {
			if seen[id] {
				t.Fatalf("job %d was probed twice: %v", id, sent)
			}
			seen[id] = true
		}
		if j := r.jobs.job(39); j.Attempts != 0 {
			t.Fatal("a waiting job lost an attempt")
		}
	})
}

func TestPauseHoldsALaneAndResumeLetsItGo(t *testing.T) {
	t.Parallel()
	n := 0
	app := sender(func(ctx context.Context, l store.Lease) store.Result {
		n++
		return answers(200)(ctx, l)
	})
	run(t, Options{}, []Lane{{Name: "app", Sender: app}, {Name: "agent"}}, func(t *testing.T, r rig) {
		for _, name := range []string{"app", "agent"} {
			if changed, err := r.Pause(t.Context(), name); !changed || err != nil {
				t.Fatal(changed, err)
			}
		}
		if changed, err := r.Pause(t.Context(), "app"); changed || err != nil {
			t.Fatal("paused twice", err)
		}
		if _, err := r.Probe(t.Context(), "app"); err != ErrPaused {
			t.Fatal(err)
		}
		if _, err := r.Pause(t.Context(), "nobody"); err != ErrNoLane {
			t.Fatal(err)
		}
		r.add(1, "app")
		r.add(2, "agent")
		after(time.Hour)
		pull := store.LeaseQuery{Destination: "agent", Owner: "pull/x", Max: 1, TTL: time.Minute, Now: time.Now()}
		if list, err := r.Watched().Lease(t.Context(), pull); n != 0 || len(list) != 0 || err != nil {
			t.Fatalf("%d sent and %d given while paused, %v", n, len(list), err)
		}
		for _, name := range []string{"app", "agent"} {
			if changed, err := r.Resume(t.Context(), name); !changed || err != nil {
				t.Fatal(changed, err)
			}
		}
		synctest.Wait()
		if list, err := r.Watched().Lease(t.Context(), pull); n != 1 || len(list) != 1 || err != nil {
			t.Fatalf("%d sent and %d given, %v", n, len(list), err)
		}
		if _, err := r.Probe(t.Context(), "app"); err != ErrNotDown {
			t.Fatal(err)
		}
	})
}
