package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"acuse/scripts/tools/load"
)

// TestDUR01 is the step of case dur-01 that no kill reaches: the store refuses the job of
// an event once. The sender is told to come again, no key is burned, and the repeat is
// the event. (The kills are TestP8RestartIsRecovery and scripts/crash.)
func TestDUR01(t *testing.T) {
	t.Parallel()
	app := newApp(t, nil)
	p := begin(t, stripe("app")+"destinations:\n"+destination("app", app.URL))
	p.post("stripe", load.Body("evt_before", time.Now())).is(t, 200)
	db, err := sql.Open("sqlite", filepath.Join(p.Dir, "data", "acuse.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(text string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	run("PRAGMA busy_timeout = 5000")
	run("CREATE TRIGGER sick BEFORE INSERT ON jobs BEGIN SELECT RAISE(ABORT, 'sick'); END")
	first := p.post("stripe", load.Body("evt_k1", time.Now()))
	if first.is(t, 503); first.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	run("DROP TRIGGER sick")
	p.post("stripe", load.Body("evt_k1", time.Now())).is(t, 200, `"status":"accepted"`)
	until(t, "the app has the event", func() bool { return app.times("evt_k1") == 1 })
	p.post("stripe", load.Body("evt_k1", time.Now())).is(t, 200, `"status":"duplicate"`)
	if n := len(p.deliveries()); n != 2 {
		t.Errorf("%d deliveries, want 2", n)
	}
	p.api("POST", "/api/v1/check", map[string]any{"full": true}).is(t, 200, `"problems":[]`)
}

// small makes the data folder a volume of 8 MiB, where the system lets us mount one, and
// returns what makes it larger. Elsewhere the folder stays as it is, and is full by
// configuration: below a floor that no disk reaches.
func small(t *testing.T, p *place) (grow func(), mounted bool) {
	t.Helper()
	dir := filepath.Join(p.Dir, "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,mode=0700"); err != nil {
		t.Logf("no mount (%v): full by configuration", err)
		return nil, false
	}
	t.Cleanup(func() {
		p.Kill()
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return func() {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=32m,mode=0700"); err != nil {
			t.Fatal(err)
		}
	}, true
}

// TestDUR02 is the case dur-02: the volume fills under load. From then on senders are told
// to come again, and nothing else stops; a kill and a start on the full volume lose
// nothing; once it grows, events are taken again by themselves.
func TestDUR02(t *testing.T) {
	t.Parallel()
	app := newApp(t, nil)
	hook := newApp(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	yaml := stripe("app") + "destinations:\n" + destination("app", app.URL) + "alerts:\n  - url: \"generic+" + hook.URL + "\"\n"
	p := newPlace(t, yaml)
	grow, mounted := small(t, p)
	if !mounted {
		p.configure("min_free: 1TiB\n" + yaml)
		p.start()
		r := p.post("stripe", load.Body("evt_1", time.Now()))
		if r.is(t, 503); r.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		p.Kill()
		p.configure(yaml)
		p.start()
		p.post("stripe", load.Body("evt_1", time.Now())).is(t, 200, `"status":"accepted"`)
		return
	}
	p.start()
	s := &filler{t: t, acked: map[string]bool{}}
	s.send(p, 60*time.Second, true)
	if s.refused == 0 || len(s.acked) == 0 {
		t.Fatalf("accepted %d, refused %d: the volume never filled", len(s.acked), s.refused)
	}
	if s.slowest > time.Second {
		t.Logf("the slowest refusal took %v", s.slowest) // the machine's business; the budget is the bench's
	}
	// The journal is emptied now and then, which leaves room for a moment: take it.
	occupy(t, filepath.Join(p.Dir, "data", "other"))
	p.login().open("/").is(t, 200, "Storage is full")
	if r := p.must("GET", "http://"+p.Admin+"/metrics", nil); !strings.Contains(string(r.Body), "acuse_store_writable 0") {
		t.Error("the metrics do not say that nothing can be written")
	}
	until(t, "what was stored is delivered on the full volume", func() bool { return s.delivered(app) })
	lines := strings.Count(p.log(), "level=ERROR msg=commit")
	p.Kill()
	p.start()
	s.allThere(p)
	s.send(p, 2*time.Second, false)
	grow()
	until(t, "events are taken again", func() bool {
		return p.post("stripe", load.Body("evt_after", time.Now())).Status == 200
	})
	s.send(p, 500*time.Millisecond, false)
	s.allThere(p)
	until(t, "all of it is delivered", func() bool { return s.delivered(app) })
	if lines > 3 {
		t.Errorf("%d log lines about the full volume", lines)
	}
	until(t, "a person was told before", func() bool { return hook.times("") > 0 })
	p.api("POST", "/api/v1/check", map[string]any{"full": true}).is(t, 200, `"problems":[]`)
}

// occupy is another program's file that leaves 128 KiB of a volume, well below the floor.
func occupy(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int64(0)
	for chunk := make([]byte, 16<<10); ; size += int64(len(chunk)) {
		if _, err := f.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(max(0, size-128<<10)); err != nil {
		t.Fatal(err)
	}
}

// filler posts events of 8 KB and remembers what was acknowledged.
type filler struct {
	t       *testing.T
	mu      sync.Mutex
	next    int64
	acked   map[string]bool
	refused int
	slowest time.Duration // of the refusals
}

// send posts on four connections for at most d; untilFull ends it after the first twenty
// refusals.
func (f *filler) send(p *place, d time.Duration, untilFull bool) {
	f.t.Helper()
	ctx, stop := context.WithTimeout(f.t.Context(), d)
	defer stop()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c := &load.Client{Addr: p.Public}
			defer c.Close()
			for ctx.Err() == nil {
				f.mu.Lock()
				f.next++
				id := load.EventID("full", f.next)
				f.mu.Unlock()
				began := time.Now()
				status, b, err := c.Post("/in/stripe", pad(load.Body(id, began)), began)
				f.mu.Lock()
				switch {
				case err != nil:
					f.t.Errorf("%s: %v", id, err)
				case status == 200:
					f.acked[id] = true
				case status == 503 || status == 507:
					f.refused++
					f.slowest = max(f.slowest, time.Since(began))
				default:
					f.t.Errorf("%s: %d %s", id, status, b)
				}
				full := untilFull && f.refused >= 20
				f.mu.Unlock()
				if full {
					return
				}
			}
		})
	}
	wg.Wait()
}

// pad makes an event 8 KB.
func pad(body []byte) []byte {
	const size = 8192
	return append(body[:len(body)-1], fmt.Sprintf(`,"pad":%q}`, strings.Repeat("x", size-len(body)-9))...)
}

func (f *filler) delivered(app *app) bool {
	for id := range f.acked {
		if app.times(id) == 0 {
			return false
		}
	}
	return true
}

// allThere looks for every acknowledged event.
func (f *filler) allThere(p *place) {
	f.t.Helper()
	got := map[string]bool{}
	for _, d := range p.deliveries() {
		got[d.EventID] = true
	}
	for id := range f.acked {
		if !got[id] {
			f.t.Errorf("%s was acknowledged and is lost", id)
		}
	}
}
