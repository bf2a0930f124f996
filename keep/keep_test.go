package keep

import (
	"fmt"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/store"
)

func deliver(t *testing.T, s store.Store, id string, at time.Time) int64 {
	t.Helper()
	n := accept(t, s, id, at)
	l := lease(t, s, at)[0]
	if err := s.Settle(t.Context(), store.Settlement{Job: l.Job, Token: l.Token, At: at, State: store.Delivered, Result: store.Result{Status: 200}}); err != nil {
		t.Fatal(err)
	}
	return n
}

func count(t *testing.T, s store.Store) int {
	t.Helper()
	list, _, err := s.Deliveries(t.Context(), store.DeliveryFilter{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestARoundRemovesWhatIsOldAndGoesOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	db, c := opened(t), &clocks{}
	clock := newClock(db, c)
	k := New(Options{Store: db, Clock: clock, Limits: func() Limits { return Limits{Age: time.Hour, DeadAge: 2 * time.Hour} }, Metrics: metrics.NewSet()})
	for i := range 50 {
		deliver(t, db, fmt.Sprint("old", i), clock.Now())
	}
	waiting := accept(t, db, "waits", clock.Now())
	c.pass(30 * time.Minute)
	deliverQueued := clock.Now()
	young := accept(t, db, "young", deliverQueued)
	k.work = minWork // several steps
	c.pass(30 * time.Minute)
	if err := k.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db); n != 2 {
		t.Fatalf("%d deliveries are left, want 2", n)
	}
	if k.cursor != waiting {
		t.Fatalf("the walk ended at %d, want %d", k.cursor, waiting)
	}
	// The one that waited is delivered now: the next rounds pass it by, the one of the next hour does not.
	for _, l := range lease(t, db, clock.Now().Add(-2*time.Minute)) {
		if err := db.Settle(t.Context(), store.Settlement{Job: l.Job, Token: l.Token, At: deliverQueued.Add(-time.Hour), State: store.Delivered, Result: store.Result{Status: 200}}); err != nil {
			t.Fatal(err)
		}
	}
	c.pass(time.Minute)
	if err := k.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db); n != 2 {
		t.Fatalf("%d deliveries are left, want 2", n)
	}
	c.pass(time.Hour)
	if err := k.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db); n != 0 {
		t.Fatalf("%d deliveries are left of #%d and #%d", n, waiting, young)
	}
	if got := k.met.deliveries.Get(); got != 52 {
		t.Fatalf("the metric says %d", got)
	}
}

func TestAKeyOutlivesAForwardStepOfTheClock(t *testing.T) {
	t.Parallel()
	db, c := opened(t), &clocks{}
	clock := newClock(db, c)
	k := New(Options{Store: db, Clock: clock, Limits: func() Limits { return Limits{Age: time.Hour} }})
	deliver(t, db, "a", clock.Now())
	c.leap(25 * 24 * time.Hour) // past its window of 7 days
	clock.Look(t.Context())
	if err := k.Round(t.Context()); err != nil || count(t, db) != 0 {
		t.Fatal(err, count(t, db))
	}
	if got := k.met.keys.Get(); got != 0 {
		t.Fatalf("%d keys went at once", got)
	}
	c.leap(-25 * 24 * time.Hour) // it was a mistake
	clock.Look(t.Context())
	out, err := db.Accept(t.Context(), store.Arrival{Source: "s", Provider: "p", ReceivedAt: clock.Now(), Events: []store.Event{{ID: "a", Window: time.Hour}}})
	if err != nil || out[0].Kind != store.Duplicate {
		t.Fatalf("a repeat: %+v %v", out, err)
	}
	c.pass(8 * 24 * time.Hour)
	if err := k.Round(t.Context()); err != nil || k.met.keys.Get() != 1 {
		t.Fatal(err, k.met.keys.Get())
	}
}

func TestStepsAdaptToHowLongTheyTake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took time.Duration
		want int64
	}{{time.Millisecond, 126}, {15 * time.Millisecond, 100}, {25 * time.Millisecond, 75}, {150 * time.Millisecond, 25}} {
		if got := adapt(100, c.took, 1, 1000); got != c.want {
			t.Errorf("after %v: %d, want %d", c.took, got, c.want)
		}
	}
	if adapt(1000, 0, 1, 1000) != 1000 || adapt(1, time.Second, 1, 1000) != 1 {
		t.Error("out of bounds")
	}
}

func TestGrowthAndTheDayItIsFull(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	two := []sampled{{t0.Add(-2 * day).Unix(), 1000}, {t0.Add(-day).Unix(), 9999}}
	for name, c := range map[string]struct {
		samples []sampled
		live    int64
		want    int64
	}{
		"over two days":            {two, 3000, 1000},
		"it shrank":                {two, 500, 0},
		"nothing known":            {nil, 500, 0},
		"too young":                {[]sampled{{t0.Add(-time.Minute).Unix(), 1}}, 500, 0},
		"an hour counts for a day": {[]sampled{{t0.Add(-time.Hour).Unix(), 0}}, 10, 240},
		"a sample of the future":   {[]sampled{{t0.Add(day).Unix(), 1}, two[0]}, 3000, 1000},
	} {
		if got := growth(c.samples, t0, c.live); got-c.want > 2 || c.want-got > 2 {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := reached(t0, 1000, 500, true); !got.Equal(t0.Add(2 * day)) {
		t.Errorf("full on %v", got)
	}
	for _, got := range []time.Time{reached(t0, 1000, 0, true), reached(t0, 1000, 500, false), reached(t0, 1<<50, 1, true)} {
		if !got.IsZero() {
			t.Errorf("full on %v, want never", got)
		}
	}
	if got := reached(t0, -5, 1, true); !got.Equal(t0) {
		t.Errorf("over already: %v", got)
	}
}

func TestFiguresAreSampledByTheHourAndReckoned(t *testing.T) {
	t.Parallel()
	db, c := opened(t), &clocks{}
	k := New(Options{Store: db, Clock: newClock(db, c), Limits: func() Limits { return Limits{Age: time.Hour, Bytes: 1 << 30} }})
	k.sample(t.Context())
	for i := range 300 {
		deliver(t, db, fmt.Sprint(i), k.opt.Clock.Now())
	}
	c.pass(30 * time.Minute)
	k.sample(t.Context()) // too early
	c.pass(90 * time.Minute)
	f, err := k.Figures(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Growth < 300*1000*12 || f.CapOn.IsZero() || f.Removable != 300 || f.Live <= 0 || f.Volume <= 0 || f.Oldest.IsZero() {
		t.Errorf("figures: %+v", f)
	}
	k.sample(t.Context())
	if list, err := k.samples(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("samples: %v %v", list, err)
	}
	c.pass(30 * time.Second)
	deliver(t, db, "more", k.opt.Clock.Now())
	if again, _ := k.Figures(t.Context()); again.At != f.At {
		t.Error("reckoned again within a minute")
	}
}
