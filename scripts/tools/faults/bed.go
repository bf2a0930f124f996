package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"acuse/scripts/tools/cutfs"
	"acuse/scripts/tools/load"
)

// bed is acuse with its data on a disk of ours.
type bed struct {
	o     options
	dir   string
	data  string // where acuse sees the disk
	a     *load.Counted
	disk  *cutfs.Disk
	leave func() error // unmounts
	told  string
	// counted: the scene did so itself. ended: the last start failed.
	counted, ended bool
}

// play runs one scene on a fresh bed, in a folder of its own, and counts at its end.
func play(s scene, engine, bin, dir string, o options) (told string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	a, err := load.NewCounted(bin, dir, engine, "fault")
	if err != nil {
		return "", err
	}
	defer a.Close()
	b := &bed{o: o, dir: dir, data: filepath.Join(dir, "data"), a: a}
	if err := os.Mkdir(b.data, 0o700); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.end()) }()
	if err := s.play(b); err != nil {
		return "", fmt.Errorf("%w%s", err, b.lastWords())
	}
	return b.count()
}

// mount gives acuse a disk of ours.
func (b *bed) mount(d *cutfs.Disk) (err error) {
	b.disk = d
	b.leave, err = d.Mount(b.data)
	return err
}

func (b *bed) end() error {
	b.a.Kill()
	if b.leave == nil {
		return nil
	}
	leave := b.leave
	b.leave = nil
	return leave()
}

// cut kills acuse, takes what was not synced, and mounts the rest again.
func (b *bed) cut() error {
	after := b.disk.Cut(cutfs.Drop, rand.New(rand.NewPCG(1, 1)))
	if err := b.end(); err != nil {
		return err
	}
	return b.mount(after)
}

// send sends from four connections for a while.
func (b *bed) send(d time.Duration) error {
	ctx, stop := context.WithTimeout(context.Background(), d)
	defer stop()
	return b.a.Ledger.Load(ctx, b.a.Public, 4)
}

// sending sends from four connections until ended is called.
func (b *bed) sending() (ended func() error) {
	ctx, stop := context.WithCancel(context.Background())
	sent := make(chan error, 1)
	go func() { sent <- b.a.Ledger.Load(ctx, b.a.Public, 4) }()
	return func() error { stop(); return <-sent }
}

// recovers waits until an event is acknowledged again, without a restart.
func (b *bed) recovers() error {
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if b.a.Ledger.One(b.a.Public) {
			return nil
		}
	}
	return errors.New("acuse does not accept again though the disk is well")
}

// reads looks whether the archive can be read.
func (b *bed) reads() error { return b.a.Call("GET", "/api/v1/deliveries?limit=1", nil, nil) }

// count starts acuse anew on what the disk holds and compares.
func (b *bed) count() (string, error) {
	if b.counted {
		return b.told, nil
	}
	_, refused, bare, p99 := b.a.Ledger.Answers()
	if bare > 0 {
		return "", fmt.Errorf("%d answers of 503 without Retry-After", bare)
	}
	if b.disk != nil {
		if err := b.cut(); err != nil {
			return "", err
		}
	} else {
		b.a.Kill()
	}
	if err := b.a.Start(); err != nil {
		return "", fmt.Errorf("at the end: %w%s", err, b.lastWords())
	}
	r, err := b.a.Count()
	if err != nil {
		return "", err
	}
	if r.Bad() {
		var text strings.Builder
		r.Print(&text)
		return "", fmt.Errorf("not all is as it was acknowledged:\n%s", text.String())
	}
	told := fmt.Sprintf("acknowledged %d, lost 0, 503: %d", r.Acknowledged(), refused)
	if refused > 0 {
		told += fmt.Sprintf(" (p99 %v)", p99.Round(100*time.Microsecond))
	}
	return told + b.told, nil
}

// lastWords are the last lines of acuse's log.
func (b *bed) lastWords() string {
	log, err := os.ReadFile(b.a.Log())
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return "\n    " + strings.Join(lines[max(0, len(lines)-4):], "\n    ")
}
