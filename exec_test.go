package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script is the configuration of an exec destination that is tried again after a second.
func script(text string, more ...string) string {
	return fmt.Sprintf("destinations:\n  script:\n    exec: [/bin/sh, -c, %q]\n    retry: {schedule: [%s], jitter: 0}\n    %s\n", text,
		strings.TrimSuffix(strings.Repeat("1s, ", 30), ", "), strings.Join(more, "\n    "))
}

// ledger is a script that writes down who runs: that it begins, whether another one is
// alive, that it ends. It does work in between.
func ledger(dir, work string) string {
	return fmt.Sprintf(`cd %s; mkdir alive 2>/dev/null || { grep -qs "^State:.[RSDT]" /proc/$(cat who)/status && echo two >> log; }; echo $$ > who; echo begin >> log; %s; echo end >> log; rmdir alive`, dir, work)
}

func written(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// A command gets the event, and the API and the page show what it left.
func TestExecDelivers(t *testing.T) {
	t.Parallel()
	p := begin(t, stripe("script")+script(`[ $ACUSE_ATTEMPT = 2 ] || { echo not yet >&2; exit 75; }; echo $ACUSE_SOURCE $ACUSE_EVENT_ID $ACUSE_IDEMPOTENCY_KEY; cat`))
	id := p.event("evt_1")
	until(t, "the second attempt succeeds", func() bool { return p.delivery(id).State == "delivered" })
	d := p.delivery(id)
	if d.outcomes() != "failed succeeded" || d.Attempts[0].Status != 75 {
		t.Errorf("%s, first status %d", d.outcomes(), d.Attempts[0].Status)
	}
	page := p.login().open(fmt.Sprintf("/deliveries/%d", id))
	page.is(t, 200, "Exit code 75", "not yet", "Exit code 0", "stripe evt_1 stripe:evt_1:script", "Output", "/bin/sh")
	p.cli("check").is(t, 0, "runs as acuse's own user")
}

// del-02: an exec that takes longer than its lease runs once; beyond its hard limit the
// whole group is ended and the attempt has failed.
func TestExecLongerThanItsLeaseRunsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPlace(t, stripe("script")+script(ledger(dir, "sleep 5"), "hard_limit: 60s"))
	p.Bin = os.Args[0]
	p.start(part + "=short leases") // of two seconds
	id := p.event("evt_1")
	until(t, "it is delivered", func() bool { return p.delivery(id).State == "delivered" })
	if got := written(t, dir); got != "begin end" {
		t.Errorf("ran: %s", got)
	}
	if d := p.delivery(id); d.outcomes() != "succeeded" {
		t.Errorf("attempts %s", d.outcomes())
	}
}

func TestExecBeyondItsHardLimitIsEndedWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := begin(t, stripe("script")+script(fmt.Sprintf("sleep 300 & echo $! >> %s/pids; sleep 300", dir), "hard_limit: 1s"))
	id := p.event("evt_1")
	until(t, "an attempt has failed", func() bool { return strings.HasPrefix(p.delivery(id).outcomes(), "failed") })
	b, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the grandchild is gone", func() bool { return !alive(pid) })
	p.api("GET", fmt.Sprintf("/api/v1/deliveries/%d", id), nil).is(t, 200, `"class":"hard_limit"`)
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(b, []byte(") Z "))
}

// TestP4AStalledAcuseRunsACommandOnce: acuse stands still for longer than its lease
// while a command runs, which ends meanwhile: one run, one settle.
func TestP4AStalledAcuseRunsACommandOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := newPlace(t, stripe("script")+script(ledger(dir, "sleep 3")))
	p.Bin = os.Args[0]
	p.start(part + "=short leases") // of two seconds
	id := p.event("evt_1")
	until(t, "it runs", func() bool { return written(t, dir) == "begin" })
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4500 * time.Millisecond)
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "it is delivered", func() bool { return p.delivery(id).State == "delivered" })
	if got := written(t, dir); got != "begin end" {
		t.Errorf("ran: %s", got)
	}
	if d := p.delivery(id); d.outcomes() != "succeeded" {
		t.Errorf("attempts %s", d.outcomes())
	}
}

// TestP8AKilledAcuseLeavesNoCommand: kill -9 during a command, again and again: never
// two alive, and in the end it has run whole.
func TestP8AKilledAcuseLeavesNoCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := begin(t, stripe("script")+script(ledger(dir, "trap '' TERM; [ -e "+dir+"/open ] || sleep 300")))
	id := p.event("evt_1")
	for n := 1; n <= 3; n++ {
		until(t, "it runs", func() bool { return written(t, dir) == strings.TrimSpace(strings.Repeat("begin ", n)) })
		p.Kill()
		if n == 3 {
			if err := os.WriteFile(filepath.Join(dir, "open"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.start()
	}
	until(t, "it is delivered", func() bool { return p.delivery(id).State == "delivered" })
	if got := written(t, dir); got != "begin begin begin begin end" {
		t.Errorf("ran: %s", got)
	}
	if d := p.delivery(id); d.outcomes() != "interrupted interrupted interrupted succeeded" {
		t.Errorf("attempts %s", d.outcomes())
	}
	if list, err := os.ReadDir(filepath.Join(p.Dir, "data", "exec")); err == nil && len(list) != 0 {
		t.Errorf("groups left: %v", list)
	}
}

// A stop lets a command under way end.
func TestAStopLetsACommandEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := begin(t, stripe("script")+script(ledger(dir, "sleep 2")))
	id := p.event("evt_1")
	until(t, "it runs", func() bool { return written(t, dir) == "begin" })
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := written(t, dir); got != "begin end" {
		t.Errorf("ran: %s", got)
	}
	p.start()
	if d := p.delivery(id); d.State != "delivered" || d.outcomes() != "succeeded" {
		t.Errorf("%s, %s", d.State, d.outcomes())
	}
}
