package bolt

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

	bbolt "go.etcd.io/bbolt"

	"acuse/store"
	"acuse/store/engine"
)

func isErr(err, want error) bool { return errors.Is(err, want) }

// onWriter runs f on the committer's goroutine, inside a transaction.
func onWriter(t testing.TB, db *DB, f func(w *writer) error) {
	t.Helper()
	if err := db.do(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// full keeps the file from growing, as a full volume does, or lets it grow again.
func full(t *testing.T, db *DB, on bool) {
	t.Helper()
	onWriter(t, db, func(w *writer) error {
		if w.DB().MaxSize = 0; on {
			w.DB().MaxSize = 1
		}
		return nil
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

func sound(t *testing.T, db *DB) {
	t.Helper()
	if problems, err := db.Check(t.Context(), true); err != nil || len(problems) > 0 {
		t.Errorf("check: %q %v", problems, err)
	}
}

func leased(t *testing.T, db *DB) store.Lease {
	t.Helper()
	list, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "n", Max: 1, TTL: time.Minute, Now: t0})
	if err != nil || len(list) != 1 {
		t.Fatalf("leased %d: %v", len(list), err)
	}
	return list[0]
}

func TestP1FullDiskAnswersUnavailableAndKeepsNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	db := opened(t, t.TempDir(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	accept(t, db, arrival("s", "first", "app"))
	l := leased(t, db)
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
	if err := db.Settle(t.Context(), store.Settlement{Job: 1, Token: l.Token, At: t0, State: store.Delivered}); err != nil {
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
	sound(t, db)
}

func TestFullDiskGivesUpTheReserveForSettles(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	accept(t, db, arrival("s", "first", "app"))
	if _, err := os.Stat(db.space.File); err != nil {
		t.Fatal(err)
	}
	full(t, db, true)
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
	if err := db.Settle(t.Context(), store.Settlement{Job: 1, Token: leased(t, db).Token, At: t0, State: store.Delivered}); err != nil {
		t.Errorf("settle: %v", err)
	}
}

// TestCapLeavesRoomForTheWork: near its cap the file takes nothing new, what is there is
// worked off, and once that is purged it takes events again.
func TestCapLeavesRoomForTheWork(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{MaxBytes: 32 << 20})
	n := 0
	for ; n < 100; n++ {
		if _, err := db.Accept(t.Context(), big(fmt.Sprint(n))); err != nil {
			if !isErr(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "32 MiB") {
				t.Fatal(err)
			}
			break
		}
	}
	if n < 50 || n > 70 {
		t.Fatalf("%d events of 256 KiB were taken", n)
	}
	if h := db.Health(); h.Writable || !strings.Contains(h.Err, "32 MiB") {
		t.Errorf("health: %+v", h)
	}
	for range n {
		l := leased(t, db)
		if err := db.Settle(t.Context(), store.Settlement{Job: l.Job, Token: l.Token, At: t0, State: store.Delivered}); err != nil {
			t.Fatal(err)
		}
	}
	r := store.PurgeRule{Now: t0.Add(48 * time.Hour), Age: time.Hour, Work: 50_000}
	if _, err := db.Purge(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	onWriter(t, db, func(*writer) error { return nil })
	accept(t, db, big("after"))
	sound(t, db)
}

// TestP1CommitThatFailsAfterAllReachedTheFile: the last sync failed, the file holds the
// transaction all the same. Its callers were told that it failed; what follows must not
// write over it.
func TestP1CommitThatFailsAfterAllReachedTheFile(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	accept(t, db, arrival("s", "a", "app"))
	before, tally := db.w.committed, engine.Tally{} // nothing is being written
	accept(t, db, arrival("new source", "b", "new lane"))
	db.w.committed, db.w.sick = before, true
	delete(db.w.names, "new lane")
	db.mu.Lock()
	db.tally = tally
	db.mu.Unlock()
	if id := accept(t, db, arrival("s", "c", "new lane")); id != 3 {
		t.Errorf("number %d, want 3: 2 is taken", id)
	}
	totals, err := db.Totals(t.Context())
	if err != nil || totals.Deliveries != 3 || totals.Queued != 3 || totals.ByDestination["new lane"].Queued != 2 {
		t.Errorf("totals: %+v %v", totals, err)
	}
	if db.w.sick {
		t.Error("still sick")
	}
	sound(t, db)
}

func TestRemovedFileIsNoPlaceToAcknowledge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := opened(t, dir, Options{})
	accept(t, db, arrival("s", "a", "app"))
	away := filepath.Join(dir, "away")
	if err := os.Rename(db.path, away); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := db.Accept(t.Context(), arrival("s", "b", "app")); !isErr(err, store.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
	}
	if db.Health().Writable {
		t.Error("health says writable")
	}
	if err := os.Rename(away, db.path); err != nil {
		t.Fatal(err)
	}
	accept(t, db, arrival("s", "c", "app"))
	sound(t, db)
}

// TestFaultyWriteFailsAlone puts writes that the engine finds fault with among writes of
// every kind.
func TestFaultyWriteFailsAlone(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	accept(t, db, arrival("s", "first", "app"))
	release := hold(t, db)
	var wg sync.WaitGroup
	var mu sync.Mutex
	errs := map[string]error{}
	run := func(name string, f func() error) {
		wg.Go(func() {
			err := f()
			mu.Lock()
			errs[name] = err
			mu.Unlock()
		})
	}
	half := func(w *writer) error {
		if _, err := w.nameID("half"); err != nil {
			return err
		}
		return w.audit(store.AuditEntry{Act: "half"})
	}
	run("a", func() error { _, err := db.Accept(t.Context(), arrival("s", "a", "new lane")); return err })
	run("poison", func() error {
		return db.do(t.Context(), func(w *writer) error {
			if err := half(w); err != nil {
				return err
			}
			return w.put(tSettings, make([]byte, bbolt.MaxKeySize+1), nil)
		})
	})
	run("unreadable", func() error {
		return db.do(t.Context(), func(w *writer) error {
			if err := half(w); err != nil {
				return err
			}
			var page []byte
			_ = page[len(w.names)] // as bbolt does on a broken page
			return nil
		})
	})
	run("setting", func() error { return db.PutSetting(t.Context(), "x", "1") })
	run("lost", func() error {
		return db.Settle(t.Context(), store.Settlement{Job: 1, Token: 77, State: store.Delivered})
	})
	run("lease", func() error {
		list, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "new lane", Owner: "n", Max: 9, TTL: time.Minute, Now: t0})
		if err == nil && (len(list) != 1 || list[0].Delivery.EventID != "a") {
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
	want := map[string]error{"poison": store.ErrRefused, "unreadable": store.ErrUnavailable, "lost": store.ErrLeaseLost}
	for name, err := range errs {
		if !isErr(err, want[name]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := db.Health().Commits - before; n > 2 {
		t.Errorf("%d transactions for one batch", n)
	}
	if log, err := db.AuditLog(t.Context(), 0, 10); err != nil || len(log) != 0 {
		t.Errorf("half a write is kept: %+v %v", log, err)
	}
	if totals, err := db.Totals(t.Context()); err != nil || totals.Deliveries != 2 || totals.Queued != 1 || totals.Leased != 1 {
		t.Errorf("totals: %+v %v", totals, err)
	}
	sound(t, db)
}

// TestP8OpeningWritesTheFirstPagesAgain is what scripts/faults shows at length: a process ended
// before the page that made its last transaction valid was synced.
func TestP8OpeningWritesTheFirstPagesAgain(t *testing.T) {
	t.Parallel()
	dir, left := t.TempDir(), t.TempDir()
	db := opened(t, dir, Options{})
	accept(t, db, arrival("s", "first", "app"))
	b, err := os.ReadFile(filepath.Join(dir, "acuse.bolt")) // as a kill leaves it
	if err != nil {
		t.Fatal(err)
	}
	path, old := filepath.Join(left, "acuse.bolt"), time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(path, b, 0o600), os.Chtimes(path, old, old)); err != nil {
		t.Fatal(err)
	}
	again := opened(t, left, Options{})
	if st, err := os.Stat(path); err != nil || st.ModTime().Equal(old) {
		t.Errorf("they were not written again: %v", err)
	}
	if id := accept(t, again, arrival("s", "second", "app")); id != 2 {
		t.Errorf("number %d, want 2", id)
	}
}
