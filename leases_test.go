package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"acuse/cli"
	"acuse/scripts/tools/load"
)

// lease is a job in a worker's hands.
type lease struct {
	Job      int64  `json:"job"`
	Lease    string `json:"lease"`
	Attempt  int    `json:"attempt"`
	EventID  string `json:"event_id"`
	Key      string `json:"idempotency_key"`
	Delivery int64  `json:"delivery"`
	Body     []byte `json:"body_base64"`
}

// lease takes one job of a pull destination, waiting for it.
func (p *place) lease(destination string, ttl int) lease {
	p.t.Helper()
	r := p.api("POST", "/api/v1/jobs/lease", map[string]any{"destination": destination, "ttl_seconds": ttl, "wait_seconds": 20})
	r.is(p.t, 200)
	var got struct{ Jobs []lease }
	if r.read(p.t, &got); len(got.Jobs) != 1 {
		p.t.Fatalf("leased %d jobs: %s", len(got.Jobs), r.Body)
	}
	return got.Jobs[0]
}

func (p *place) settle(l lease, act string) reply {
	p.t.Helper()
	return p.api("POST", fmt.Sprintf("/api/v1/jobs/%d/%s", l.Job, act), map[string]any{"lease": l.Lease})
}

// consume is a worker in a process of its own: it leases one job for a second,
// prints it, acknowledges it once a line comes in, and prints the answer's status
// and problem.
func consume(api, token string) int {
	call := func(path string, in any) (int, []byte) {
		b, err := json.Marshal(in)
		if err != nil {
			panic(err)
		}
		req, err := http.NewRequest("POST", api+path, bytes.NewReader(b))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			panic(err)
		}
		defer res.Body.Close()
		b, err = io.ReadAll(res.Body)
		if err != nil {
			panic(err)
		}
		return res.StatusCode, b
	}
	_, b := call("/api/v1/jobs/lease", map[string]any{"destination": "agent", "ttl_seconds": 1, "wait_seconds": 20})
	var got struct{ Jobs []lease }
	if err := json.Unmarshal(b, &got); err != nil || len(got.Jobs) != 1 {
		fmt.Printf("leased %s\n", b)
		return 1
	}
	fmt.Println("leased", got.Jobs[0].EventID)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return 1
	}
	status, b := call(fmt.Sprintf("/api/v1/jobs/%d/ack", got.Jobs[0].Job), map[string]any{"lease": got.Jobs[0].Lease})
	fmt.Printf("%d %s\n", status, b)
	return 0
}

// TestLeasesOfAStoppedConsumer: a worker that was stopped past its lease has lost its
// job to another, and its late ack changes nothing.
func TestLeasesOfAStoppedConsumer(t *testing.T) {
	t.Parallel()
	p := begin(t, stripe("agent")+"destinations:\n  agent: {pull: {lease: 60s}}\n")
	id := p.event("evt_1")

	cmd := exec.CommandContext(t.Context(), os.Args[0], "http://"+p.Admin, p.Token)
	cmd.Env = append(os.Environ(), part+"=consumer")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewReader(out)
	line := func() string {
		s, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := line(); s != "leased evt_1\n" {
		t.Fatal(s)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	other := p.lease("agent", 60)
	if other.EventID != "evt_1" || other.Attempt != 2 || other.Key != "stripe:evt_1:agent" {
		t.Fatalf("the other worker got %+v", other)
	}
	// Only now: a signal may come later than what is written after it.
	if _, err := io.WriteString(in, "go on\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if s := line(); !strings.HasPrefix(s, "409 ") || !strings.Contains(s, "urn:acuse:problem:lease-lost") {
		t.Fatalf("the late ack was answered %s", s)
	}
	if d := p.delivery(id); d.State != "leased" {
		t.Errorf("after the late ack the delivery is %s", d.State)
	}
	p.settle(other, "ack").is(t, 200, `"state":"delivered"`)
	if d := p.delivery(id); d.State != "delivered" || d.outcomes() != "interrupted succeeded" {
		t.Errorf("%s, %s", d.State, d.outcomes())
	}
}

// TestLeasesAfterKill: an http lease died with its process and comes back at the next
// start; a pull worker is another process, and goes on.
func TestLeasesAfterKill(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32
	never := make(chan struct{})
	app := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		if sends.Add(1) == 1 {
			<-never
		}
		w.WriteHeader(http.StatusOK)
	})
	t.Cleanup(func() { close(never) })
	p := begin(t, stripe("app", "agent")+"destinations:\n"+destination("app", app.URL)+"  agent: {pull: {}}\n")
	id := p.event("evt_1")
	until(t, "the first send is under way", func() bool { return sends.Load() == 1 })
	l := p.lease("agent", 120)
	p.Kill()
	p.start()
	began := time.Now()
	until(t, "the http job is sent again", func() bool { return sends.Load() == 2 })
	if took := time.Since(began); took > 15*time.Second { // its lease had a minute
		t.Errorf("the second send came after %v", took)
	}
	job := func(destination string) (state string, attempts int) {
		for _, j := range p.delivery(id).Jobs {
			if j.Key == "stripe:evt_1:"+destination {
				return j.State, j.Attempts
			}
		}
		return "gone", 0
	}
	until(t, "the http job is delivered", func() bool { s, _ := job("app"); return s == "delivered" })
	if _, n := job("app"); n != 2 {
		t.Errorf("%d attempts: the interrupted one counts", n)
	}
	for _, c := range app.given("evt_1") {
		if k := c.Header.Get("Idempotency-Key"); k != "stripe:evt_1:app" {
			t.Errorf("key %q", k)
		}
	}
	if s, _ := job("agent"); s != "leased" {
		t.Errorf("the pull job is %s", s)
	}
	p.settle(l, "renew").is(t, 200, `"lease_until"`)
	p.settle(l, "ack").is(t, 200, `"state":"delivered"`)
	if _, n := job("agent"); n != 1 {
		t.Errorf("%d attempts of the pull job", n)
	}
}

