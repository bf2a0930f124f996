package queue_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"acuse/queue"
	"acuse/store"
	"acuse/store/bolt"
	"acuse/store/sqlite"
)

// How much the order test does. scripts/order asks for the whole.
var (
	orderValues = flag.Int("order.values", 20, "resources of the order test")
	orderEvents = flag.Int("order.events", 10, "events of each")
)

// TestOrderHoldsUnderFailures: events of many resources, 16 workers, failures by chance and
// some events that the app refuses for good. Per resource they arrive one at a time and in
// their order; the resources do not wait for each other. In a strict order nothing passes
// what was refused until a person resends it, which puts it at the end.
func TestOrderHoldsUnderFailures(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "bbolt"} {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s strict=%v", engine, strict), func(t *testing.T) {
				t.Parallel()
				o := &orderRun{t: t, strict: strict, s: orderStore(t, engine), want: map[string][]int64{}, died: map[int64]bool{},
					taken: map[string][]int64{}, busy: map[string]bool{}, gone: map[int64]bool{}}
				o.run()
			})
		}
	}
}

func orderStore(t *testing.T, engine string) store.Store {
	t.Helper()
	var s store.Store
	var err error
	if engine == "bbolt" {
		s, err = bolt.Open(context.Background(), t.TempDir(), bolt.Options{MinFree: -1})
	} else {
		s, err = sqlite.Open(context.Background(), t.TempDir(), sqlite.Options{MinFree: -1})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

const (
	orderWorkers = 16
	refused      = 23 // every so many a delivery is refused for good, once
)

// orderRun is one run and the app in it.
type orderRun struct {
	t      *testing.T
	s      store.Store
	strict bool

	pending, want map[string][]int64 // by resource: what waits, what the app is to take in this order
	died          map[int64]bool

	mu    sync.Mutex
	taken map[string][]int64 // by resource: deliveries in the order in which the app took them
	busy  map[string]bool    // resources being worked on
	gone  map[int64]bool     // deliveries it has refused
	most  int                // worked on at the same time
	sends int
}

// Send is the app: it fails one send in five, and refuses every 23rd delivery once.
func (o *orderRun) Send(_ context.Context, l store.Lease) store.Result {
	value := l.Delivery.Resource
	o.mu.Lock()
	o.sends++
	if o.busy[value] {
		o.t.Errorf("two jobs of %s at the same time", value)
	}
	o.busy[value] = true
	o.most = max(o.most, len(o.busy))
	o.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond) // the app's work: the workers overlap in it
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.busy, value)
	switch {
	case l.Delivery.ID%refused == 0 && !o.gone[l.Delivery.ID]:
		o.gone[l.Delivery.ID] = true
		return store.Result{Outcome: store.Failed, Status: 410, Class: "status"}
	case rand.IntN(5) == 0:
		return store.Result{Outcome: store.Failed, Status: 500, Class: "status"}
	}
	o.taken[value] = append(o.taken[value], l.Delivery.ID)
	return store.Result{Outcome: store.Succeeded, Status: 200}
}

func (o *orderRun) run() {
	t := o.t
	o.pending = o.accept()
	schedule := slices.Repeat([]time.Duration{5 * time.Millisecond}, 60)
	q := queue.New(queue.Options{Jobs: o.s, Log: discard})
	q.SetLanes([]queue.Lane{{Name: "app", Sender: o, Concurrency: orderWorkers, Retry: queue.Retry{Schedule: schedule, Jitter: -1}}})
	began := time.Now()
	end := begin(t, q)
	resent := 0
	for dead := o.foresee(); ; dead = o.foresee() {
		o.until(int64(len(dead)))
		if len(dead) == 0 {
			break
		}
		for _, d := range dead { // a person resends what was refused: it goes to the end
			if _, err := o.s.Resend(t.Context(), store.Resend{Delivery: d.id, By: store.Actor{Name: "ana"}, At: time.Now()}); err != nil {
				t.Fatal(err)
			}
			o.pending[d.value] = append(o.pending[d.value], d.id)
			resent++
		}
		q.Wake([]string{"app"})
	}
	took := time.Since(began)
	end()
	if o.most < min(orderWorkers, *orderValues)/2 {
		t.Errorf("at most %d resources were worked on at the same time", o.most)
	}
	t.Logf("%d resources × %d events, %d sends, %d of %d workers at once, %d dead letters resent: %v, %.0f events/s", *orderValues, *orderEvents,
		o.sends, o.most, orderWorkers, resent, took.Round(time.Millisecond), float64(*orderValues**orderEvents)/took.Seconds())
}

// one is a delivery with its resource.
type one struct {
	value string
	id    int64
}

// foresee works out what the app takes until nothing more can be sent: what is refused is
// left out, and in a strict order nothing passes it. It returns what is dead then.
func (o *orderRun) foresee() (dead []one) {
	for value, ids := range o.pending {
		for len(ids) > 0 {
			id := ids[0]
			ids = ids[1:]
			if id%refused == 0 && !o.died[id] {
				o.died[id] = true
				if dead = append(dead, one{value, id}); o.strict {
					break
				}
				continue
			}
			o.want[value] = append(o.want[value], id)
		}
		o.pending[value] = ids
	}
	slices.SortFunc(dead, func(a, b one) int { return int(a.id - b.id) })
	return dead
}

// accept queues the events, the resources mixed, and returns the deliveries by resource.
func (o *orderRun) accept() map[string][]int64 {
	all := map[string][]int64{}
	for i := range *orderEvents {
		a := store.Arrival{Source: "s", Provider: "stripe", ReceivedAt: time.Now().UTC(), Method: "POST", Target: "/in/s", Header: []byte("{}"), Body: []byte("{}")}
		for _, v := range rand.Perm(*orderValues) {
			value := fmt.Sprint("cus_", v)
			id := fmt.Sprint(value, "_", i)
			a.Events = append(a.Events, store.Event{ID: id, Resource: value, Part: len(a.Events), Window: time.Hour,
				Jobs: []store.NewJob{{Destination: "app", Key: id, State: store.Queued, Order: value, Strict: o.strict}}})
		}
		out, err := o.s.Accept(o.t.Context(), a)
		if err != nil {
			o.t.Fatal(err)
		}
		for k, one := range out {
			all[a.Events[k].Resource] = append(all[a.Events[k].Resource], one.Delivery)
		}
	}
	return all
}

// until waits until the app has taken as many as foreseen and everything is settled, and
// compares what it took, and in which order.
func (o *orderRun) until(dead int64) {
	o.t.Helper()
	count := func(m map[string][]int64) (n int) {
		for _, list := range m {
			n += len(list)
		}
		return n
	}
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		o.mu.Lock()
		taken := count(o.taken)
		o.mu.Unlock()
		n, err := o.s.Totals(o.t.Context())
		if err != nil {
			o.t.Fatal(err)
		}
		if taken >= count(o.want) && n.Leased == 0 && n.Dead == dead {
			break
		}
		if time.Now().After(end) {
			o.t.Fatalf("after 5 minutes the app took %d of %d, %d are dead, not %d", taken, count(o.want), n.Dead, dead)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for value, want := range o.want {
		if !slices.Equal(o.taken[value], want) {
			o.t.Errorf("%s: took %v, want %v", value, o.taken[value], want)
		}
	}
}
