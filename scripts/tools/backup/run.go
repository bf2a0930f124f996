package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"acuse/scripts/tools/load"
)

type options struct {
	store       string
	count, rate int
	keep        bool
}

// contents is what acuse verify and acuse restore print.
type contents struct {
	Engine     string   `json:"engine"`
	Problems   []string `json:"problems"`
	Deliveries int64    `json:"deliveries"`
	Payloads   int64    `json:"payloads"`
	Jobs       int64    `json:"jobs"`
	Keys       int64    `json:"dedup_keys"`
	Queued     int64    `json:"queued"`
}

// result is what a run found.
type result struct {
	took               time.Duration
	bytes, journal     int64
	begun, ended       int64 // events acknowledged when the backup began and when it was done
	verified, restored contents
	missing            int // acknowledged before it began, and not in it
	gaps, strangers    int // numbers below the highest that are not in it; deliveries that are another's
	quiet, busy        []time.Duration
	refused            int64
}

func run(o options) (r result, err error) {
	dir, bin, done, err := load.Prepare("backup", "", o.keep)
	if err != nil {
		return r, err
	}
	defer done()
	a, err := load.New(bin, dir, o.store, "  app: {pull: {}}", "app")
	if err != nil {
		return r, err
	}
	if err := a.Start(); err != nil {
		return r, err
	}
	defer a.Kill()
	if err := fill(a, o.count); err != nil {
		return r, err
	}
	s := load.Steady{Addr: a.Public, Rate: o.rate, Prefix: "steady"}
	s.Start()
	time.Sleep(3 * time.Second)
	r.quiet = s.Cut()

	stop := watch(filepath.Join(a.Dir, "data", "acuse.db-wal"), &r.journal)
	before := s.Acknowledged()
	file, began := filepath.Join(dir, "copy"), time.Now()
	_, err = acuse(a, "backup", file)
	r.took, r.busy = time.Since(began), s.Cut()
	r.begun, r.ended = int64(o.count+len(before)), int64(o.count+len(s.Acknowledged()))
	stop()
	if err != nil {
		return r, err
	}
	time.Sleep(time.Second) // what comes after it must not be in it
	r.refused = s.Stop()
	st, err := os.Stat(file)
	if err != nil {
		return r, err
	}
	r.bytes = st.Size()
	if r.verified, err = read(acuse(a, "verify", file, "--json")); err != nil {
		return r, err
	}
	into := &load.Acuse{Bin: bin, Dir: filepath.Join(dir, "new"), Token: a.Token}
	if r.restored, err = read(acuse(a, "restore", file, "--into", filepath.Join(into.Dir, "data"), "--json")); err != nil {
		return r, err
	}
	if err := into.Configure(fmt.Sprintf("store: %s\nsources:\n  load:\n    provider: stripe\n    secrets: [%q]\n    deliver_to: [app]\ndestinations:\n  app: {pull: {}}\n", o.store, load.Secret)); err != nil {
		return r, err
	}
	if err := into.Start(); err != nil {
		return r, err
	}
	defer into.Kill()
	return r, r.compare(a, into, before)
}

// compare walks both archives.
func (r *result) compare(live, restored *load.Acuse, before map[string]bool) error {
	there, highest := map[int64]load.Delivery{}, int64(0)
	ids := map[string]bool{}
	if err := restored.Deliveries(func(d load.Delivery) {
		there[d.ID], ids[d.EventID] = d, true
		highest = max(highest, d.ID)
	}); err != nil {
		return err
	}
	for id := range before {
		if !ids[id] {
			r.missing++
		}
	}
	return live.Deliveries(func(d load.Delivery) {
		got, ok := there[d.ID]
		switch {
		case d.ID > highest: // came later
		case !ok:
			r.gaps++
		case got.EventID != d.EventID || got.State != d.State || len(got.Jobs) != len(d.Jobs) || got.Jobs[0].ID != d.Jobs[0].ID || got.Jobs[0].Key != d.Jobs[0].Key:
			r.strangers++
		}
	})
}

// fill sends until there are so many deliveries.
func fill(a *load.Acuse, count int) error {
	var next, bad atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			c := &load.Client{Addr: a.Public}
			defer c.Close()
			for n := next.Add(1); n <= int64(count); n = next.Add(1) {
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
	return nil
}

// watch keeps the largest size that a file has until the caller says stop.
func watch(path string, most *int64) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if st, err := os.Stat(path); err == nil {
				*most = max(*most, st.Size())
			}
			select {
			case <-end:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() { close(end); <-ended }
}

// acuse runs a command of the command line beside the server.
func acuse(a *load.Acuse, args ...string) ([]byte, error) {
	cmd := exec.Command(a.Bin, append([]string{"--config", a.Config()}, args...)...)
	cmd.Dir, cmd.Stderr = a.Dir, os.Stderr
	return cmd.Output()
}

func read(out []byte, err error) (c contents, _ error) {
	if err != nil {
		return c, fmt.Errorf("%w: %s", err, out)
	}
	return c, json.Unmarshal(out, &c)
}
