package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/config"
	"acuse/provider"
	"acuse/scripts/tools/load"
)

// TestP6QuarantineIsReleased: an event whose id the configuration cannot name is
// acknowledged and kept; once the configuration is right, it is let go, once.
func TestP6QuarantineIsReleased(t *testing.T) {
	t.Parallel()
	app := newApp(t, nil)
	conf := func(id string) string {
		return fmt.Sprintf("sources:\n  stripe:\n    provider: stripe\n    secrets: [%q]\n    id: %q\n    deliver_to: [app]\ndestinations:\n", load.Secret, id) +
			destination("app", app.URL)
	}
	p := begin(t, conf("{json:no.such.place}"))
	body := load.Body("evt_1", time.Now())
	for range 2 {
		p.post("stripe", body).is(t, 200, `"status":"quarantined"`)
	}
	p.cli("list").is(t, 0, "quarantined", "2 deliveries.")
	p.cli("status").is(t, 0, "2 quarantined")
	p.cli("release", "--source", "stripe", "--dry-run").is(t, 0, "0 would be released")
	p.configure(conf("{json:id}"))
	p.hup("configuration reloaded")
	p.cli("release", "--source", "stripe", "--dry-run").is(t, 0, "1 would be released, 1 a duplicate")
	if n := app.times("evt_1"); n != 0 {
		t.Fatalf("delivered %d times before it was released", n)
	}
	p.cli("release", "--source", "stripe").is(t, 0, "1 released, 1 a duplicate")
	until(t, "it is delivered", func() bool { return p.delivery(1).State == "delivered" })
	p.post("stripe", body).is(t, 200, `"status":"duplicate","delivery":1`)
	if d := p.delivery(2); d.State != "cancelled" || app.times("evt_1") != 1 {
		t.Errorf("#2 is %s, the app was called %d times", d.State, app.times("evt_1"))
	}
}

// TestP1TooLittleRoom: below min_free nothing is taken, and the owner is told why.
func TestP1TooLittleRoom(t *testing.T) {
	t.Parallel()
	p := begin(t, "min_free: 1TiB\n"+stripe("agent")+"destinations:\n  agent: {pull: {}}\n")
	r := p.post("stripe", load.Body("evt_1", time.Now()))
	if r.is(t, 503, "urn:acuse:problem:not-stored"); r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	p.cli("status").is(t, 0, "nothing can be written")
	if s := p.cli("health"); s.code != 1 {
		t.Errorf("health: exit %d: %s%s", s.code, s.out, s.err)
	}
	if n := len(p.deliveries()); n != 0 {
		t.Errorf("%d deliveries", n)
	}
	p.login().open("/").is(t, 200, "Storage is full")
}

// TestRevive: a repeat of an event whose job died of exhausted attempts queues it
// again, once.
func TestRevive(t *testing.T) {
	t.Parallel()
	app := newApp(t, failing(2))
	p := begin(t, stripe("app")+fmt.Sprintf("destinations:\n  app:\n    url: %s\n    retry: {schedule: [1s], jitter: 0}\n", app.URL))
	id := p.event("evt_1")
	until(t, "it is dead", func() bool { return p.delivery(id).State == "dead" })
	p.post("stripe", load.Body("evt_1", time.Now())).is(t, 200, `"status":"duplicate"`, `"revived":true`)
	until(t, "it is delivered", func() bool { return p.delivery(id).State == "delivered" })
	if o := p.delivery(id).outcomes(); o != "failed failed succeeded" {
		t.Errorf("attempts: %s", o)
	}
	if r := p.post("stripe", load.Body("evt_1", time.Now())); strings.Contains(string(r.Body), "revived") {
		t.Error("a delivered event was revived")
	}
}

