package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// example starts an example client under docs/examples against the place.
func (p *place) example(done string, args ...string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), args[0], append(args[1:], "agent")...)
	cmd.Env = append(os.Environ(), "ACUSE_URL=http://"+p.Admin, "ACUSE_TOKEN="+p.Token, "LEASE_SECONDS=1", "DONE_FILE="+done)
	log, err := os.OpenFile(done+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return cmd
}

// stripped is the TypeScript example without its types, for a node that does not take
// them out itself.
func stripped(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("docs/examples/pull.ts")
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	for _, rule := range []string{`(?m)^type .*$`, `: \{ lease: string; error\?: string \}`, `: Promise<\w+>`, `<void>`, ` as Job\[\]`, `(\w+): (?:number|string|object|Job|Buffer|AbortSignal)([,)])`} {
		with := ""
		if strings.HasPrefix(rule, `(\w+)`) {
			with = "$1$2"
		}
		s = regexp.MustCompile(rule).ReplaceAllString(s, with)
	}
	file := filepath.Join(t.TempDir(), "pull.mjs")
	if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestExampleClientsWork(t *testing.T) {
	t.Parallel()
	goClient := filepath.Join(t.TempDir(), "pull")
	if out, err := exec.Command("go", "build", "-o", goClient, "./docs/examples/pull").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, args := range map[string][]string{"python": {"python3", "docs/examples/pull.py"}, "typescript": {"node", stripped(t)}, "go": {goClient}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, stripe("agent")+agent)
			done := filepath.Join(p.Dir, "done.txt")
			cmd := p.example(done, args...)
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			id := p.event("evt_1")
			until(t, "it is delivered", func() bool { return p.delivery(id).State == "delivered" })
			if b, err := os.ReadFile(done); err != nil || !strings.HasPrefix(string(b), "stripe:evt_1:agent 1 ") {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// Three consumers, one of them killed again and again: every job is done, and in effect
// once, since what is done twice is done under the same key.
func TestThreeConsumersOneKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	const jobs = 60
	p := begin(t, stripe("agent")+strings.Replace(agent, "1s, 1s", "1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s", 1))
	done := filepath.Join(p.Dir, "done.txt")
	for range 2 {
		cmd := p.example(done, "python3", "docs/examples/pull.py")
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	end := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			cmd := p.example(done, "python3", "docs/examples/pull.py")
			select {
			case <-end:
			case <-time.After(time.Duration(200+50*(n%5)) * time.Millisecond):
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
			select {
			case <-end:
				return
			default:
			}
		}
	})
	for n := range jobs {
		p.event(fmt.Sprintf("evt_%d", n))
	}
	until(t, "all are delivered", func() bool {
		for _, d := range p.deliveries() {
			if d.State != "delivered" {
				return false
			}
		}
		return true
	})
	close(end)
	wg.Wait()
	b, err := os.ReadFile(done)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		key, _, _ := strings.Cut(line, " ")
		keys[key] = true
	}
	for n := range jobs {
		if key := fmt.Sprintf("stripe:evt_%d:agent", n); !keys[key] {
			t.Errorf("%s was not done", key)
		}
	}
	if len(keys) != jobs {
		t.Errorf("%d keys for %d jobs", len(keys), jobs)
	}
}
