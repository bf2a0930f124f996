package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"acuse/scripts/tools/cutfs"
)

type scene struct {
	name string
	play func(*bed) error
}

var scenes = []scene{
	{"each write fails once, EIO", each(cutfs.OpWrite, syscall.EIO)},
	{"each write fails once, ENOSPC", each(cutfs.OpWrite, syscall.ENOSPC)},
	{"each sync fails once, EIO", each(cutfs.OpSync, syscall.EIO)},
	{"each sync fails once, ENOSPC", each(cutfs.OpSync, syscall.ENOSPC)},
	{"a sync fails, then the power goes", forgets(false)},
	{"a sync fails, a kill, then the power goes", forgets(true)},
	{"each write fails while it starts, EIO", starting(cutfs.OpWrite, syscall.EIO)},
	{"each write fails while it starts, ENOSPC", starting(cutfs.OpWrite, syscall.ENOSPC)},
	{"each sync fails while it starts, EIO", starting(cutfs.OpSync, syscall.EIO)},
	{"each name fails while it starts, EIO", starting(cutfs.OpName, syscall.EIO)},
	{"no write works for a while, EIO", away(cutfs.OpWrite, syscall.EIO)},
	{"no sync works for a while, EIO", away(cutfs.OpSync, syscall.EIO)},
	{"the disk is full for a while, ENOSPC", away(cutfs.OpWrite, syscall.ENOSPC)},
	{"the disk is read-only for a while, EROFS", away(cutfs.OpWrite, syscall.EROFS)},
	{"a small volume fills, then grows", fills},
	{"descriptors run out", descriptors},
	{"the data folder is removed", removed},
}

// each fails the first operation of a kind, then the second, and so on; after each acuse
// accepts again.
func each(op cutfs.Op, errno syscall.Errno) func(*bed) error {
	return func(b *bed) error {
		if err := b.mount(cutfs.New()); err != nil {
			return err
		}
		if err := b.a.Start(); err != nil {
			return err
		}
		for n := 1; n <= b.o.times; n++ {
			b.disk.Fail(cutfs.Fault{Op: op, After: n, Err: errno})
			for end := time.Now().Add(10 * time.Second); b.disk.Hits() == 0 && time.Now().Before(end); {
				if err := b.send(20 * time.Millisecond); err != nil {
					return err
				}
			}
			if b.disk.Heal() == 0 {
				return fmt.Errorf("%s %d was never reached", op, n)
			}
			if err := b.recovers(); err != nil {
				return fmt.Errorf("after %s %d: %w", op, n, err)
			}
		}
		b.told = fmt.Sprintf(", %d in turn", b.o.times)
		return nil
	}
}

// starting fails each operation of the first start on an empty disk in turn. acuse ends with
// words or comes up; the next start on the same disk works.
func starting(op cutfs.Op, errno syscall.Errno) func(*bed) error {
	return func(b *bed) error {
		b.counted = true // each round is
		ended := 0
		for n := 1; n <= 1000; n++ {
			hits, err := b.round(cutfs.Fault{Op: op, After: n, Err: errno})
			if err != nil {
				return fmt.Errorf("%s %d: %w", op, n, err)
			}
			if hits == 0 {
				b.told = fmt.Sprintf("%d in turn, %d of them ended the start, the next one went well", n-1, ended)
				return nil
			}
			if b.ended {
				ended++
			}
		}
		return errors.New("a start needs over 1000 operations")
	}
}

