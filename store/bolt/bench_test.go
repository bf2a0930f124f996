package bolt

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"acuse/store"
)

// benchArrival is a signed body of 1.5 KB with the usual headers and a time-ordered id.
func benchArrival(n int64, body, header []byte) store.Arrival {
	id := fmt.Sprintf("evt_%013d%06d", t0.UnixMilli()+n/10, n)
	return store.Arrival{
		Source: "stripe", Provider: "stripe", ReceivedAt: t0.Add(time.Duration(n) * time.Millisecond), Remote: "203.0.113.7", Method: "POST", Target: "/in/stripe",
		Header: header, Body: body, Slot: 1, AckMicros: 200,
		Events: []store.Event{{ID: id, Type: "invoice.paid", Resource: "in_1NZ2aBcDeFgHiJkL", Part: -1, Size: len(body), Digest: n, Window: 7 * 24 * time.Hour,
			Jobs: []store.NewJob{{Destination: "app", Key: "stripe:" + id + ":app", State: store.Queued}}}},
	}
}

func benchBytes() (body, header []byte) {
	return bytes.Repeat([]byte(`{"k":"value 1"},`), 96), append(bytes.Repeat([]byte(`"X-Header":["some value"],`), 23), "\"A\":[]}"...)
}

// many runs f(n) from conns goroutines until b.N calls were made, and reports events a
// commit.
func many(b *testing.B, db *DB, conns int, f func(n int64)) {
	before, used := db.Health(), cpu(b)
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				f(n)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpu(b)-used).Microseconds())/float64(b.N), "cpu-µs/op")
	h := db.Health()
	if commits := h.Commits - before.Commits; commits > 0 {
		b.ReportMetric(float64(b.N)/float64(commits), "events/commit")
	}
}

// cpu is what the process has used: a busy machine moves it less than the clock.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkAccept(b *testing.B) {
	for _, conns := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(conns), func(b *testing.B) {
			db := opened(b, b.TempDir(), Options{})
			body, header := benchBytes()
			many(b, db, conns, func(n int64) {
				if _, err := db.Accept(b.Context(), benchArrival(n, body, header)); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// BenchmarkDeliver counts one event as accepted, leased and settled: 64 senders, 16
// workers, at most 1 000 events waiting.
func BenchmarkDeliver(b *testing.B) {
	db := opened(b, b.TempDir(), Options{})
	body, header := benchBytes()
	var delivered atomic.Int64
	waiting := make(chan struct{}, 1000)
	var workers sync.WaitGroup
	result := store.Result{Outcome: store.Succeeded, Status: 200, Duration: time.Millisecond, Header: []byte(`{"Content-Length":["2"]}`), Body: []byte("ok")}
	work := func() {
		for delivered.Load() < int64(b.N) {
			list, err := db.Lease(b.Context(), store.LeaseQuery{Destination: "app", Owner: "n1/run1/http", Max: 4, TTL: time.Minute, Now: t0.Add(time.Hour * 1000)})
			if err != nil {
				b.Error(err)
				return
			}
			for _, l := range list {
				if err := db.Settle(b.Context(), store.Settlement{Job: l.Job, Token: l.Token, At: t0, State: store.Delivered, Result: result}); err != nil {
					b.Error(err)
				}
				<-waiting
			}
			delivered.Add(int64(len(list)))
		}
	}
	for range 16 {
		workers.Go(work)
	}
	many(b, db, 64, func(n int64) {
		waiting <- struct{}{}
		if _, err := db.Accept(b.Context(), benchArrival(n, body, header)); err != nil {
			b.Error(err)
		}
	})
	b.StartTimer()
	workers.Wait()
	b.StopTimer()
}
