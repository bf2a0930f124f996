package web

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestBudgetServesInOrderOfArrival(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		if !b.take(t.Context(), 8, time.Second) {
			t.Fatal("a free budget gave nothing")
		}
		order := make(chan string, 2)
		go func() {
			if b.take(t.Context(), 5, time.Minute) {
				order <- "large"
			}
		}()
		synctest.Wait()
		go func() {
			if b.take(t.Context(), 1, time.Minute) {
				order <- "small"
			}
		}()
		synctest.Wait()
		select {
		case who := <-order:
			t.Fatalf("%s was served though the large one waits", who)
		default:
		}
		b.give(8)
		synctest.Wait()
		if first, second := <-order, <-order; first == second {
			t.Fatal("one was served twice")
		}
		if b.inUse() != 6 {
			t.Errorf("in use: %d", b.inUse())
		}
	})
}

func TestBudgetGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		b.take(t.Context(), 10, 0)
		start := time.Now()
		if b.take(t.Context(), 1, time.Second) || time.Since(start) != time.Second {
			t.Errorf("gave or waited %v", time.Since(start))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if b.take(gone, 1, time.Minute) || time.Since(start) != time.Second {
			t.Error("who left still waits")
		}
		b.give(10)
		if b.inUse() != 0 || !b.take(t.Context(), 99, 0) || b.inUse() != 10 {
			t.Errorf("more than everything is everything: %d", b.inUse())
		}
		b.give(99)
		if b.inUse() != 0 {
			t.Errorf("in use at the end: %d", b.inUse())
		}
	})
}

func TestBudgetWithdrawnClaimLetsTheNextOneThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10)
		b.take(t.Context(), 6, 0)
		go b.take(t.Context(), 8, time.Second)
		synctest.Wait()
		got := make(chan bool)
		start := time.Now()
		go func() { got <- b.take(t.Context(), 2, time.Minute) }()
		if !<-got || time.Since(start) != time.Second {
			t.Errorf("the small one waited %v", time.Since(start))
		}
	})
}