// round starts acuse on an empty disk with a fault, then without, and looks whether the one
// event that it acknowledges is there after a power cut.
func (b *bed) round(f cutfs.Fault) (hits int, err error) {
	if err := b.mount(cutfs.New()); err != nil {
		return 0, err
	}
	b.disk.Fail(f)
	failed := b.a.Start()
	hits = b.disk.Heal()
	if b.ended = failed != nil; b.ended {
		if hits == 0 {
			return 0, fmt.Errorf("nothing was wrong, yet %w", failed)
		}
		if words := b.lastWords(); !strings.Contains(words, "acuse: ") {
			return hits, fmt.Errorf("it ends without telling why:%s", words)
		}
		if err := b.cut(); err != nil {
			return hits, err
		}
		if err := b.a.Start(); err != nil {
			return hits, fmt.Errorf("the next start: %w", err)
		}
	}
	if err := b.recovers(); err != nil {
		return hits, err
	}
	if err := b.cut(); err != nil {
		return hits, err
	}
	if err := b.a.Start(); err != nil {
		return hits, err
	}
	var list struct {
		Deliveries []struct{} `json:"deliveries"`
	}
	if err := b.a.Call("GET", "/api/v1/deliveries?limit=500", nil, &list); err != nil {
		return hits, err
	}
	if len(list.Deliveries) == 0 {
		return hits, errors.New("the event acknowledged is not there")
	}
	return hits, b.end()
}

// away fails every operation of a kind for a while, under load.
func away(op cutfs.Op, errno syscall.Errno) func(*bed) error {
	return func(b *bed) error {
		if err := b.mount(cutfs.New()); err != nil {
			return err
		}
		if err := b.a.Start(); err != nil {
			return err
		}
		if err := b.send(300 * time.Millisecond); err != nil {
			return err
		}
		b.disk.Fail(cutfs.Fault{Op: op, After: 1, Err: errno, Lasting: true})
		_, before, _, _ := b.a.Ledger.Answers()
		if err := b.send(2 * time.Second); err != nil {
			return err
		}
		if _, refused, _, _ := b.a.Ledger.Answers(); refused == before {
			return errors.New("nothing was refused while the disk was away")
		}
		if b.a.Ledger.One(b.a.Public) {
			return errors.New("an event is acknowledged while nothing can be written")
		}
		if err := b.reads(); err != nil {
			return fmt.Errorf("reading while nothing can be written: %w", err)
		}
		b.disk.Heal()
		return b.recovers()
	}
}

// tmpfs mounts a small volume of its own.
func (b *bed) tmpfs(size string) error {
	if err := syscall.Mount("tmpfs", b.data, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		return fmt.Errorf("mount tmpfs: %w", err)
	}
	b.leave = func() error {
		for range 100 {
			if err := syscall.Unmount(b.data, 0); err == nil {
				return nil
			}
			time.Sleep(20 * time.Millisecond)
		}
		return syscall.Unmount(b.data, syscall.MNT_DETACH)
	}
	return nil
}

// fills fills a volume of 8 MiB by what comes in, then to the last byte, keeps it full under
// load, and makes it larger.
func fills(b *bed) error {
	if err := b.tmpfs("8m"); err != nil {
		return err
	}
	if err := b.a.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); ; {
		if err := b.send(200 * time.Millisecond); err != nil {
			return err
		}
		if _, refused, _, _ := b.a.Ledger.Answers(); refused > 50 {
			break
		}
		if time.Now().After(end) {
			return errors.New("8 MiB do not fill in a minute")
		}
	}
	// Under the floor nothing is accepted, but what is there is delivered.
	if err := b.drains(); err != nil {
		return fmt.Errorf("under the floor: %w", err)
	}
	filler := filepath.Join(b.data, "filler")
	if err := fill(filler); err != nil {
		return err
	}
	if err := b.send(b.o.full); err != nil {
		return err
	}
	if b.a.Ledger.One(b.a.Public) {
		return errors.New("an event is acknowledged on a full volume")
	}
	if err := b.reads(); err != nil {
		return fmt.Errorf("reading on a full volume: %w", err)
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", b.data, "tmpfs", syscall.MS_REMOUNT, "size=256m"); err != nil {
		return fmt.Errorf("grow tmpfs: %w", err)
	}
	if err := b.recovers(); err != nil {
		return err
	}
	return b.send(500 * time.Millisecond)
}

// fill writes until there is no byte left.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		if _, err := f.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			chunk = chunk[:len(chunk)/2]
		} else if err != nil {
			return err
		}
	}
	return nil
}

// drains waits until nothing is queued or leased any more.
func (b *bed) drains() error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var s struct{ Queued, Leased int }
		if err := b.a.Call("GET", "/api/v1/status", nil, &s); err != nil {
			return err
		}
		if s.Queued+s.Leased == 0 {
			return nil
		}
	}
	return errors.New("what is queued is not delivered")
}

