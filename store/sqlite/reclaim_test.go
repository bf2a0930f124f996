package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"acuse/store"
)

// fat accepts n events of kilobytes each and delivers none.
func fat(t *testing.T, db *DB, n, kilobytes int) {
	t.Helper()
	for i := range n {
		a := arrival("s", fmt.Sprint(i), "nobody")
		a.Body = bytes.Repeat([]byte("x"), kilobytes<<10)
		a.Events[0].Jobs[0].State = store.Filtered
		accept(t, db, a)
	}
}

func TestReclaimShrinksTheFileInSmallSteps(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	fat(t, db, 400, 32)
	r := store.PurgeRule{Now: t0.Add(100 * time.Hour), Age: time.Hour, Work: 1 << 20}
	if p, err := db.Purge(t.Context(), r); err != nil || p.Deliveries != 400 {
		t.Fatal(p, err)
	}
	if err := truncate(t, db); err != nil {
		t.Fatal(err)
	}
	before := fileSize(t, db.path)
	freed, left, err := db.Reclaim(t.Context(), 1<<20)
	if err != nil || freed < 1<<20 || freed > 2<<20 || left == 0 {
		t.Fatalf("freed %d, left %d, %v", freed, left, err)
	}
	for range 100 {
		if _, left, err = db.Reclaim(t.Context(), 1<<20); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break
		}
	}
	if err := truncate(t, db); err != nil {
		t.Fatal(err)
	}
	if after := fileSize(t, db.path); after > before/10 {
		t.Fatalf("the file is %d bytes of %d", after, before)
	}
	if problems, err := db.Check(t.Context(), true); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
}

func truncate(t *testing.T, db *DB) error {
	t.Helper()
	return db.submit(t.Context(), &write{after: func(w *writer) error { return w.truncateJournal(1000) }}, 0)
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// TestASlowReaderDoesNotLetTheJournalGrow holds a read transaction open, as a hanging
// reader would, while far more than the budget comes in.
func TestASlowReaderDoesNotLetTheJournalGrow(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	fat(t, db, 1, 1)
	ended := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		ended <- db.view(context.Background(), func(tx *sql.Tx) error {
			for i := 0; ; i++ {
				var n int
				if err := tx.QueryRow("SELECT count(*) FROM deliveries").Scan(&n); err != nil {
					return err
				}
				if i == 0 {
					close(began)
				}
			}
		})
	}()
	<-began
	most := int64(0)
	for i := 0; most == 0 || i < 2000; i++ {
		a := arrival("slow", fmt.Sprint(i), "nobody")
		a.Body = bytes.Repeat([]byte("y"), 64<<10)
		accept(t, db, a)
		most = max(most, db.Health().Journal)
		if most > 64<<20 {
			t.Fatalf("the journal is %d bytes", most)
		}
	}
	if most < 16<<20 {
		t.Fatalf("the reader held nothing up: the journal was at most %d bytes", most)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("the reader ended with %v", err)
		}
	case <-t.Context().Done():
	}
}
