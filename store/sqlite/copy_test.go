package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"acuse/store"
	"acuse/store/storetest"
)

// TestACopyUnderLoadKeepsTheJournalShort stops a backup half-way, takes in and removes far
// more than the journal may hold, and lets it go on: it did not begin again, the journal was
// emptied meanwhile, and the copy is the store as it is now.
func TestACopyUnderLoadKeepsTheJournalShort(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	longest, n := int64(0), 0
	take := func(count int) {
		t.Helper()
		for range count {
			n++
			a := arrival("s", fmt.Sprint(n), "app")
			a.Body = []byte(strings.Repeat(fmt.Sprint(n), 100_000/len(fmt.Sprint(n))))
			accept(t, db, a)
			longest = max(longest, db.Health().Journal)
		}
	}
	take(80)
	into := t.TempDir()
	var c *copying
	run := func(f func(*writer) error) {
		t.Helper()
		if err := db.between(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	run(func(w *writer) (err error) {
		c, err = w.copyTo(filepath.Join(into, "acuse.db"))
		return err
	})
	copied := 0
	half := func(*writer) error {
		_, err := c.b.Step(1000)
		copied = c.b.PageCount() - c.b.Remaining()
		return err
	}
	run(half)
	before := copied
	take(300) // 30 MB
	list, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "w", Max: 100, TTL: time.Minute, Now: t0})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		if err := db.Settle(t.Context(), store.Settlement{Job: l.Job, Token: l.Token, At: t0, State: store.Delivered}); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := db.Purge(t.Context(), store.PurgeRule{Now: t0.AddDate(1, 0, 0), Age: time.Hour, Work: 1 << 20}); err != nil || p.Deliveries != 100 {
		t.Fatalf("%+v %v", p, err)
	}
	if freed, _, err := db.Reclaim(t.Context(), 4<<20); err != nil || freed == 0 {
		t.Fatal(freed, err)
	}
	run(half)
	if copied < before+300 {
		t.Errorf("the copy began again: %d pages copied, before the load %d", copied, before)
	}
	if longest > 16<<20 {
		t.Errorf("the journal grew to %d bytes", longest)
	}
	for more := true; more; {
		run(func(w *writer) (err error) { more, err = c.step(w, copyTime); return err })
	}
	run(func(w *writer) error {
		whole, err := c.done(w)
		if err != nil {
			return err
		}
		return whole.close()
	})
	there := opened(t, into, Options{})
	if problems, err := there.Check(t.Context(), true); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if !slices.Equal(storetest.Contents(t, there), storetest.Contents(t, db)) {
		t.Error("the copy is not the store")
	}
}

// A backup says in its header that there is no journal beside it: it can be opened from a
// medium that can only be read.
func TestABackupIsAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	accept(t, db, arrival("s", "a", "app"))
	dir := t.TempDir()
	path := filepath.Join(dir, "copy.db")
	if err := db.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || b[18] != 1 || b[19] != 1 {
		t.Fatalf("versions in the header %v, want 1: no journal beside it (%v)", b[18:20], err)
	}
}

// What retention removed lies in free pages until they are reclaimed: a backup leaves them out.
func TestABackupHoldsNothingThatWasRemoved(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	const word = "REMOVED-FOR-GOOD"
	for i := range 40 {
		a := arrival("s", fmt.Sprint(i))
		a.Body = []byte(strings.Repeat(word+" ", 2000))
		a.Events[0].Jobs = nil
		accept(t, db, a)
	}
	accept(t, db, arrival("s", "stays", "app"))
	if p, err := db.Purge(t.Context(), store.PurgeRule{Now: t0.AddDate(1, 0, 0), Age: time.Hour, Work: 1 << 20}); err != nil || p.Deliveries != 40 {
		t.Fatalf("%+v %v", p, err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), word); n > 0 {
		t.Errorf("the copy holds %d times what was removed", n)
	}
	if len(b) > 1<<20 {
		t.Errorf("the copy has %d bytes, free pages and all", len(b))
	}
}
