package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"acuse/store"
)

// dying names the folder of groups of a process that runs a script and is killed.
const dying = "ACUSE_TEST_GROUPS"

func TestMain(m *testing.M) {
	if Guarding() {
		os.Exit(Guard())
	}
	if groups := os.Getenv(dying); groups != "" {
		r := Run{Args: []string{"/bin/sh", "-c", os.Args[1]}, Stdout: os.Stdout, Stderr: os.Stderr, Groups: groups}
		fmt.Println(r.Do(context.Background()))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lines is a writer whose lines are read one by one.
func lines(t *testing.T) (io.Writer, func() string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	in := bufio.NewReader(r)
	return w, func() string {
		t.Helper()
		if err := r.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		s, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(s)
	}
}

func pid(t *testing.T, line string) int {
	t.Helper()
	n, err := strconv.Atoi(line)
	if err != nil || n <= 1 {
		t.Fatalf("no process id: %q", line)
	}
	return n
}

// alive tells whether a process runs; one that is dead and not collected does not.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	return !strings.Contains(string(b), ") Z ")
}

func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); alive(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %d is still alive", pid)
		}
	}
}

func shell(script string) Run {
	return Run{Args: []string{"sh", "-c", script}, Env: []string{"PATH=" + searchPath}}
}

func TestHowACommandEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plainFile, brokenScript := filepath.Join(dir, "plain"), filepath.Join(dir, "broken")
	if err := errors.Join(os.WriteFile(plainFile, []byte("x"), 0o600), os.WriteFile(brokenScript, []byte("#!/no/such/shell\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		run    Run
		code   int
		class  string
		reason string
	}{
		{"well", shell("exit 0"), 0, "", ""},
		{"wants another try", shell("exit 75"), 75, "exit", "exit code 75: try again later"},
		{"by its own code", shell("exit 3"), 3, "exit", "exit code 3"},
		{"by a signal", shell("kill -SEGV $$"), 139, "signal", "ended by a signal: segmentation fault"},
		{"with its whole group and guard", shell("kill -KILL 0; sleep 60"), 137, "signal", "its whole process group was killed"},
		{"asking its group to end", shell("trap 'exit 4' TERM; kill -TERM 0; sleep 60"), 4, "exit", "exit code 4"},
		{"no such program in its PATH", Run{Args: []string{"acuse-no-such"}, Env: []string{"PATH=/bin"}}, 0, "exec_not_found", "acuse-no-such: not found, or the interpreter that its first line names"},
		{"no PATH at all", Run{Args: []string{"sh"}}, 0, "exec_not_found", "sh: not found, or the interpreter that its first line names"},
		{"no such file", Run{Args: []string{"/no/such"}}, 0, "exec_not_found", "/no/such: not found, or the interpreter that its first line names"},
		{"no such interpreter", Run{Args: []string{brokenScript}}, 0, "exec_not_found", brokenScript + ": not found, or the interpreter that its first line names"},
		{"not executable", Run{Args: []string{plainFile}}, 0, "exec_not_executable", plainFile + ": not executable"},
		{"no such folder", Run{Args: []string{"/bin/true"}, Dir: "/no/such"}, 0, "exec_dir", "the working folder /no/such cannot be entered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, class, reason := c.run.Do(t.Context())
			if code != c.code || class != c.class || reason != c.reason {
				t.Errorf("got %d %q %q, want %d %q %q", code, class, reason, c.code, c.class, c.reason)
			}
		})
	}
}

func TestABodyThatNobodyReadsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	r := shell("exit 0")
	r.Stdin = make([]byte, 8<<20)
	if code, class, reason := r.Do(t.Context()); code != 0 || class != "" {
		t.Errorf("%d %s %s", code, class, reason)
	}
}

// What the command leaves running in its group ends with it; what left the group holds
// nothing up, even with the pipes in its hands.
func TestNothingOfTheGroupIsLeft(t *testing.T) {
	t.Parallel()
	groups, ready := t.TempDir(), filepath.Join(t.TempDir(), "ready")
	w, line := lines(t)
	r := shell("sleep 300 & echo $!; setsid sh -c 'echo $$; echo > " + ready + "; exec sleep 300' & until [ -e " + ready + " ]; do :; done; exit 0")
	r.Stdout, r.Groups = w, groups
	r.Stderr = &output{} // copied by a goroutine, which the second sleep would hold for ever
	done := make(chan string, 1)
	go func() { _, class, _ := r.Do(t.Context()); done <- class }()
	inside := pid(t, line())
	select {
	case class := <-done:
		outside := pid(t, line())
		if class != "" || !alive(outside) {
			t.Errorf("class %q; the sleep that left the group lives: %v", class, alive(outside))
		}
		_ = syscall.Kill(outside, syscall.SIGKILL)
	case <-time.After(30 * time.Second):
		t.Fatal("the run hangs on a pipe")
	}
	gone(t, inside)
	if list, err := os.ReadDir(groups); err != nil || len(list) != 0 {
		t.Errorf("groups left: %v, %v", list, err)
	}
}

func TestTheTimeLimitEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"that obeys":         "sleep 300 & echo $!; sleep 300",
		"that says all well": "trap 'exit 0' TERM; sleep 300 & echo $!; wait",
		"that does not":      "trap '' TERM; sleep 300 & echo $!; sleep 300; sleep 300",
		"that is stopped":    "sleep 300 & echo $!; kill -STOP $$; sleep 300",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, line := lines(t)
			r := shell(script)
			r.Stdout, r.patience = w, 300*time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			grandchild := make(chan int, 1)
			go func() { defer cancel(); grandchild <- pid(t, line()) }()
			code, class, reason := r.Do(ctx)
			gone(t, <-grandchild)
			if code != 0 || class != "cancelled" {
				t.Errorf("%d %s %s: an exit after the end of its time is no success", code, class, reason)
			}
		})
	}
}

