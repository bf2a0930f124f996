package keep

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"acuse/store"
	"acuse/store/sqlite"
)

var t0 = time.UnixMilli(1767225600123).UTC()

// clocks are a wall clock that can be set and a monotonic one that cannot.
type clocks struct {
	mono atomic.Int64 // since t0
	set  atomic.Int64 // by how much the wall clock was set
}

func (c *clocks) pass(d time.Duration) { c.mono.Add(int64(d)) }
func (c *clocks) leap(d time.Duration) { c.set.Add(int64(d)) }
func (c *clocks) Mono() time.Duration  { return time.Duration(c.mono.Load()) }
func (c *clocks) Wall() time.Time {
	return t0.Add(time.Duration(c.mono.Load() + c.set.Load()))
}

func opened(t *testing.T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(context.WithoutCancel(t.Context()), t.TempDir(), sqlite.Options{MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newClock(s store.Clock, c *clocks) *Clock {
	return NewClock(ClockOptions{Shifter: s, Wall: c.Wall, Mono: c.Mono})
}

func accept(t *testing.T, s store.Store, id string, at time.Time) int64 {
	t.Helper()
	out, err := s.Accept(t.Context(), store.Arrival{Source: "s", Provider: "p", ReceivedAt: at, Method: "POST", Target: "/in/s", Header: []byte(`{}`), Body: make([]byte, 1000),
		Events: []store.Event{{ID: id, Part: -1, Size: 1000, Window: 7 * 24 * time.Hour, Jobs: []store.NewJob{{Destination: "app", Key: id, State: store.Queued}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Delivery
}

func lease(t *testing.T, s store.Store, now time.Time) []store.Lease {
	t.Helper()
	list, err := s.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "n/r/http", Max: 100, TTL: time.Minute, Now: now, MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// steps are what the clock of a machine does at worst: summer time by hand, a day off, a
// Pi that boots in 1970 and learns the time later, or forgets it.
var steps = map[string]time.Duration{
	"2 h ahead": 2 * time.Hour, "2 h back": -2 * time.Hour, "25 h ahead": 25 * time.Hour, "25 h back": -25 * time.Hour,
	"from 1970 to now": 56 * 365 * 24 * time.Hour, "from now to 1970": t0.Sub(t0) - t0.Sub(time.Unix(30, 0)),
}

func TestWaitsStayAsLongAsTheyWereWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	for name, by := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, c := opened(t), &clocks{}
			clock := newClock(db, c)
			accept(t, db, "waits", clock.Now())
			l := lease(t, db, clock.Now())[0]
			if err := db.Settle(t.Context(), store.Settlement{Job: l.Job, Token: l.Token, At: clock.Now(), State: store.Queued, Due: clock.Now().Add(10 * time.Minute)}); err != nil {
				t.Fatal(err)
			}
			accept(t, db, "leased", clock.Now())
			held := lease(t, db, clock.Now())[0] // for a minute

			c.pass(30 * time.Second)
			c.leap(by)
			before := clock.Now() // nobody looked yet: the old time goes on
			if want := t0.Add(30 * time.Second); !before.Equal(want) {
				t.Fatalf("between the step and the shift it is %v, want %v", before, want)
			}
			accept(t, db, "between", before) // written in the old time, and shifted with the rest
			clock.Look(t.Context())
			if got := clock.Now(); !got.Equal(c.Wall()) {
				t.Fatalf("after the shift it is %v, the wall clock says %v", got, c.Wall())
			}
			if got := lease(t, db, clock.Now()); len(got) != 1 || got[0].Delivery.EventID != "between" {
				t.Fatalf("leased %d jobs at once, want the one that was due", len(got))
			}
			c.pass(29 * time.Second)
			if ran, err := db.Expire(t.Context(), clock.Now()); err != nil || len(ran) > 0 {
				t.Fatalf("a second before its deadline: %v %v", ran, err)
			}
			c.pass(2 * time.Second)
			if ran, err := db.Expire(t.Context(), clock.Now()); err != nil || ran["app"] != 1 {
				t.Fatalf("a second after its deadline: %v %v", ran, err)
			}
			if got := lease(t, db, clock.Now()); len(got) != 1 || got[0].Job != held.Job {
				t.Fatalf("leased %d jobs, want the one whose lease ran out", len(got))
			}
			c.pass(9*time.Minute - 2*time.Second)
			if got := lease(t, db, clock.Now()); len(got) != 0 {
				t.Fatal("a wait was cut short")
			}
			c.pass(2 * time.Second)
			if got := lease(t, db, clock.Now()); len(got) != 1 || got[0].Delivery.EventID != "waits" {
				t.Fatalf("a wait was drawn out: %d jobs", len(got))
			}
		})
	}
}

func TestASmallDifferenceIsFollowedAndShiftsNothing(t *testing.T) {
	t.Parallel()
	s, c := &shifts{}, &clocks{}
	clock := newClock(s, c)
	for range 100 {
		c.pass(time.Second)
		c.leap(29 * time.Second)
		clock.Look(t.Context())
		if !clock.Now().Equal(c.Wall()) || !clock.KeysMayGo() {
			t.Fatal("not followed")
		}
	}
	if len(s.by) != 0 {
		t.Fatalf("shifted by %v", s.by)
	}
}

// TestNoKeyGoesForAnHourAfterAForwardStep, whereas a step back makes none expire.
func TestNoKeyGoesForAnHourAfterAForwardStep(t *testing.T) {
	t.Parallel()
	for name, by := range steps {
		s, c := &shifts{}, &clocks{}
		clock := newClock(s, c)
		c.leap(by)
		clock.Look(t.Context())
		if got, want := clock.KeysMayGo(), by < 0; got != want {
			t.Errorf("%s: keys may go at once: %v", name, got)
		}
		c.pass(time.Hour - time.Millisecond)
		if got, want := clock.KeysMayGo(), by < 0; got != want {
			t.Errorf("%s: keys may go within the hour: %v", name, got)
		}
		c.pass(time.Millisecond)
		if !clock.KeysMayGo() {
			t.Errorf("%s: keys may not go after an hour", name)
		}
	}
}

// shifts notes the shifts, or refuses them.
type shifts struct {
	by   []time.Duration
	sick bool
}

func (s *shifts) Shift(_ context.Context, _ time.Time, d time.Duration) error {
	if s.sick {
		return store.ErrUnavailable
	}
	s.by = append(s.by, d)
	return nil
}

func TestWhileNothingCanBeWrittenTheOldTimeGoesOn(t *testing.T) {
	t.Parallel()
	s, c := &shifts{sick: true}, &clocks{}
	told := 0
	clock := NewClock(ClockOptions{Shifter: s, Wall: c.Wall, Mono: c.Mono, Stepped: func(time.Duration) { told++ }})
	c.leap(2 * time.Hour)
	for range 3 {
		c.pass(time.Second)
		clock.Look(t.Context())
	}
	if want := t0.Add(3 * time.Second); !clock.Now().Equal(want) {
		t.Fatalf("it is %v, want %v", clock.Now(), want)
	}
	s.sick = false
	c.leap(time.Hour) // set once more before it could be followed
	clock.Look(t.Context())
	clock.Look(t.Context())
	if len(s.by) != 1 || s.by[0] != 3*time.Hour || told != 1 {
		t.Fatalf("shifted by %v, told %d times", s.by, told)
	}
	if !clock.Now().Equal(c.Wall()) {
		t.Fatal("not followed")
	}
}
