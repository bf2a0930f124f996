package storetest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"acuse/store"
)

// childEnv names the data folder to the child process that is killed.
const childEnv = "ACUSE_STORETEST_CHILD"

var crashTests = []test{
	{"P8", "what was acknowledged before kill -9 is there after it", crash},
}

// crash starts the test binary again as a process that accepts and works, kills it at a
// random moment, and looks for everything it acknowledged. SIGKILL does not prove the
// fsync: the engine's own tests pin that setting.
func crash(e *env) {
	e.ok(e.s.Close())
	acknowledged := map[string]int64{}
	for range 4 {
		e.killed(acknowledged)
		e.start()
		e.sound()
		for id, number := range acknowledged {
			d := e.delivery(number)
			same(e, "event id", d.EventID, id)
			same(e, "jobs", len(d.Jobs), 1)
			p, err := e.s.Payload(e.Context(), number)
			e.ok(err)
			same(e, "body", string(p.Body), string(arrival("s", id).Body))
		}
		e.recovers()
		e.ok(e.s.Close())
	}
	if len(acknowledged) < 100 {
		e.Fatalf("only %d events were acknowledged", len(acknowledged))
	}
}

// recovers checks that the work of the killed process is taken up.
func (e *env) recovers() {
	e.Helper()
	n, err := e.s.EndLeases(e.Context(), "child/", at(time.Hour))
	e.ok(err)
	t := e.totals()
	same(e, "leases left", t.Leased, 0)
	if t.Queued < int64(n) {
		e.Fatalf("%d leases ended, %d jobs wait", n, t.Queued)
	}
}

// killed runs one child until it acknowledged some events, kills it, and adds what it
// acknowledged.
func (e *env) killed(acknowledged map[string]int64) {
	e.Helper()
	exe, err := os.Executable()
	e.ok(err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+e.dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	e.ok(err)
	e.ok(cmd.Start())
	lines, enough := bufio.NewScanner(out), 30+rand.IntN(100)
	for n := 0; lines.Scan(); n++ {
		var id string
		var number int64
		if _, err := fmt.Sscanf(lines.Text(), "%s %d", &id, &number); err != nil {
			e.Fatalf("child said %q: %v", lines.Text(), err)
		}
		acknowledged[id] = number
		if n == enough {
			e.ok(cmd.Process.Kill())
		}
	}
	e.ok(lines.Err())
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		e.Fatalf("the child ended by itself: %v", err)
	}
}

// child accepts and works in dir until it is killed. It prints each id and number once
// it is acknowledged.
func child(open Opener, dir string, out, problems io.Writer) int {
	s, err := open(dir)
	if err != nil {
		fmt.Fprintln(problems, err)
		return 1
	}
	var failed atomic.Value
	together(9, func(i int) {
		if i == 8 {
			failed.CompareAndSwap(nil, childWork(s))
			return
		}
		for n := 0; failed.Load() == nil; n++ {
			id := fmt.Sprintf("%d-%d-%d", os.Getpid(), i, n)
			got, err := s.Accept(Background, arrival("s", id))
			if err != nil {
				failed.CompareAndSwap(nil, err.Error())
				return
			}
			fmt.Fprintf(out, "%s %d\n", id, got[0].Delivery)
		}
	})
	fmt.Fprintln(problems, failed.Load())
	return 1
}

// childWork leases and settles until something fails.
func childWork(s store.Store) string {
	for {
		list, err := s.Lease(Background, store.LeaseQuery{Destination: "app", Owner: "child/http", Max: 5, TTL: time.Minute, Now: t0})
		if err != nil {
			return err.Error()
		}
		for _, l := range list[:len(list)/2] {
			if err := s.Settle(Background, outcome(l, store.Delivered, t0)); err != nil {
				return err.Error()
			}
		}
	}
}
