// Command arm builds acuse for the boards people run it on, starts each build under
// qemu's user emulation, sends it a signed event and takes the event back through
// the pull API.
package main

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"acuse/scripts/tools/load"
)

// target is one kind of board. MaxBytes bounds the stripped binary.
type target struct {
	name, emulator string
	env            []string
	maxBytes       int64
}

// 25 MB is the budget that docs/architecture.md states for linux/arm64.
var targets = []target{
	{"linux/arm64", "qemu-aarch64", []string{"GOOS=linux", "GOARCH=arm64"}, 25_000_000},
	{"linux/arm v7", "qemu-arm", []string{"GOOS=linux", "GOARCH=arm", "GOARM=7"}, 25_000_000},
}

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/arm\n\nRuns the arm64 and arm v7 builds under qemu: start, one signed event in, the same event out.")
	}
	flag.Parse()
	for _, t := range targets {
		if err := try(t); err != nil {
			fmt.Fprintf(os.Stderr, "arm: %s: %v\n", t.name, err)
			os.Exit(1)
		}
	}
}

func try(t target) error {
	dir, err := os.MkdirTemp("", "acuse-arm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, err := load.Build(dir, "", t.env...)
	if err != nil {
		return err
	}
	size, err := os.Stat(bin)
	if err != nil {
		return err
	}
	if size.Size() > t.maxBytes {
		return fmt.Errorf("the binary has %d bytes, the budget is %d", size.Size(), t.maxBytes)
	}
	a, err := load.New(bin, dir, "sqlite", "  queue:\n    pull: {lease: 60s}", "queue")
	if err != nil {
		return err
	}
	a.Emulator = t.emulator
	start := time.Now()
	if err := a.Start(); err != nil {
		return err
	}
	defer a.Kill()
	up := time.Since(start)
	now := time.Now()
	body := load.Body(load.EventID("arm", 1), now)
	c := &load.Client{Addr: a.Public}
	status, answer, err := c.Post("/in/load", body, now)
	if err != nil || status != 200 || !strings.Contains(string(answer), `"accepted"`) {
		return fmt.Errorf("event answered %d %s: %w", status, answer, err)
	}
	if err := takeBack(a, body); err != nil {
		return err
	}
	fmt.Printf("%s: binary %.1f MB, up in %.1f s under %s, event accepted, leased, its %d bytes the same, acknowledged\n",
		t.name, float64(size.Size())/1e6, up.Seconds(), t.emulator, len(body))
	return a.Stop()
}

// takeBack leases the one job, compares its body and acknowledges it.
func takeBack(a *load.Acuse, want []byte) error {
	var got struct {
		Jobs []struct {
			Job   int64  `json:"job"`
			Lease string `json:"lease"`
			Body  string `json:"body_base64"`
		} `json:"jobs"`
	}
	if err := a.Call("POST", "/api/v1/jobs/lease", map[string]any{"destination": "queue", "wait_seconds": 20}, &got); err != nil {
		return err
	}
	if len(got.Jobs) != 1 {
		return fmt.Errorf("leased %d jobs, want 1", len(got.Jobs))
	}
	body, err := base64.StdEncoding.DecodeString(got.Jobs[0].Body)
	if err != nil || !bytes.Equal(body, want) {
		return fmt.Errorf("the body came back changed: %d bytes, want %d (%v)", len(body), len(want), err)
	}
	return a.Call("POST", fmt.Sprintf("/api/v1/jobs/%d/ack", got.Jobs[0].Job), map[string]any{"lease": got.Jobs[0].Lease}, nil)
}
