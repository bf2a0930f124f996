package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// filled opens a store with some 20 MB in it.
func filled(t *testing.T) *DB {
	t.Helper()
	db := opened(t, t.TempDir(), Options{})
	for i := range 80 {
		if _, err := db.Accept(t.Context(), big(fmt.Sprint("old-", i))); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// The copy is of the moment at which it ended: all that was acknowledged before it began is
// in it, what is in it was acknowledged in order, and the journal did not grow meanwhile.
func TestABackupWhileEventsComeInIsWholeAndHoldsUpNoJournal(t *testing.T) {
	t.Parallel()
	db := filled(t)
	var acked, before, after atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	longest := int64(0)
	go func() {
		for n := int64(1); ctx.Err() == nil; n++ {
			if _, err := db.Accept(context.WithoutCancel(ctx), arrival("s", fmt.Sprint("new-", n), "app")); err != nil {
				done <- err
				return
			}
			acked.Store(n)
			longest = max(longest, fileSize(t, db.path+"-wal"))
		}
		done <- nil
	}()
	for acked.Load() == 0 { // until it works
	}
	before.Store(acked.Load())
	path := filepath.Join(t.TempDir(), "copy", "acuse.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := db.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	after.Store(acked.Load())
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if longest > 64<<20 {
		t.Errorf("the journal grew to %d bytes", longest)
	}
	copied, err := Open(t.Context(), filepath.Dir(path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { copied.Close() })
	problems, err := copied.Check(t.Context(), true)
	if err != nil || len(problems) > 0 {
		t.Fatalf("check: %v, %q", err, problems)
	}
	totals, err := copied.Totals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := totals.Deliveries
	if n < 80+before.Load() || n > 81+after.Load() {
		t.Errorf("%d deliveries in the copy: %d when it began, %d when it ended", n, 80+before.Load(), 80+after.Load())
	}
	for id := int64(1); id <= n; id++ {
		if _, err := copied.Delivery(t.Context(), id); err != nil {
			t.Fatalf("delivery %d of %d: %v", id, n, err)
		}
	}
	if after.Load() == before.Load() {
		t.Error("nothing came in during the backup: it shows nothing")
	}
}

func TestABackupThatIsGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	db := filled(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- db.Backup(ctx, filepath.Join(dir, "copy.db")) }()
	for { // until some pages are copied
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			break
		}
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) > 0 {
		t.Errorf("left: %v, %v", list, err)
	}
	if err := db.Backup(t.Context(), filepath.Join(dir, "copy.db")); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestAStorageFailureEndsABackupWithWords(t *testing.T) {
	t.Parallel()
	db := filled(t)
	var c *copying
	if err := db.between(t.Context(), func(w *writer) (err error) {
		c, err = w.copyTo(filepath.Join(t.TempDir(), "copy.db"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.between(t.Context(), func(w *writer) error { w.recover(); return nil }); err != nil {
		t.Fatal(err)
	}
	err := db.between(t.Context(), func(w *writer) error {
		_, err := c.step(w, copyTime)
		return err
	})
	if !errors.Is(err, errCopyEnded) {
		t.Errorf("a step after the failure: %v", err)
	}
	if _, err := db.Accept(t.Context(), arrival("s", "after", "app")); err != nil {
		t.Error(err)
	}
}
