package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"acuse/scripts/tools/load"
)

type options struct {
	count, keep, clients, rate int
	store                      string
	most                       time.Duration
	hold                       bool
}

// result is what a run found.
type result struct {
	filling, shrinking   time.Duration
	before, after, limit int64 // bytes of the files, and what the retention allows
	journal              int64 // the longest seen
	longestFill, longest float64
	longestStep          string // upper bound of the histogram's highest bucket, s
	steps                float64
	purged               float64
	quiet, busy          []time.Duration // latencies without and with the retention at work
	refused              int64
	complaints           []string // log lines about a busy or locked store
}

func run(o options) (r result, err error) {
	dir, bin, done, err := load.Prepare("million", "", o.hold)
	if err != nil {
		return r, err
	}
	defer done()
	sink, err := load.NewSink()
	if err != nil {
		return r, err
	}
	defer sink.Close()
	a := &load.Acuse{Bin: bin, Dir: dir}
	if err := configure(a, o, sink.URL, 1<<40); err != nil {
		return r, err
	}
	if err := a.Start(); err != nil {
		return r, err
	}
	defer a.Kill()

	began := time.Now()
	if err := fill(a, o, sink); err != nil {
		return r, err
	}
	r.filling = time.Since(began)
	m, err := figures(a)
	if err != nil {
		return r, err
	}
	r.before, r.longestFill = int64(m["acuse_store_bytes"]-m["acuse_store_journal_bytes"]), m["acuse_store_longest_transaction_seconds"]
	r.limit = r.before * int64(o.keep) / 100
	fmt.Printf("filled: %d deliveries, %d MB, %.0f s\n", o.count, r.before/1e6, r.filling.Seconds())
	// A fresh process: its longest transaction is the retention's, or one of the steady load.
	if err := a.Stop(); err != nil {
		return r, err
	}
	if err := a.Start(); err != nil {
		return r, err
	}
	s := load.Steady{Addr: a.Public, Rate: o.rate, Prefix: "steady"}
	s.Start()
	time.Sleep(10 * time.Second)
	r.quiet = s.Cut()
	if err := configure(a, o, sink.URL, r.limit); err != nil {
		return r, err
	}
	if err := a.Signal(syscall.SIGHUP); err != nil {
		return r, err
	}
	err = r.shrink(a, o)
	r.busy = s.Cut()
	r.refused = s.Stop()
	if err != nil {
		return r, err
	}
	r.complaints, err = complaints(a.Log())
	return r, err
}

func configure(a *load.Acuse, o options, sink string, size int64) error {
	return a.Configure(fmt.Sprintf("store: %s\nretention: {size: %dKiB}\nsources:\n  load:\n    provider: stripe\n    secrets: [%q]\n    deliver_to: [app]\ndestinations:\n  app: {url: %q, concurrency: 32, signature: passthrough}\n",
		o.store, max(size/1024, 16<<10), load.Secret, sink))
}

// fill sends until the archive is full and all of it delivered.
func fill(a *load.Acuse, o options, sink *load.Sink) error {
	var next, bad atomic.Int64
	var wg sync.WaitGroup
	for range o.clients {
		wg.Go(func() {
			c := &load.Client{Addr: a.Public}
			defer c.Close()
			for n := next.Add(1); n <= int64(o.count); n = next.Add(1) {
				now := time.Now()
				if status, _, err := c.Post("/in/load", load.Body(load.EventID("fill", n), now), now); err != nil || status != http.StatusOK {
					bad.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := bad.Load(); n > 0 {
		return fmt.Errorf("%d events were not accepted", n)
	}
	for end := time.Now().Add(o.most); sink.Count() < o.count; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("not all was delivered")
		}
	}
	return nil
}

// shrink waits until the retention has no more to do, and keeps the worst figures.
func (r *result) shrink(a *load.Acuse, o options) error {
	began, last := time.Now(), time.Now()
	smallest := r.before
	for time.Since(began) < o.most {
		time.Sleep(250 * time.Millisecond)
		m, err := figures(a)
		if err != nil {
			return err
		}
		r.journal = max(r.journal, int64(m["acuse_store_journal_bytes"]))
		r.longest = m["acuse_store_longest_transaction_seconds"]
		r.purged, r.steps = m[`acuse_purged_total{kind="deliveries"}`], m["acuse_purge_step_seconds_count"]
		r.after = int64(m["acuse_store_bytes"] - m["acuse_store_journal_bytes"])
		if r.after < smallest-1<<20 {
			smallest, last = r.after, time.Now()
			r.shrinking = time.Since(began)
		}
		if r.purged > 0 && r.after < 2*r.limit && time.Since(last) > 15*time.Second {
			r.longestStep = highest(m)
			return nil
		}
	}
	return fmt.Errorf("after %v the files are %d MB, the retention allows %d MB", o.most, r.after/1e6, r.limit/1e6)
}

// highest is the upper bound of the highest bucket with a step in it.
func highest(m map[string]float64) (bound string) {
	most := 0.0
	for name := range m {
		if _, rest, ok := strings.Cut(name, "acuse_purge_step_seconds_bucket{vmrange=\""); ok {
			_, upper, _ := strings.Cut(strings.TrimSuffix(rest, "\"}"), "...")
			if v, err := strconv.ParseFloat(upper, 64); err == nil && v > most {
				most, bound = v, upper
			}
		}
	}
	return bound
}

// figures scrapes the metrics.
func figures(a *load.Acuse) (map[string]float64, error) {
	res, err := http.Get("http://" + a.Admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	m := map[string]float64{}
	for in := bufio.NewScanner(res.Body); in.Scan(); {
		if i := strings.LastIndexByte(in.Text(), ' '); i > 0 {
			if v, err := strconv.ParseFloat(in.Text()[i+1:], 64); err == nil {
				m[in.Text()[:i]] = v
			}
		}
	}
	return m, nil
}

// complaints are log lines that say the store was busy or locked.
func complaints(log string) (list []string, err error) {
	b, err := os.ReadFile(filepath.Clean(log))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "slow transaction") || strings.Contains(line, "busy") || strings.Contains(line, "locked") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list, nil
}
