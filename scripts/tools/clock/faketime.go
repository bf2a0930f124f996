package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"acuse/scripts/tools/load"
)

// faketime is an acuse under a clock of its own. Its app answers the first call for each
// event 503; its pull destination is "queue".
type faketime struct {
	*load.Acuse
	env  []string
	pids []int         // of every start
	file string        // says how far the clock is off
	off  time.Duration // as that file says
	app  *httptest.Server

	mu    sync.Mutex
	calls map[string][]time.Time // of the app, by event, on our own clock
}

// pause is how long a failed job and an abandoned lease wait.
const pause = 6 * time.Second

func newFaketime(dir, bin, emulator, library, engine string) (*faketime, error) {
	p := &faketime{file: filepath.Join(dir, "off"), calls: map[string][]time.Time{}}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return p, err
	}
	p.app = httptest.NewServer(http.HandlerFunc(p.take))
	p.env = []string{"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + p.file, "FAKETIME_CACHE_DURATION=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"} // its name in newer and older versions
	var err error
	p.Acuse, err = load.New(bin, dir, engine, fmt.Sprintf("  app: {url: %[1]q, retry: {schedule: [%[2]s], jitter: 0}}\n  queue: {pull: {lease: %[2]s}}", p.app.URL, pause), "app", "queue")
	if err != nil {
		return p, err
	}
	p.Emulator = emulator
	return p, p.set(0)
}

func (p *faketime) take(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Acuse-Event-Id")
	p.mu.Lock()
	p.calls[id] = append(p.calls[id], time.Now())
	first := len(p.calls[id]) == 1
	p.mu.Unlock()
	if first {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// call waits for the app's nth call for an event, from 0.
func (p *faketime) call(event string, n int) (at time.Time, err error) {
	err = wait(fmt.Sprintf("call %d for %s", n, event), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.calls[event]) > n {
			at = p.calls[event][n]
		}
		return !at.IsZero()
	})
	return at, err
}

// set sets acuse's clock off ours; nothing ever reads half of the file.
func (p *faketime) set(off time.Duration) error {
	p.off = off
	if err := os.WriteFile(p.file+".new", fmt.Appendf(nil, "%+d\n", int64(off.Seconds())), 0o600); err != nil {
		return err
	}
	return os.Rename(p.file+".new", p.file)
}

// now is the time that acuse's clock shows.
func (p *faketime) now() time.Time { return time.Now().Add(p.off) }

// post sends an event that was signed at a time and compares the answer.
func (p *faketime) post(event string, signed time.Time, status int, word string) error {
	c := &load.Client{Addr: p.Public}
	defer c.Close()
	got, answer, err := c.Post("/in/load", load.Body(event, time.Unix(1767225600, 0)), signed)
	if err != nil {
		return err
	}
	if got != status || !strings.Contains(string(answer), word) || (c.RetryAfter != "") != (status == 503) {
		return fmt.Errorf("%s signed at %s: answered %d %s, Retry-After %q; want %d %s", event, signed.UTC().Format(time.RFC3339), got, answer, c.RetryAfter, status, word)
	}
	return nil
}

// shifted waits until acuse says that what waits was shifted.
func (p *faketime) shifted() error {
	return wait("acuse sees that the clock was set", func() bool { return strings.Contains(p.log(), "the clock was set: what waits was shifted") })
}

func (p *faketime) log() string {
	if p.Acuse == nil {
		return ""
	}
	b, err := os.ReadFile(p.Log())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// close ends acuse and removes what the library leaves behind of a process that was killed.
func (p *faketime) close() {
	p.kill()
	p.app.Close()
}

func (p *faketime) kill() {
	p.Kill()
	for _, pid := range p.pids {
		for _, name := range []string{"faketime_shm_", "sem.faketime_sem_"} {
			os.Remove(fmt.Sprint("/dev/shm/", name, pid)) // not there after a clean end
		}
	}
}

// start starts acuse under its clock.
func (p *faketime) start() error {
	if err := p.Launch(p.env...); err != nil {
		return err
	}
	p.pids = append(p.pids, p.PID())
	return wait("acuse is healthy", func() bool {
		res, err := http.Get("http://" + p.Public + "/healthz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// wait asks until it is so, for up to half a minute.
func wait(what string, so func() bool) error {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if so() {
			return nil
		}
	}
	return fmt.Errorf("not within 30 s: %s", what)
}
