package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/scripts/tools/load"
)

// senders post events as providers do: each again until it is acknowledged. They
// remember which were, outside of acuse.
type senders struct {
	mu     sync.Mutex
	next   int64
	acked  map[string]int64 // event: the delivery that was answered
	open   []string         // sent, and not answered
	broken []string         // answers that must not be
}

// run posts on n connections until ctx ends.
func (s *senders) run(ctx context.Context, addr string, n int) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			c := &load.Client{Addr: addr, Timeout: 5 * time.Second}
			defer c.Close()
			for ctx.Err() == nil {
				if !s.post(c, s.take()) {
					time.Sleep(2 * time.Millisecond) // acuse is dead
				}
			}
		})
	}
	wg.Wait()
}

// take is an event that got no answer, else a new one.
func (s *senders) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.open); n > 0 {
		event := s.open[n-1]
		s.open = s.open[:n-1]
		return event
	}
	s.next++
	return load.EventID("p8", s.next)
}

func (s *senders) post(c *load.Client, event string) bool {
	now := time.Now()
	status, b, err := c.Post("/in/stripe", load.Body(event, now), now)
	s.mu.Lock()
	defer s.mu.Unlock()
	var id int64
	switch {
	case err != nil || status == http.StatusServiceUnavailable:
		s.open = append(s.open, event)
		return false
	case status != 200:
		s.broken = append(s.broken, fmt.Sprint(status, string(b)))
		return false
	}
	if _, err := fmt.Sscanf(string(b[strings.LastIndexByte(string(b), ':')+1:]), "%d", &id); err != nil {
		s.broken = append(s.broken, string(b))
	}
	s.acked[event] = id
	return true
}

// TestP8RestartIsRecovery is case dur-01 in short: acuse is killed under load, twice,
// and starts again as if nothing had been. What it acknowledged is there, delivered
// and under one key; what it did not acknowledge can be sent again and is there once.
func TestP8RestartIsRecovery(t *testing.T) {
	t.Parallel()
	app := newApp(t, nil)
	p := newPlace(t, stripe("app")+"destinations:\n"+destination("app", app.URL))
	s := &senders{acked: map[string]int64{}}
	for range 2 {
		p.start()
		ctx, stop := context.WithCancel(t.Context())
		var sending sync.WaitGroup
		sending.Go(func() { s.run(ctx, p.Public, 8) })
		time.Sleep(400 * time.Millisecond)
		p.Kill()
		stop()
		sending.Wait()
	}
	began := time.Now()
	p.start()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the start after a kill took %v", took)
	}
	unanswered := len(s.open)
	c := &load.Client{Addr: p.Public}
	defer c.Close()
	for len(s.open) > 0 && len(s.broken) == 0 {
		s.post(c, s.take())
	}
	if len(s.broken) > 0 {
		t.Fatalf("answers: %q", s.broken)
	}
	if len(s.acked) < 100 {
		t.Errorf("only %d events were acknowledged", len(s.acked))
	}
	t.Logf("%d acknowledged, %d of them only when sent again", len(s.acked), unanswered)
	s.allThere(p, app)

	// It remembers what it had before the kill.
	for event, id := range s.acked {
		r := p.post("stripe", load.Body(event, time.Now()))
		if r.is(t, 200); !strings.Contains(string(r.Body), fmt.Sprintf(`"status":"duplicate","delivery":%d`, id)) {
			t.Errorf("%s again: %s", event, r.Body)
		}
		break
	}
}

// allThere compares what the senders know with the archive and the app.
func (s *senders) allThere(p *place, app *app) {
	t := p.t
	t.Helper()
	until(t, "the queue is empty", func() bool {
		var st struct{ Queued, Leased int }
		r := p.api("GET", "/api/v1/status", nil)
		r.read(t, &st)
		return st.Queued+st.Leased == 0
	})
	stored := map[string]int64{}
	for _, d := range p.deliveries() {
		if stored[d.EventID] != 0 {
			t.Errorf("%s is #%d and #%d", d.EventID, stored[d.EventID], d.ID)
		}
		if stored[d.EventID] = d.ID; d.State != "delivered" {
			t.Errorf("#%d is %s", d.ID, d.State)
		}
	}
	if len(stored) != len(s.acked) {
		t.Errorf("%d stored, %d acknowledged", len(stored), len(s.acked))
	}
	for event, id := range s.acked {
		if stored[event] != id {
			t.Errorf("%s was answered #%d and is #%d", event, id, stored[event])
		}
		calls := app.given(event)
		if len(calls) == 0 {
			t.Errorf("%s never reached the app", event)
		}
		for _, c := range calls {
			if k := c.Header.Get("Idempotency-Key"); k != "stripe:"+event+":app" {
				t.Errorf("%s: key %q", event, k)
			}
		}
		if t.Failed() {
			return // one is enough to look at
		}
	}
	p.api("POST", "/api/v1/check", map[string]bool{"full": true}).is(t, 200, `{"problems":[]}`)
}

// TestASecondProcessLeavesTheFolderAlone: one process a data folder.
func TestASecondProcessLeavesTheFolderAlone(t *testing.T) {
	t.Parallel()
	p := begin(t, stripe("agent")+"destinations:\n  agent: {pull: {}}\n")
	p.event("evt_1")
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	second := p.command(ctx, "serve")
	public, err := load.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	private, err := load.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	second.Env = append(second.Env, "ACUSE_LISTEN="+public, "ACUSE_ADMIN_LISTEN="+private)
	s := runs(t, second, "")
	s.is(t, 1, "acuse: the data folder ", "in use", "--data-dir", fmt.Sprintf("process id %d", p.PID()), filepath.Join(p.Dir, "data"))
	if took := time.Since(began); took > 10*time.Second || s.out != "" || strings.Count(s.err, "\n") > 2 {
		t.Errorf("after %v: %q %q", took, s.out, s.err)
	}
	p.event("evt_2") // the first goes on
	p.cli("list").is(t, 0, "2 deliveries.")
}