// A lost lease leaves no time: another run may begin any moment.
func TestALostLeaseKillsAtOnce(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	w, line := lines(t)
	r := shell("trap 'echo > " + told + "; exit' TERM; sleep 300 & echo $!; wait")
	r.Stdout = w
	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan int, 1)
	go func() { got <- pid(t, line()); cancel(fmt.Errorf("queue: %w", store.ErrLeaseLost)) }()
	if _, class, _ := r.Do(ctx); class != "cancelled" {
		t.Error(class)
	}
	gone(t, <-got)
	if _, err := os.Stat(told); err == nil {
		t.Error("the command was asked, and given time")
	}
}

// TestP4TheGroupDiesWithAcuse: whoever starts commands is killed; the guard ends the
// group, and when the guard is killed too the next start does.
func TestP4TheGroupDiesWithAcuse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		guardToo   bool
		afterwards bool // the group lives until the next start
	}{
		{"acuse alone", false, false},
		{"acuse and the guard", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			groups := t.TempDir()
			cmd := exec.Command(os.Args[0], "trap '' TERM; sleep 300 & echo $!; echo $$; echo $PPID; wait; sleep 300")
			cmd.Env = append(os.Environ(), dying+"="+groups)
			w, line := lines(t)
			cmd.Stdout, cmd.Stderr = w, os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			grandchild, child, guard := pid(t, line()), pid(t, line()), pid(t, line())
			t.Cleanup(func() { _ = syscall.Kill(-guard, syscall.SIGKILL) })
			if list, err := os.ReadDir(groups); err != nil || len(list) != 1 || list[0].Name() != fmt.Sprint(guard)+".json" {
				t.Fatalf("recorded: %v, %v", list, err)
			}
			if err := syscall.Kill(cmd.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if c.guardToo {
				if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait() // killed
			gone(t, child)
			if c.afterwards && !alive(grandchild) {
				t.Error("this test shows nothing: the kernel ended the whole group")
			}
			if !c.afterwards {
				gone(t, grandchild)
				gone(t, guard)
			}
			if err := Reclaim(groups, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if alive(grandchild) {
				t.Error("the group outlived the next start")
			}
			if list, err := os.ReadDir(groups); err != nil || len(list) != 0 {
				t.Errorf("groups left: %v, %v", list, err)
			}
		})
	}
}

// A number that somebody else's group has by now is left alone.
func TestReclaimKillsNoStranger(t *testing.T) {
	t.Parallel()
	stranger := exec.Command("sleep", "300")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
	group := stranger.Process.Pid
	for name, text := range map[string]string{
		"another process of the number": fmt.Sprintf(`{"group":%d,"start":"1","boot":%q,"mark":"ACUSE_GROUP=X"}`, group, boot()),
		"another run of the machine":    fmt.Sprintf(`{"group":%d,"start":%q,"boot":"other","mark":"ACUSE_GROUP=X"}`, group, identity(group)),
		"init":                          fmt.Sprintf(`{"group":1,"start":%q,"boot":%q,"mark":""}`, identity(1), boot()),
		"cut short":                     fmt.Sprintf(`{"group":%d,"sta`, group),
		"empty":                         "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "7.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Reclaim(dir, slog.New(slog.DiscardHandler)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !alive(group) {
			t.Fatalf("%s: a stranger was killed", name)
		}
		if list, _ := os.ReadDir(dir); len(list) != 0 {
			t.Errorf("%s: the record stays", name)
		}
	}
	if err := Reclaim(filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

// With its leader dead and collected, a group is known by the mark in the environment of
// its members.
func TestAGroupWithoutItsLeaderIsKnownByItsMark(t *testing.T) {
	t.Parallel()
	mark := newMark()
	w, line := lines(t)
	leader := exec.Command("/bin/sh", "-c", "sleep 300 & echo $!")
	leader.Env, leader.Stdout = []string{mark, "PATH=" + searchPath}, w
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := leader.Run(); err != nil {
		t.Fatal(err)
	}
	group, member := leader.Process.Pid, pid(t, line())
	for _, c := range []struct {
		mark  string
		lives bool
	}{{newMark(), true}, {"", true}, {mark, false}} {
		dir := t.TempDir()
		text := fmt.Sprintf(`{"group":%d,"start":"1","boot":%q,"mark":%q}`, group, boot(), c.mark)
		if err := os.WriteFile(filepath.Join(dir, "7.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Reclaim(dir, slog.New(slog.DiscardHandler)); err != nil || alive(member) != c.lives {
			t.Fatalf("with the mark %q: alive %v, %v", c.mark, alive(member), err)
		}
	}
}

// No group, no command: a run that cannot be recorded does not begin.
func TestARunThatCannotBeRecordedDoesNotBegin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trace, file := filepath.Join(dir, "trace"), filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := shell("echo > " + trace)
	r.Groups = filepath.Join(file, "exec")
	if _, class, reason := r.Do(t.Context()); class != "exec_start" || !strings.Contains(reason, "cannot be recorded") {
		t.Error(class, reason)
	}
	if _, err := os.Stat(trace); err == nil {
		t.Error("it ran")
	}
}
