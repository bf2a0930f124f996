package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/store"
)

func isErr(err, want error) bool { return errors.Is(err, want) }

// full makes the volume full for SQLite, or not any more: it may not grow the file. The
// limit belongs to the connection, so that one opened anew is told again.
func full(t *testing.T, db *DB, on bool) {
	t.Helper()
	limit := "PRAGMA max_page_count = 4294967294"
	if on {
		limit = "PRAGMA max_page_count = 1" // as many as there are
	}
	onWriter(t, db, func(w *writer) error {
		w.open = func() (*conn, error) {
			c, err := db.connectWriter(t.Context())
			if err == nil {
				err = c.script(limit)
			}
			return c, err
		}
		return w.script(limit)
	})
}

// hold keeps the committer busy until release is called: what is written meanwhile
// becomes one batch.
func hold(t *testing.T, db *DB) (release func()) {
	t.Helper()
	started, free, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- db.do(t.Context(), func(*writer) error { close(started); <-free; return nil })
	}()
	<-started
	return func() {
		close(free)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// big is an arrival that needs new pages.
func big(id string) store.Arrival {
	a := arrival("s", id, "app")
	a.Body = bytes.Repeat([]byte("x"), 256<<10)
	return a
}

func TestP1FullDiskAnswersUnavailableAndKeepsNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	db := opened(t, t.TempDir(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := db.PutSetting(t.Context(), "x", "1"); err != nil {
		t.Fatal(err)
	}
	accept(t, db, arrival("s", "first", "app"))
	lease, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "n", Max: 1, TTL: time.Minute, Now: t0})
	if err != nil {
		t.Fatal(err)
	}
	full(t, db, true)
	for i := range 3 {
		if _, err := db.Accept(t.Context(), big(fmt.Sprint(i))); !isErr(err, store.ErrUnavailable) {
			t.Fatalf("accept on a full disk: %v", err)
		}
		db.space.Forget()
	}
	if h := db.Health(); h.Writable || h.Err == "" {
		t.Errorf("health while full: %+v", h)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d error lines, want 1:\n%s", n, &log)
	}
	if err := db.Settle(t.Context(), store.Settlement{Job: 1, Token: lease[0].Token, At: t0, State: store.Delivered, Result: store.Result{Outcome: store.Succeeded}}); err != nil {
		t.Errorf("settle on a full disk: %v", err)
	}
	full(t, db, false)
	db.space.Forget()
	if id := accept(t, db, big("0")); id != 2 {
		t.Errorf("number %d after the full disk, want 2: nothing was kept, no key is burned", id)
	}
	if h := db.Health(); !h.Writable || h.Err != "" {
		t.Errorf("health after: %+v", h)
	}
	if problems, err := db.Check(t.Context(), true); err != nil || len(problems) > 0 {
		t.Errorf("check: %q %v", problems, err)
	}
}

func TestFullDiskGivesUpTheReserveForSettles(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	accept(t, db, arrival("s", "first", "app"))
	if _, err := os.Stat(db.space.File); err != nil {
		t.Fatal(err)
	}
	full(t, db, true)
	// One batch with an arrival that finds no room and a setting that does: the
	// committer waits in a write until both have come.
	release := hold(t, db)
	var wg sync.WaitGroup
	var acceptErr, putErr error
	wg.Go(func() { _, acceptErr = db.Accept(t.Context(), big("big")) })
	wg.Go(func() { putErr = db.PutSetting(t.Context(), "x", "1") })
	for db.committer.Waiting() < 2 {
		runtime.Gosched()
	}
	release()
	wg.Wait()
	if !isErr(acceptErr, store.ErrUnavailable) || putErr != nil {
		t.Errorf("accept: %v; setting: %v", acceptErr, putErr)
	}
	if _, err := os.Stat(db.space.File); !isErr(err, os.ErrNotExist) {
		t.Errorf("the reserve is still there: %v", err)
	}
	full(t, db, false)
	db.space.Forget()
	accept(t, db, big("big"))
	if _, err := os.Stat(db.space.File); err != nil {
		t.Errorf("the reserve was not made again: %v", err)
	}
}

func TestBelowTheFloorNothingIsAcceptedAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := opened(t, dir, Options{})
	accept(t, db, arrival("s", "first", "app"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = opened(t, dir, Options{MinFree: 1 << 61})
	if _, err := db.Accept(t.Context(), arrival("s", "a", "app")); !isErr(err, store.ErrUnavailable) {
		t.Errorf("accept: %v", err)
	}
	if h := db.Health(); h.Writable || h.Err == "" {
		t.Errorf("health: %+v", h)
	}
	lease, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "n", Max: 1, TTL: time.Minute, Now: t0})
	if err != nil || len(lease) != 1 {
		t.Fatalf("lease: %v", err)
	}
	if err := db.Settle(t.Context(), store.Settlement{Job: 1, Token: lease[0].Token, At: t0, State: store.Delivered}); err != nil {
		t.Errorf("settle: %v", err)
	}
}

