package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"acuse/queue"
	"acuse/store"
	"acuse/store/bolt"
)

// outageApp is an app that goes down and comes back: connections are refused, then it answers
// 503, then it is too slow. One event kills it whenever it comes.
type outageApp struct {
	mu         sync.Mutex
	start      time.Time
	poison     string
	open, most int
	burned     int // attempts that failed while it was down
	delivered  map[string]int
	last       time.Time // of the last delivery
	took       time.Duration
}

const downFor = 120 * time.Second

func (a *outageApp) Send(ctx context.Context, l store.Lease) store.Result {
	a.mu.Lock()
	a.open++
	a.most = max(a.most, a.open)
	since := time.Since(a.start)
	down := since < downFor
	if down && l.Delivery.EventID != a.poison {
		a.burned++
	}
	a.mu.Unlock()
	res := a.answer(ctx, since, l.Delivery.EventID == a.poison)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	if res.Outcome == store.Succeeded {
		a.delivered[l.Delivery.EventID]++
		a.last = time.Now()
	}
	return res
}

func (a *outageApp) answer(ctx context.Context, since time.Duration, poison bool) store.Result {
	failed := func(status int, class string) store.Result {
		return store.Result{Outcome: store.Failed, Status: status, Class: class, Error: class}
	}
	switch {
	case poison:
		return failed(0, "reset")
	case since < downFor/3:
		return failed(0, "refused")
	case since < 2*downFor/3:
		return failed(503, "status")
	case since < downFor:
		select {
		case <-time.After(30 * time.Second):
			return failed(0, "timeout")
		case <-ctx.Done():
			return failed(0, "cancelled")
		}
	}
	time.Sleep(a.took)
	return store.Result{Outcome: store.Succeeded, Status: 200}
}

// TestOutage lets 2 000 jobs meet an app that is down for two minutes, restarts acuse
// meanwhile, and counts: every event but the poisonous one is delivered, once, soon after the
// app is back and never too many at a time; and no attempt was burned that was no probe.
func TestOutage(t *testing.T) {
	t.Parallel()
	engines := map[string]func(*testing.T, string) store.Store{
		"sqlite": func(t *testing.T, dir string) store.Store { return open(t, dir) },
		"bbolt": func(t *testing.T, dir string) store.Store {
			db, err := bolt.Open(context.Background(), dir, bolt.Options{MinFree: -1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			return db
		},
	}
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { outage(t, open, dir) })
		})
	}
}

func outage(t *testing.T, open func(*testing.T, string) store.Store, dir string) {
	const jobs, concurrency = 2000, 5
	db := open(t, dir)
	app := &outageApp{poison: "evt_7", delivered: map[string]int{}, took: 200 * time.Millisecond}
	other := &outageApp{delivered: map[string]int{}, start: time.Now().Add(-time.Hour)}
	run := func() (q *queue.Queue, end func()) {
		q = queue.New(queue.Options{Jobs: db, Standings: db, Node: "n", Log: discard})
		q.SetLanes([]queue.Lane{{Name: "app", Sender: app, Concurrency: concurrency}, {Name: "crm", Sender: other}})
		return q, begin(t, q)
	}
	for from := 0; from < jobs; from += 100 {
		a := store.Arrival{Source: "s", Provider: "stripe", ReceivedAt: time.Now().UTC(), Method: "POST", Target: "/in/s", Header: []byte("{}"), Body: []byte("{}")}
		for i := from; i < from+100; i++ {
			id := fmt.Sprintf("evt_%d", i)
			a.Events = append(a.Events, store.Event{ID: id, Part: i - from, Window: time.Hour, Jobs: []store.NewJob{{Destination: "app", Key: "s:" + id + ":app", State: store.Queued}}})
		}
		if _, err := db.Accept(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	app.start = time.Now()
	q, end := run()
	time.Sleep(50 * time.Second)
	before, _ := q.Status("app")
	end()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, dir)
	q, end = run()
	synctest.Wait()
	after, _ := q.Status("app")
	if before.Down.IsZero() || !after.Down.Equal(before.Down) || after.Probes < before.Probes {
		t.Fatalf("the restart forgot the outage: %+v, before %+v", after, before)
	}
	time.Sleep(60 * time.Second)
	if s, _ := q.Status("app"); s.Down.IsZero() {
		t.Fatal("not seen as down")
	}
	// What goes elsewhere is not slowed.
	at := time.Now()
	if _, err := db.Accept(t.Context(), store.Arrival{Source: "s", Provider: "stripe", ReceivedAt: at.UTC(), Method: "POST", Target: "/in/s", Header: []byte("{}"), Body: []byte("{}"),
		Events: []store.Event{{ID: "other", Part: -1, Window: time.Hour, Jobs: []store.NewJob{{Destination: "crm", Key: "s:other:crm", State: store.Queued}}}}}); err != nil {
		t.Fatal(err)
	}
	q.Wake([]string{"crm"})
	synctest.Wait()
	if other.delivered["other"] != 1 || time.Since(at) > time.Second {
		t.Fatalf("another destination waits: %v", other.delivered)
	}
	time.Sleep(15 * time.Minute)
	synctest.Wait()
	end()

	app.mu.Lock()
	defer app.mu.Unlock()
	for i := range jobs {
		id := fmt.Sprintf("evt_%d", i)
		if n := app.delivered[id]; n != 1 && id != app.poison || n != 0 && id == app.poison {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
	// Before the breaker can know, the row of five and what was under way with it is lost.
	// Then 5, 10, 20, 40 and 60 s pass between probes.
	const opening, probes = 5 + concurrency - 1, 6
	if app.burned > opening+probes {
		t.Errorf("%d attempts were burned while down, want at most %d and %d probes", app.burned, opening, probes)
	}
	if app.most > concurrency {
		t.Errorf("%d requests were open at a time, want at most %d", app.most, concurrency)
	}
	back := app.last.Sub(app.start.Add(downFor))
	if back > 10*time.Minute {
		t.Errorf("all were through %v after the app was back", back)
	}
	t.Logf("%d jobs; %d attempts burned while down; at most %d open; all through %v after the app was back, %v in all",
		jobs, app.burned, app.most, back.Round(time.Second), app.last.Sub(app.start).Round(time.Second))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