// descriptors lets acuse have few, and others take many.
func descriptors(b *bed) error {
	b.disk = nil
	few := filepath.Join(b.dir, "few")
	if err := os.WriteFile(few, []byte("#!/bin/sh\nulimit -n 64\nexec \"$@\"\n"), 0o700); err != nil {
		return err
	}
	b.a.Emulator = few
	if err := b.a.Start(); err != nil {
		return err
	}
	if err := b.send(200 * time.Millisecond); err != nil {
		return err
	}
	var idle []net.Conn
	for range 200 {
		c, err := net.DialTimeout("tcp", b.a.Public, time.Second)
		if err != nil {
			break
		}
		idle = append(idle, c)
	}
	if err := b.send(time.Second); err != nil {
		return err
	}
	if err := b.reads(); err != nil {
		return fmt.Errorf("reading with %d idle connections: %w", len(idle), err)
	}
	for _, c := range idle {
		c.Close()
	}
	b.a.Emulator = ""
	return b.recovers()
}

// removed takes the data folder away under load. What is written then would be lost with the
// process, so nothing may be acknowledged; a restart begins anew.
func removed(b *bed) error {
	b.counted = true
	if err := b.a.Start(); err != nil {
		return err
	}
	if err := b.send(300 * time.Millisecond); err != nil {
		return err
	}
	if err := os.RemoveAll(b.data); err != nil {
		return err
	}
	before, _, _, _ := b.a.Ledger.Answers()
	if err := b.send(time.Second); err != nil {
		return err
	}
	after, refused, bare, _ := b.a.Ledger.Answers()
	if after > before || refused == 0 || bare > 0 {
		return fmt.Errorf("with the folder gone %d were acknowledged, %d refused, %d of them without Retry-After", after-before, refused, bare)
	}
	b.a.Kill()
	if err := b.a.Start(); err != nil {
		return fmt.Errorf("a restart: %w", err)
	}
	b.told = fmt.Sprintf("acknowledged before %d, after 0, 503: %d, a restart begins anew", before, refused)
	return b.recovers()
}

// forgets lets a sync fail, whose pages no later sync writes, kills acuse or not, and cuts the
// power soon after, under load: where it was killed, at one of the first syncs of the next start.
func forgets(kill bool) func(*bed) error {
	return func(b *bed) error {
		if err := b.mount(cutfs.New()); err != nil {
			return err
		}
		rnd := rand.New(rand.NewPCG(b.o.seed, 2))
		for n := 1; n <= b.o.times; n++ {
			if err := b.forget(n, kill, rnd); err != nil {
				return fmt.Errorf("sync %d (seed %d): %w", n, b.o.seed, err)
			}
		}
		b.told = fmt.Sprintf(", %d in turn", b.o.times)
		return nil
	}
}

func (b *bed) forget(n int, kill bool, rnd *rand.Rand) error {
	if err := b.a.Start(); err != nil {
		return err
	}
	ended := b.sending()
	b.disk.Fail(cutfs.Fault{Op: cutfs.OpSync, After: n, Err: syscall.EIO, Lasting: kill}) // until the kill
	for end := time.Now().Add(10 * time.Second); b.disk.Hits() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if kill {
		b.a.Kill()
	}
	if b.disk.Heal() == 0 {
		return errors.Join(errors.New("was never reached"), ended())
	}
	if kill {
		b.disk.Fail(cutfs.Fault{Op: cutfs.OpSync, After: 1 + rnd.IntN(12), Dead: true})
		if err := b.a.Launch(); err != nil {
			return errors.Join(err, ended())
		}
		for end := time.Now().Add(5 * time.Second); b.disk.Hits() == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	} else {
		time.Sleep(time.Duration(rnd.IntN(60)) * time.Millisecond)
	}
	after := b.disk.Cut(cutfs.Losses[rnd.IntN(len(cutfs.Losses))], rnd)
	return errors.Join(b.end(), ended(), b.mount(after))
}