// TestP1FailedCommitReportsNothingWritten breaks COMMIT itself: a lost connection, in
// effect.
func TestP1FailedCommitReportsNothingWritten(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	accept(t, db, arrival("s", "first", "app"))
	err := db.do(t.Context(), func(w *writer) error {
		if err := w.audit(store.AuditEntry{Act: "lost"}); err != nil {
			return err
		}
		return w.script("ROLLBACK") // so that COMMIT fails
	})
	if !isErr(err, store.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	if h := db.Health(); h.Writable {
		t.Error("health says writable after a failed commit")
	}
	list, err := db.AuditLog(t.Context(), 0, 10)
	if err != nil || len(list) != 0 {
		t.Errorf("written all the same: %+v %v", list, err)
	}
	if id := accept(t, db, arrival("s", "second", "app")); id != 2 || !db.Health().Writable {
		t.Errorf("number %d, health %+v", id, db.Health())
	}
	totals, err := db.Totals(t.Context())
	if err != nil || totals.Queued != 2 || totals.Deliveries != 2 {
		t.Errorf("totals: %+v %v", totals, err)
	}
}

// TestRefusedWriteFailsAlone puts one write that a trigger refuses among writes of
// every kind.
func TestRefusedWriteFailsAlone(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	execNow(t, db.path, `CREATE TRIGGER poison BEFORE INSERT ON deliveries WHEN NEW.event_id = 'poison' BEGIN SELECT RAISE(ABORT, 'poison'); END`)
	accept(t, db, arrival("s", "first", "app"))
	release := hold(t, db)
	var wg sync.WaitGroup
	errs := map[string]error{}
	var mu sync.Mutex
	run := func(name string, f func() error) {
		wg.Go(func() {
			err := f()
			mu.Lock()
			errs[name] = err
			mu.Unlock()
		})
	}
	run("a", func() error { _, err := db.Accept(t.Context(), arrival("s", "a", "new lane")); return err })
	run("poison", func() error {
		_, err := db.Accept(t.Context(), arrival("newer source", "poison", "newer lane"))
		return err
	})
	run("b", func() error { _, err := db.Accept(t.Context(), arrival("s", "b", "newer lane")); return err })
	run("setting", func() error { return db.PutSetting(t.Context(), "x", "1") })
	run("lost", func() error {
		return db.Settle(t.Context(), store.Settlement{Job: 1, Token: 77, State: store.Delivered})
	})
	run("lease", func() error {
		list, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "newer lane", Owner: "n", Max: 9, TTL: time.Minute, Now: t0})
		if err == nil && (len(list) != 1 || list[0].Delivery.EventID != "b") {
			err = fmt.Errorf("leased %+v", list)
		}
		return err
	})
	for db.committer.Waiting() < 6 {
		runtime.Gosched()
	}
	before := db.Health().Commits
	release()
	wg.Wait()
	for name, err := range errs {
		switch name {
		case "poison":
			if !isErr(err, store.ErrRefused) {
				t.Errorf("poison: %v", err)
			}
		case "lost":
			if !isErr(err, store.ErrLeaseLost) {
				t.Errorf("lost: %v", err)
			}
		default:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n := db.Health().Commits - before; n > 2 {
		t.Errorf("%d transactions for one batch", n)
	}
	if totals, err := db.Totals(t.Context()); err != nil || totals.Deliveries != 3 || totals.Queued != 2 || totals.Leased != 1 {
		t.Errorf("totals: %+v %v", totals, err)
	}
	if problems, err := db.Check(t.Context(), true); err != nil || len(problems) > 0 {
		t.Errorf("check: %q %v", problems, err)
	}
}

// TestP8OpeningWritesTheJournalAgain is what scripts/faults shows at length: a process ended
// after a sync that failed, and what the next one builds on must be on the disk.
func TestP8OpeningWritesTheJournalAgain(t *testing.T) {
	t.Parallel()
	dir, left := t.TempDir(), t.TempDir()
	db := opened(t, dir, Options{})
	accept(t, db, arrival("s", "first", "app"))
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"acuse.db", "acuse.db-wal"} { // as a kill leaves it
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = errors.Join(os.WriteFile(filepath.Join(left, name), b, 0o600), os.Chtimes(filepath.Join(left, name), old, old))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again := opened(t, left, Options{})
	if st, err := os.Stat(filepath.Join(left, "acuse.db-wal")); err != nil || st.ModTime().Equal(old) {
		t.Errorf("the journal was not written again: %v", err)
	}
	if id := accept(t, again, arrival("s", "second", "app")); id != 2 {
		t.Errorf("number %d, want 2", id)
	}
}