// TestACleanStop: asked to end, acuse finishes the sends under way, lets go of who
// waits, and ends well; the next start has nothing to repeat.
func TestACleanStop(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{})
	app := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		<-answer
		w.WriteHeader(http.StatusOK)
	})
	p := begin(t, stripe("app")+"destinations:\n"+destination("app", app.URL)+"  agent: {pull: {}}\n")
	id := p.event("evt_1")
	until(t, "the send is under way", func() bool { return app.times("evt_1") == 1 })
	var waiting sync.WaitGroup
	waiting.Go(func() {
		r, err := p.ask("POST", "http://"+p.Admin+"/api/v1/jobs/lease", []byte(`{"destination":"agent","wait_seconds":60}`), "Authorization", "Bearer "+p.Token)
		if err != nil || string(r.Body) != "{\"jobs\":[]}\n" {
			t.Errorf("the waiting worker got %v %s", err, r.Body)
		}
	})
	tail := p.command(t.Context(), "tail")
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tail.Process.Kill(); tail.Wait() })
	until(t, "the worker waits", func() bool {
		return strings.Contains(string(p.must("GET", "http://"+p.Admin+"/metrics", nil).Body), "acuse_pull_waiting 1")
	})
	began := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- p.Stop() }()
	until(t, "the public listener is closed", func() bool { _, err := p.ask("GET", "http://"+p.Public+"/healthz", nil); return err != nil })
	close(answer)
	if err := <-ended; err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("ended after %v: %v", time.Since(began), err)
	}
	waiting.Wait()
	if _, err := os.Stat(filepath.Join(p.Dir, "data", "acuse.sock")); err == nil {
		t.Error("the socket is still there")
	}
	p.start()
	if d := p.delivery(id); d.State != "delivered" || app.times("evt_1") != 1 {
		t.Errorf("%s, sent %d times", d.State, app.times("evt_1"))
	}
}

// TestBasePath: behind a proxy the dashboard and its API live under a folder.
func TestBasePath(t *testing.T) {
	t.Parallel()
	p := begin(t, "base_path: /acuse\n"+stripe("agent")+"destinations:\n  agent: {pull: {}}\n")
	if link := p.link(); !strings.HasPrefix(link, "http://"+p.Admin+"/acuse/setup?t=") {
		t.Errorf("the link is %s", link)
	}
	b := p.browser()
	b.open(p.link()).is(t, 200, `action="/acuse/setup"`)
	b.submit("/acuse/setup", "language", "en", "name", "ana", "password", password).is(t, 200, `href="/acuse/deliveries"`)
	p.event("evt_1")
	p.api("GET", "/acuse/api/v1/deliveries", nil).is(t, 200, "evt_1")
	p.api("POST", "/acuse/api/v1/jobs/lease", map[string]string{"destination": "agent"}).is(t, 200, "evt_1")
	p.must("GET", "http://"+p.Admin+"/acuse/readyz", nil).is(t, 200)
	p.must("GET", "http://"+p.Admin+"/acuse/metrics", nil).is(t, 200, "acuse_")
	p.cli("list").is(t, 0, "1 delivery.")
	p.cli("health").is(t, 0)
	s := p.cli("setup-link")
	s.is(t, 0, "/acuse/setup?t=")
	p.browser().open(strings.TrimSpace(s.out)).is(t, 200, "Log out")
}

// TestALongFolder: where the socket's path would be too long it lies elsewhere, and
// every command finds it.
func TestALongFolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t, stripe("agent")+"destinations:\n  agent: {pull: {}}\n")
	p.Dir = filepath.Join(p.Dir, strings.Repeat("long-folder/", 10))
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p.configure(stripe("agent") + "destinations:\n  agent: {pull: {}}\n")
	p.start()
	p.event("evt_1")
	p.cli("list").is(t, 0, "1 delivery.")
	b, err := os.ReadFile(filepath.Join(p.Dir, "data", "socket"))
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	p.cli("status").is(t, 4)
	p.start()
	if _, err := os.Stat(filepath.Dir(strings.TrimSpace(string(b)))); err == nil {
		t.Error("the folder of the killed one's socket is left for ever")
	}
	p.cli("status").is(t, 0)
	note, err := os.ReadFile(filepath.Join(p.Dir, "data", "socket"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(strings.TrimSpace(string(note)))); err == nil {
		t.Error("a clean stop leaves the folder of its socket")
	}
	p.cli("status").is(t, 4)
}

// TestP2AWindowLastsAsLongAsTheDelivery looks at what an event is stored with: only where
// somebody set the window may it end before the delivery does.
func TestP2AWindowLastsAsLongAsTheDelivery(t *testing.T) {
	t.Parallel()
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		source  config.Source
		withRow bool
	}{
		"github":       {config.Source{Provider: "github"}, true},
		"alertmanager": {config.Source{Provider: "alertmanager"}, false},
		"own":          {config.Source{Provider: "github", DedupWindow: time.Hour}, false},
	} {
		p, ok := cat.Get(want.source.Provider)
		if !ok {
			t.Fatal(want.source.Provider)
		}
		s := &source{name: name, cfg: &want.source, provider: p}
		if length, withRow := s.window(&config.Config{})(false); length <= 0 || withRow != want.withRow {
			t.Errorf("%s: %v %v", name, length, withRow)
		}
	}
}
