package keep

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"acuse/store"
)

// TestDUR05 is the case dur-05 in small: while the retention removes half of the archive,
// what comes in is accepted and what a person resends is queued; none waits in vain and
// none is told that the store is busy. The figures of the case are scripts/million's.
func TestDUR05(t *testing.T) {
	t.Parallel()
	db, c := opened(t), &clocks{}
	clock := newClock(db, c)
	k := New(Options{Store: db, Clock: clock, Limits: func() Limits { return Limits{Age: time.Hour, DeadAge: time.Hour} }})
	const old = 1200
	for i := range old {
		deliver(t, db, fmt.Sprint("old", i), clock.Now())
	}
	c.pass(61 * time.Minute)
	var young []int64
	for i := range 200 {
		young = append(young, deliver(t, db, fmt.Sprint("young", i), clock.Now()))
	}
	k.work = minWork
	var accepted, resent atomic.Int64
	purged := make(chan error, 1)
	go func() { purged <- k.Round(t.Context()) }()
	var wg sync.WaitGroup
	for client := range 16 {
		wg.Go(func() {
			for i := range 20 {
				accept(t, db, fmt.Sprint("new", client, "-", i), clock.Now())
				accepted.Add(1)
			}
		})
	}
	for _, id := range young {
		wg.Go(func() {
			if _, err := db.Resend(t.Context(), store.Resend{Delivery: id, By: store.Actor{Name: "ana"}, At: clock.Now()}); err != nil {
				t.Error(err)
				return
			}
			resent.Add(1)
		})
	}
	wg.Wait()
	if err := <-purged; err != nil {
		t.Fatal(err)
	}
	if got := k.met.deliveries.Get(); got != old {
		t.Errorf("%d deliveries were removed, want %d", got, old)
	}
	totals, err := db.Totals(t.Context())
	if err != nil || accepted.Load() != 320 || resent.Load() != 200 || totals.Queued != 520 {
		t.Errorf("accepted %d, resent %d, %+v, %v", accepted.Load(), resent.Load(), totals, err)
	}
	if problems, err := db.Check(t.Context(), true); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
