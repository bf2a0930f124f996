package queue_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"acuse/queue"
	"acuse/queue/forward"
	"acuse/store"
	"acuse/store/sqlite"
)

// open opens a real store for the life of the test.
func open(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(context.Background(), dir, sqlite.Options{MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// accept queues an event for the destination app.
func accept(t *testing.T, db store.Inbox, id string) (delivery int64) {
	t.Helper()
	out, err := db.Accept(t.Context(), store.Arrival{
		Source: "stripe", Provider: "stripe", ReceivedAt: time.Now().UTC(), Method: "POST", Target: "/in/stripe",
		Header: store.EncodeHeader(http.Header{"Content-Type": {"application/json"}}), Body: []byte(`{"id":"` + id + `"}`),
		Events: []store.Event{{ID: id, Part: -1, Window: 7 * 24 * time.Hour, Jobs: []store.NewJob{{Destination: "app", Key: "stripe:" + id + ":app", State: store.Queued}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Delivery
}

// begin runs q until the test ends or the returned function is called.
func begin(t *testing.T, q *queue.Queue) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx, ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

var discard = slog.New(slog.DiscardHandler)

// appFunc is a Sender.
type appFunc func(context.Context, store.Lease) store.Result

func (f appFunc) Send(ctx context.Context, l store.Lease) store.Result { return f(ctx, l) }

// TestScheduleOverARealStore spends sixteen hours of backoff in fake time over
// SQLite on a disk.
func TestScheduleOverARealStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := open(t, t.TempDir())
		var times []time.Duration
		start := time.Now()
		app := appFunc(func(_ context.Context, l store.Lease) store.Result {
			times = append(times, time.Since(start))
			if l.Key != "stripe:evt_1:app" || l.Attempt != len(times) {
				t.Errorf("try %d: key %q, attempt %d", len(times), l.Key, l.Attempt)
			}
			return store.Result{Outcome: store.Failed, Status: 503, Class: "status", Error: "503 Service Unavailable"}
		})
		q := queue.New(queue.Options{Jobs: db, Log: discard, Random: func() float64 { return 0.5 }})
		q.SetLanes([]queue.Lane{{Name: "app", Sender: app}})
		end := begin(t, q)
		id := accept(t, db, "evt_1")
		q.Wake([]string{"app"})
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		end()
		at := time.Duration(0)
		for i, got := range times {
			if got.Round(10*time.Millisecond) != at {
				t.Errorf("try %d at %v, want %v", i+1, got, at)
			}
			if i < len(queue.DefaultSchedule()) {
				at += queue.DefaultSchedule()[i]
			}
		}
		d, err := db.Delivery(t.Context(), id)
		if err != nil || len(times) != 12 || d.State != store.StateDead || d.Jobs[0].Reason != store.Exhausted {
			t.Fatalf("%d tries, %+v, %v", len(times), d, err)
		}
		attempts, err := db.Attempts(t.Context(), id)
		if err != nil || len(attempts) != 12 || attempts[11].Outcome != store.Failed || attempts[11].Status != 503 {
			t.Fatalf("attempts %+v, %v", attempts, err)
		}
		db.Close()
	})
}

// TestDel07 is case del-07 end to end, over a real store and a real app: resends
// reach the app with the same key and delivery number and a higher attempt number,
// marked as resends; many clicks at once make one; a kill loses none.
func TestDel07AResendReachesTheApp(t *testing.T) {
	t.Parallel()
	type request struct{ key, delivery, attempt, resend string }
	got := make(chan request, 100)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		got <- request{r.Header.Get("Idempotency-Key"), r.Header.Get("Acuse-Delivery"), r.Header.Get("Acuse-Attempt"), r.Header.Get("Acuse-Resend")}
	}))
	defer app.Close()
	sender, err := forward.New(forward.Options{URL: app.URL})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed := make(chan int64, 1000)
	run := func(db *sqlite.DB) (q *queue.Queue, end func()) {
		q = queue.New(queue.Options{Jobs: db, Log: discard, Changed: func(d int64) { changed <- d }})
		q.SetLanes([]queue.Lane{{Name: "app", Sender: sender}})
		return q, begin(t, q)
	}
	db := open(t, dir)
	q, end := run(db)
	delivered := func() { // two changes a send: leased and settled
		<-changed
		<-changed
	}
	resend := func() (already bool) {
		r, err := db.Resend(t.Context(), store.Resend{Delivery: 1, By: store.Actor{Name: "ana"}, At: time.Now()})
		if err != nil {
			t.Error(err)
		}
		return r.AlreadyQueued
	}
	if id := accept(t, db, "evt_1"); id != 1 {
		t.Fatalf("delivery %d", id)
	}
	q.Wake([]string{"app"})
	want := request{"stripe:evt_1:app", "1", "1", ""}
	if r := <-got; r != want {
		t.Fatalf("first: %+v", r)
	}
	delivered()
	for _, n := range []string{"2", "3", "4"} {
		resend()
		q.Wake([]string{"app"})
		want.attempt, want.resend = n, "true"
		if r := <-got; r != want {
			t.Fatalf("resend: %+v, want %+v", r, want)
		}
		delivered()
	}
	end() // the clicks come while nothing works, so that all ten meet
	var wg sync.WaitGroup
	var mu sync.Mutex
	queued := 0
	for range 10 {
		wg.Go(func() {
			if !resend() {
				mu.Lock()
				queued++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if queued != 1 {
		t.Fatalf("%d of ten clicks queued a resend, want 1", queued)
	}
	db.Close()
	db = open(t, dir)
	_, end = run(db)
	want.attempt = "5"
	if r := <-got; r != want {
		t.Fatalf("after the restart: %+v, want %+v", r, want)
	}
	delivered()
	end()
	attempts, err := db.Attempts(t.Context(), 1)
	if err != nil || len(attempts) != 5 || len(got) != 0 {
		t.Fatalf("%d attempts, %d more requests, %v", len(attempts), len(got), err)
	}
}

// TestP4 leaves a send in the middle, as a kill does, and starts again.
func TestP4ARestartTakesTheJobUpAtOnceAndCountsTheAttempt(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir())
	id := accept(t, db, "evt_1")
	dead, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "node/killed/http", Max: 1, TTL: time.Hour, Now: time.Now(), Budget: 12})
	if err != nil || len(dead) != 1 {
		t.Fatalf("lease: %v, %v", dead, err)
	}
	sent := make(chan store.Lease, 1)
	settled := make(chan int64, 10)
	app := appFunc(func(_ context.Context, l store.Lease) store.Result {
		sent <- l
		return store.Result{Outcome: store.Succeeded, Status: 200}
	})
	q := queue.New(queue.Options{Jobs: db, Log: discard, Changed: func(d int64) { settled <- d }})
	q.SetLanes([]queue.Lane{{Name: "app", Sender: app}})
	end := begin(t, q)
	if l := <-sent; l.Attempt != 2 || l.Spent != 2 || l.Token <= dead[0].Token {
		t.Fatalf("lease after the restart: %+v", l)
	}
	<-settled
	<-settled
	end()
	attempts, err := db.Attempts(t.Context(), id)
	if err != nil || len(attempts) != 2 || attempts[0].Outcome != store.Interrupted || attempts[1].Outcome != store.Succeeded {
		t.Fatalf("attempts %+v, %v", attempts, err)
	}
	if err := db.Settle(t.Context(), store.Settlement{Job: dead[0].Job, Token: dead[0].Token, At: time.Now(), State: store.Dead}); err == nil {
		t.Fatal("the killed worker's settlement was taken")
	}
}
