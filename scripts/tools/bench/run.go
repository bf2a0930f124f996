package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"acuse/scripts/tools/load"
)

func run(o options) error {
	dir, bin, done, err := load.Prepare("bench", "", false)
	if err != nil {
		return err
	}
	defer done()
	fmt.Printf("%s/%s, %d cores, %s, store %s, %d rounds of %v, %s client\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.store, o.rounds, o.round, o.client)
	if err := ingest(o, dir, bin); err != nil {
		return fmt.Errorf("ingest: %w", err)
	}
	if o.e2e <= 0 {
		return nil
	}
	return endToEnd(o, dir, bin)
}

// ingest alternates the yardstick and acuse for each number of connections. The
// jobs are for a pull destination that nobody leases: nothing is being delivered.
func ingest(o options, dir, bin string) error {
	peer, addr, err := start("verify-only")
	if err != nil {
		return err
	}
	defer stop(peer)
	fmt.Println("ingest, durable, 1.5 KB signed bodies, time-ordered ids; the yardstick reads and verifies only")
	fmt.Println("connections  ratio  acuse/s  yardstick/s  acuse p50    p99          yardstick p50  CPU a request: acuse  yardstick  resident  peak")
	for _, conns := range o.conns {
		sub := filepath.Join(dir, "ingest-"+strconv.Itoa(conns))
		if err := os.Mkdir(sub, 0o700); err != nil {
			return err
		}
		a, err := load.New(bin, sub, o.store, "  queue:\n    pull: {lease: 60s}", "queue")
		if err != nil {
			return err
		}
		if err := a.Start(); err != nil {
			return err
		}
		err = pair(o, a, peer, addr, conns)
		a.Kill()
		if err != nil {
			return err
		}
	}
	return nil
}

func pair(o options, a *load.Acuse, peer *exec.Cmd, yardstick string, conns int) error {
	var ratios, ours, theirs, p50, p99, base, cpu, baseCPU []float64
	for round := range o.rounds {
		run := fmt.Sprintf("b%d", round)
		y, err := measure(o.client, yardstick, peer.Process.Pid, run, conns, o.round)
		if err != nil {
			return err
		}
		s, err := measure(o.client, a.Public, a.PID(), run, conns, o.round)
		if err != nil {
			return err
		}
		if s.failed > 0 {
			return fmt.Errorf("%d requests failed", s.failed)
		}
		ratios = append(ratios, s.perSecond/y.perSecond)
		ours, theirs = append(ours, s.perSecond), append(theirs, y.perSecond)
		cpu, baseCPU = append(cpu, float64(s.cpu)), append(baseCPU, float64(y.cpu))
		p50, p99, base = append(p50, float64(s.p50)), append(p99, float64(s.p99)), append(base, float64(y.p50))
	}
	now, peak := resident(a.PID())
	fmt.Printf("%11d  %.3f  %7.0f  %11.0f  %-11v  %-11v  %-13v  %-20v  %-9v  %-8s  %s\n", conns, median(ratios), median(ours), median(theirs),
		round(median(p50)), round(median(p99)), round(median(base)), micros(median(cpu)), micros(median(baseCPU)), now, peak)
	return nil
}

// endToEnd loads acuse with 64 connections while it delivers to a local app, and
// counts what the app got from the first request until the last one arrived.
func endToEnd(o options, dir, bin string) error {
	peer, yardstick, err := start("verify-only")
	if err != nil {
		return err
	}
	defer stop(peer)
	app, appAddr, err := start("app")
	if err != nil {
		return err
	}
	defer stop(app)
	sub := filepath.Join(dir, "e2e")
	if err := os.Mkdir(sub, 0o700); err != nil {
		return err
	}
	a, err := load.New(bin, sub, o.store, "  app:\n    url: http://"+appAddr+"/hook\n    concurrency: 16\n    signature: passthrough", "app")
	if err != nil {
		return err
	}
	if err := a.Start(); err != nil {
		return err
	}
	defer a.Kill()
	y, err := measure(o.client, yardstick, peer.Process.Pid, "y", 64, o.e2e/2)
	if err != nil {
		return err
	}
	begin := time.Now()
	s, err := measure(o.client, a.Public, a.PID(), "e", 64, o.e2e)
	if err != nil {
		return err
	}
	accepted, err := total(a)
	if err != nil {
		return err
	}
	got, err := wait(appAddr, accepted)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	_, peak := resident(a.PID())
	rate := float64(got) / took.Seconds()
	fmt.Printf("end to end, 64 connections, one local app, 16 workers: %d accepted (%.0f/s while sending, p99 %v), %d delivered in %.1f s: %.0f/s, ratio %.3f, peak %s\n",
		accepted, s.perSecond, round(float64(s.p99)), got, took.Seconds(), rate, rate/y.perSecond, peak)
	return nil
}

func total(a *load.Acuse) (int, error) {
	var s struct {
		Deliveries int `json:"deliveries"`
	}
	err := a.Call("GET", "/api/v1/status", nil, &s)
	return s.Deliveries, err
}

// wait asks the app until it got as many as were accepted.
func wait(addr string, want int) (int, error) {
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get("http://" + addr + "/count")
		if err != nil {
			return 0, err
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(string(b))
		if err != nil {
			return 0, err
		}
		if n >= want {
			return n, nil
		}
		if time.Now().After(end) {
			return n, fmt.Errorf("the app got %d of %d in 3 minutes", n, want)
		}
	}
}

// start starts this program again as one of its peers.
func start(role string) (*exec.Cmd, string, error) {
	addr, err := load.FreeAddr()
	if err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command(self, role, addr)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return cmd, addr, nil
		}
	}
	stop(cmd)
	return nil, "", errors.New(role + " did not start")
}

func stop(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

func micros(ns float64) time.Duration { return time.Duration(ns).Round(time.Microsecond) }

func round(ns float64) time.Duration { return time.Duration(ns).Round(10 * time.Microsecond) }
