package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"acuse/scripts/tools/load"
)

// sample is one measurement.
type sample struct {
	perSecond float64
	p50, p99  time.Duration
	failed    int
	cpu       time.Duration // of the server, a request; warm-up included in both
}

// The two kinds of client.
const (
	common = "common" // net/http, as in the figures of the budget
	lean   = "lean"   // costs a third of it, so that the server's own cost weighs more
)

// numbers gives every event of the whole run a time-ordered id of its own.
var numbers atomic.Int64

// measure sends signed events to the server of process pid on conns connections, each
// waiting for its answer, for d, after a warm-up of a quarter of d.
func measure(client, addr string, pid int, run string, conns int, d time.Duration) (sample, error) {
	before, sent := cpuTime(pid), numbers.Load()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	var failed int
	var firstErr error
	from := time.Now().Add(d / 4)
	to := from.Add(d)
	for range conns {
		wg.Go(func() {
			var c load.Poster = &load.Client{Addr: addr}
			if client == common {
				c = load.NewCommon(addr)
			}
			defer c.Close()
			took := make([]time.Duration, 0, 1<<14)
			bad := 0
			for now := time.Now(); now.Before(to); now = time.Now() {
				body := load.Body(load.EventID(run, numbers.Add(1)), now)
				start := time.Now()
				status, answer, err := c.Post("/in/load", body, now)
				end := time.Now()
				switch {
				case err != nil || status != 200:
					bad++
					mu.Lock()
					if firstErr == nil {
						firstErr = fmt.Errorf("status %d %s: %w", status, answer, err)
					}
					mu.Unlock()
				case start.After(from) && end.Before(to):
					took = append(took, end.Sub(start))
				}
			}
			mu.Lock()
			all, failed = append(all, took...), failed+bad
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(all) == 0 {
		return sample{}, fmt.Errorf("no request answered: %w", firstErr)
	}
	slices.Sort(all)
	return sample{
		cpu:       (cpuTime(pid) - before) / time.Duration(max(1, numbers.Load()-sent)),
		perSecond: float64(len(all)) / d.Seconds(),
		p50:       all[len(all)/2], p99: all[len(all)*99/100],
		failed: failed,
	}, nil
}

// cpuTime is what a process has used so far, user and system; the kernel counts in
// hundredths of a second.
func cpuTime(pid int) time.Duration {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident reads the resident memory of a process, now and at its highest.
func resident(pid int) (now, peak string) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return "unknown", "unknown"
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			now = megabytes(value)
		case "VmHWM":
			peak = megabytes(value)
		}
	}
	return now, peak
}

func megabytes(kb string) string {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(kb), " kB"))
	if err != nil {
		return kb
	}
	return fmt.Sprintf("%.0f MB", float64(n)/1024)
}

func median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}
