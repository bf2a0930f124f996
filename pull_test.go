package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const agent = "destinations:\n  agent:\n    pull: {lease: 60s}\n    retry: {schedule: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s], jitter: 0}\n"

// worker is acuse pull or acuse listen under way.
type worker struct {
	*exec.Cmd
	lines *bufio.Reader // what it says
	t     *testing.T
}

func (p *place) worker(args ...string) *worker {
	p.t.Helper()
	w := &worker{Cmd: p.command(p.t.Context(), args...), t: p.t}
	out, err := w.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	w.lines = bufio.NewReader(out)
	if err := w.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = w.Process.Kill(); _ = w.Wait() })
	return w
}

// says waits for a line with all the words.
func (w *worker) says(words ...string) {
	w.t.Helper()
	for {
		line, err := w.lines.ReadString('\n')
		if err != nil {
			w.t.Fatalf("it ended before it said %q", words)
		}
		missing := 0
		for _, word := range words {
			if !strings.Contains(line, word) {
				missing++
			}
		}
		if missing == 0 {
			return
		}
	}
}

// ends asks it to end and waits.
func (w *worker) ends() {
	w.t.Helper()
	if err := w.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
	for { // to the end of what it says, as Wait wants it
		if _, err := w.lines.ReadString('\n'); err != nil {
			break
		}
	}
	if err := w.Wait(); err != nil {
		w.t.Fatal(err)
	}
}

// A worker runs the command for each job, with what an exec destination gives it, renews
// while it works, gives back what fails, and ends only when the job is done.
func TestPullRunsACommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := begin(t, stripe("agent")+agent)
	w := p.worker("pull", "agent", "--lease", "1s", "--exec", "/bin/sh", "-c",
		fmt.Sprintf(`echo $ACUSE_EVENT_ID $ACUSE_ATTEMPT $ACUSE_IDEMPOTENCY_KEY $ACUSE_RESEND ${ACUSE_LANG-none} >> %s/log; [ $ACUSE_ATTEMPT = 2 ] || exit 3; cat > %s/body; sleep 3; echo end >> %s/log`, dir, dir, dir))
	w.says("Waiting for jobs of agent")
	id := p.event("evt_1")
	w.says("evt_1", "failed", "exit code 3")
	until(t, "the second attempt runs", func() bool { return strings.Count(written(t, dir), "evt_1") == 4 })
	w.ends() // while the command runs: it is let finish
	if d := p.delivery(id); d.State != "delivered" || d.outcomes() != "failed succeeded" {
		t.Errorf("%s, %s", d.State, d.outcomes())
	}
	if got := written(t, dir); got != "evt_1 1 stripe:evt_1:agent false none evt_1 2 stripe:evt_1:agent false none end" {
		t.Error(got)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "body")); err != nil || !strings.Contains(string(b), `"evt_1"`) {
		t.Errorf("standard input %q, %v", b, err)
	}
}

// The same from another machine, under a token; several at a time.
func TestPullFromAfar(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := begin(t, stripe("agent")+agent)
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(p.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Each waits until three have begun.
	w := p.worker("pull", "agent", "--server", "http://"+p.Admin, "--token-file", token, "--concurrency", "3",
		"--exec", "/bin/sh", "-c", fmt.Sprintf(`echo x >> %s/log; until [ $(wc -l < %s/log) -ge 3 ]; do sleep 0.05; done`, dir, dir))
	w.says("Waiting")
	for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
		p.event(id)
	}
	for range 3 {
		w.says("done")
	}
	w.ends()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"pull", "agent"}, 2, "--exec is missing"},
		{[]string{"pull", "agent", "--server", "http://" + p.Admin, "--exec", "true"}, 2, "no token"},
		{[]string{"pull", "nobody", "--exec", "true"}, 3, "no pull destination has this name"},
		{[]string{"pull", "agent", "--concurrency", "0", "--exec", "true"}, 2, "--concurrency"},
		{[]string{"listen", "http://127.0.0.1:1/"}, 2, "--destination is missing"},
		{[]string{"listen", "nowhere", "--destination", "agent"}, 2, "http://"},
	} {
		p.cli(c.args...).is(t, c.code, c.says)
	}
}

// A command whose lease is lost is killed, and its worker says nothing for the job.
func TestPullLosesItsLease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := begin(t, stripe("agent")+agent)
	w := p.worker("pull", "agent", "--lease", "1s", "--exec", "/bin/sh", "-c", fmt.Sprintf("echo $$ >> %s/log; exec sleep 300", dir))
	id := p.event("evt_1")
	until(t, "it runs", func() bool { return written(t, dir) != "" })
	if err := w.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	other := p.lease("agent", 60)
	if err := w.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.says("evt_1", "lease lost")
	var pid int
	if _, err := fmt.Sscan(written(t, dir), &pid); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("its command lives on")
	}
	p.settle(other, "ack").is(t, 200)
	if d := p.delivery(id); d.State != "delivered" || d.outcomes() != "interrupted succeeded" {
		t.Errorf("%s, %s", d.State, d.outcomes())
	}
}

// acuse listen hands events to an app that no sender can reach, as the app would get
// them from a destination of its own.
func TestListenForwards(t *testing.T) {
	t.Parallel()
	app := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Acuse-Event-Id") == "evt_gone":
			w.WriteHeader(http.StatusGone)
		case r.Header.Get("Acuse-Attempt") == "1":
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	p := begin(t, stripe("agent")+agent)
	w := p.worker("listen", app.URL, "--destination", "agent")
	w.says("Waiting")
	id := p.event("evt_1")
	w.says("evt_1", "failed", "503")
	w.says("evt_1", "done", "200")
	gone := p.event("evt_gone")
	w.says("evt_gone", "failed", "410")
	w.ends()
	if d := p.delivery(id); d.State != "delivered" || d.outcomes() != "failed succeeded" {
		t.Errorf("%s, %s", d.State, d.outcomes())
	}
	if d := p.delivery(gone); d.State != "dead" {
		t.Errorf("410 left the delivery %s", d.State)
	}
	for _, c := range app.given("evt_1") {
		if c.Header.Get("Idempotency-Key") != "stripe:evt_1:agent" || c.Header.Get("Stripe-Signature") == "" || c.Header.Get("Acuse-Received-At") == "" {
			t.Errorf("headers %v", c.Header)
		}
	}
}

// A worker outlives a server that starts again, and what was done meanwhile is told then.
func TestPullOutlivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := begin(t, stripe("agent")+agent)
	w := p.worker("pull", "agent", "--exec", "/bin/sh", "-c", fmt.Sprintf("echo begin >> %s/log; until [ -e %s/open ]; do sleep 0.05; done; echo end >> %s/log", dir, dir, dir))
	id := p.event("evt_1")
	until(t, "it runs", func() bool { return written(t, dir) == "begin" })
	p.Kill()
	if err := os.WriteFile(filepath.Join(dir, "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "it is done", func() bool { return written(t, dir) == "begin end" })
	time.Sleep(300 * time.Millisecond) // the first acks go nowhere
	p.start()
	w.says("evt_1", "done")
	p.event("evt_2")
	w.says("evt_2", "done")
	w.ends()
	if d := p.delivery(id); d.State != "delivered" || d.outcomes() != "succeeded" {
		t.Errorf("%s, %s", d.State, d.outcomes())
	}
}