// serveShortLeases is acuse with http leases of two seconds, which no configuration
// can ask for: a test need not stop it for a minute then.
func serveShortLeases(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return cli.Run(ctx, cli.Options{Serve: func(ctx context.Context, o cli.ServeOptions) error {
		s, err := newServer(ctx, o.Config, newLog(o.Stderr, o.Config.Log))
		if err != nil {
			return err
		}
		list, problems := lanes(o.Config, s.client, s.signer)
		if len(problems) > 0 {
			return errors.Join(problems, s.store.Close())
		}
		for i := range list {
			list[i].Lease = 2 * time.Second
		}
		s.queue.SetLanes(list)
		return s.run(ctx, func() {})
	}}, args)
}

// TestP4AStalledAcuseSendsOnce: acuse itself stands still for longer than its leases
// while sends are under way. Each ends with one settle and no second send, whether
// the app answered meanwhile or later.
func TestP4AStalledAcuseSendsOnce(t *testing.T) {
	t.Parallel()
	early, late := make(chan struct{}), make(chan struct{})
	app := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Acuse-Event-Id") {
		case "evt_early":
			<-early
		case "evt_late":
			<-late
		}
		w.WriteHeader(http.StatusOK)
	})
	p := newPlace(t, stripe("app")+"destinations:\n"+destination("app", app.URL))
	p.Bin = os.Args[0]
	p.start(part + "=short leases")
	ids := []int64{p.event("evt_early"), p.event("evt_late")}
	until(t, "both sends are under way", func() bool { return app.times("evt_early")+app.times("evt_late") == 2 })
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	close(early) // answered while acuse stands still
	time.Sleep(3500 * time.Millisecond)
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "the early answer is settled", func() bool { return p.delivery(ids[0]).State == "delivered" })
	if body := load.Body("evt_more", time.Now()); p.post("stripe", body).Status != 200 {
		t.Error("nothing is taken after the stall")
	}
	time.Sleep(2500 * time.Millisecond) // more than a lease: the sweep has looked
	close(late)
	until(t, "the late answer is settled", func() bool { return p.delivery(ids[1]).State == "delivered" })
	for i, event := range []string{"evt_early", "evt_late"} {
		if n := app.times(event); n != 1 {
			t.Errorf("%s was sent %d times", event, n)
		}
		if d := p.delivery(ids[i]); d.outcomes() != "succeeded" {
			t.Errorf("%s: attempts %s", event, d.outcomes())
		}
	}
	if log := p.log(); strings.Contains(log, "lease lost") || strings.Contains(log, "leases ran out") {
		t.Error("a lease was lost")
	}
}
