package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"acuse/store"
)

var lifeTests = []test{
	{"P8", "numbers, keys, leases and dead letters go on where they were after a restart", func(e *env) {
		first := e.accepted(arrival("s", "a"))
		e.dead(t0)
		second := e.accepted(arrival("s", "b"))
		l := e.lease(t0)
		for range 3 {
			e.reopen()
		}
		e.state(first, store.StateDead)
		e.state(second, store.StateLeased)
		e.settle(l, store.Delivered, at(time.Second))
		third := e.accepted(arrival("s", "c"))
		same(e, "numbers", fmt.Sprint(first, second, third), "1 2 3")
		same(e, "highest number", e.totals().Deliveries, 3)
		e.sound()
	}},
	{"P8", "a second opener of the same data is refused while the first one works", func(e *env) {
		_, err := e.open(e.dir)
		e.is(err, store.ErrLocked)
		e.accepted(arrival("s", "a"))
	}},
	{"P1", "nothing is accepted into a file that was removed", func(e *env) {
		e.accepted(arrival("s", "a"))
		files, err := filepath.Glob(filepath.Join(e.dir, "acuse.db*"))
		e.ok(err)
		for _, f := range append(files, filepath.Join(e.dir, "acuse.bolt")) {
			if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
				e.Fatal(err)
			}
		}
		for range 3 {
			_, err = e.s.Accept(e.Context(), arrival("s", "b"))
			e.is(err, store.ErrUnavailable)
		}
		same(e, "writable", e.s.Health().Writable, false)
	}},
	{"", "after Close every call says so", func(e *env) {
		e.accepted(arrival("s", "a"))
		s := e.s
		e.ok(s.Close())
		e.s = nil
		_, err := s.Accept(e.Context(), arrival("s", "b"))
		e.is(err, store.ErrClosed)
		_, err = s.Lease(e.Context(), e.query("app", t0))
		e.is(err, store.ErrClosed)
		_, err = s.Delivery(e.Context(), 1)
		e.is(err, store.ErrClosed)
		_, _, err = s.Deliveries(e.Context(), store.DeliveryFilter{})
		e.is(err, store.ErrClosed)
		_, _, err = s.Setting(e.Context(), "x")
		e.is(err, store.ErrClosed)
		e.is(s.PutSetting(e.Context(), "x", "y"), store.ErrClosed)
	}},
	{"P1", "a request whose client left is written whole or not at all", func(e *env) {
		for i := range 30 {
			ctx, cancel := context.WithCancel(e.Context())
			done := make(chan error)
			go func() {
				_, err := e.s.Accept(ctx, arrival("s", fmt.Sprint(i, "a"), fmt.Sprint(i, "b")))
				done <- err
			}()
			cancel()
			if err := <-done; err != nil {
				e.is(err, context.Canceled)
			}
		}
		e.reopen()
		for _, d := range e.list(store.DeliveryFilter{Limit: 500}) {
			same(e, "jobs", len(d.Jobs), 1)
		}
		same(e, "an even number of items", len(e.list(store.DeliveryFilter{Limit: 500}))%2, 0)
		e.sound()
	}},
	{"", "health tells what the engine does", func(e *env) {
		before := e.s.Health()
		e.accepted(arrival("s", "a"))
		h := e.s.Health()
		same(e, "writable", h.Writable, true)
		same(e, "error", h.Err, "")
		same(e, "commits", h.Commits, before.Commits+1)
		same(e, "writes", h.Writes, before.Writes+1)
		if h.Engine == "" || h.Schema < 1 || h.Bytes <= 0 || h.Free <= 0 {
			e.Fatalf("health: %+v", h)
		}
	}},
	{"", "a backup is a whole store, taken while writes go on, and never overwrites", func(e *env) {
		e.accepted(arrival("s", "first"))
		stop := make(chan struct{})
		done := make(chan error)
		go func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				if _, err := e.s.Accept(e.Context(), arrival("s", fmt.Sprint(i))); err != nil {
					done <- err
					return
				}
			}
		}()
		dir := e.TempDir()
		path := filepath.Join(dir, filepath.Base(e.dataFile()))
		e.ok(e.s.Backup(e.Context(), path))
		close(stop)
		e.ok(<-done)
		if err := e.s.Backup(e.Context(), path); !errors.Is(err, os.ErrExist) {
			e.Fatalf("a second backup to the same file: %v", err)
		}
		st, err := os.Stat(path)
		e.ok(err)
		same(e, "its mode", st.Mode().Perm(), 0o600)
		entries, err := os.ReadDir(dir)
		e.ok(err)
		same(e, "files left", len(entries), 1)
		copied := &env{T: e.T, dir: dir, open: e.open}
		copied.start()
		same(e, "event", copied.delivery(1).EventID, "first")
		copied.sound()
		same(e, "a repeat", copied.accept(arrival("s", "first"))[0].Kind, store.Duplicate)
	}},
}

// dataFile is the largest file of the data folder: the store's own.
func (e *env) dataFile() string {
	e.Helper()
	matches, err := filepath.Glob(filepath.Join(e.dir, "acuse.*"))
	e.ok(err)
	for _, m := range matches {
		if ext := filepath.Ext(m); ext == ".db" || ext == ".bolt" {
			return m
		}
	}
	e.Fatal("no data file")
	return ""
}
