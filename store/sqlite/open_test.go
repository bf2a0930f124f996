package sqlite

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sqlite "modernc.org/sqlite"

	"acuse/store"
	"acuse/store/storetest"
)

var t0 = time.UnixMilli(1767225600000).UTC()

// opened opens a store of the test's own.
func opened(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(storetest.Background, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func arrival(source, id string, destinations ...string) store.Arrival {
	e := store.Event{ID: id, Type: "invoice.paid", Part: -1, Window: time.Hour}
	for _, d := range destinations {
		e.Jobs = append(e.Jobs, store.NewJob{Destination: d, Key: source + ":" + id + ":" + d, State: store.Queued})
	}
	return store.Arrival{Source: source, Provider: "stripe", ReceivedAt: t0, Method: "POST", Target: "/in/" + source, Body: []byte("{}"), Events: []store.Event{e}}
}

func accept(t testing.TB, db *DB, a store.Arrival) int64 {
	t.Helper()
	out, err := db.Accept(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Delivery
}

// onWriter runs f on the committer's goroutine, inside a transaction.
func onWriter(t testing.TB, db *DB, f func(w *writer) error) {
	t.Helper()
	if err := db.do(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// execNow runs SQL on a connection of its own.
func execNow(t testing.TB, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, "_pragma=busy_timeout(5000)"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// TestPragmas pins, on the very connections at work, what SIGKILL cannot show: a commit
// is on the disk when it returns.
func TestPragmas(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	wantWriter := map[string]string{
		"journal_mode": "wal", "synchronous": "2", "page_size": "8192", "auto_vacuum": "2", "temp_store": "2", "wal_autocheckpoint": "1000",
		"busy_timeout": "5000", "locking_mode": "normal", "query_only": "0", "journal_size_limit": "33554432", "trusted_schema": "0", "application_id": "1633908083", "user_version": "3",
	}
	onWriter(t, db, func(w *writer) error {
		for name, want := range wantWriter {
			row, _, err := w.row("PRAGMA " + name)
			if err != nil {
				return err
			}
			if got := fmt.Sprint(row[0]); got != want {
				t.Errorf("writer: %s is %s, want %s", name, got, want)
			}
		}
		return nil
	})
	reader := map[string]string{"query_only": "1", "journal_mode": "wal", "busy_timeout": "5000", "temp_store": "2", "trusted_schema": "0"}
	for name, want := range reader {
		var got string
		if err := db.read.QueryRow("PRAGMA " + name).Scan(&got); err != nil || got != want {
			t.Errorf("reader: %s is %s (%v), want %s", name, got, err, want)
		}
	}
	if _, err := db.read.Exec("DELETE FROM names"); err == nil {
		t.Error("a reader can write")
	}
	if _, unavailable := sqlite.Fdatasync(true); unavailable == nil && !sqlite.FdatasyncEnabled() {
		t.Error("commits use fsync, not fdatasync")
	}
}

func TestFolderAndFilesAreTheOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data ?%#&", "deep")
	db := opened(t, dir, Options{})
	accept(t, db, arrival("s", "a", "app"))
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v %v", st.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", e.Name(), info.Mode(), err)
		}
		names = append(names, e.Name())
	}
	if want := []string{"acuse.db", "acuse.db-shm", "acuse.db-wal", "acuse.lock", "acuse.reserve"}; !slices.Equal(names, want) {
		t.Errorf("files: %v, want %v", names, want)
	}
}

func TestSecondProcessIsToldWhoHasTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opened(t, dir, Options{})
	_, err := open(dir)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process id %d", os.Getpid())) {
		t.Fatalf("got %v", err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := opened(t, dir, Options{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	execNow(t, db.path, "PRAGMA user_version = 99")
	if _, err := open(dir); !isErr(err, store.ErrNewerSchema) {
		t.Fatalf("got %v", err)
	}
	execNow(t, db.path, "PRAGMA user_version = 3")
	opened(t, dir, Options{}) // refused without a trace
}

func TestForeignFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	execNow(t, filepath.Join(dir, "acuse.db"), "CREATE TABLE theirs (x)")
	if _, err := open(dir); err == nil || !strings.Contains(err.Error(), "not a data file of acuse") {
		t.Fatalf("got %v", err)
	}
}

func TestFailedMigrationLeavesTheVersionBefore(t *testing.T) {
	t.Parallel()
	c, err := connect(t.Context(), filepath.Join(t.TempDir(), "x.db"), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := apply(c, 1, "CREATE TABLE a (x); CREATE TABLE a (x);"); err == nil {
		t.Fatal("a broken migration went through")
	}
	tables, err := c.number("SELECT count(*) FROM sqlite_schema")
	version, err2 := c.number("PRAGMA user_version")
	if err != nil || err2 != nil || tables != 0 || version != 0 {
		t.Fatalf("%d tables, version %d (%v, %v)", tables, version, err, err2)
	}
}

// TestNumbersAreNeverReused deletes the newest rows, as a person with the sqlite3 shell
// may, and looks at what is given out after a restart.
func TestNumbersAreNeverReused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := opened(t, dir, Options{})
	for _, id := range []string{"a", "b", "c"} {
		accept(t, db, arrival("s", id, "app"))
	}
	leases, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "n", Max: 3, TTL: time.Minute, Now: t0})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	execNow(t, db.path, "DELETE FROM deliveries; DELETE FROM jobs; DELETE FROM attempts; DELETE FROM payloads; DELETE FROM dedup")
	db = opened(t, dir, Options{})
	if id := accept(t, db, arrival("s", "d", "app")); id != 4 {
		t.Errorf("delivery number %d, want 4", id)
	}
	again, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "n", Max: 3, TTL: time.Minute, Now: t0})
	if err != nil || again[0].Job != 4 || again[0].Token <= leases[2].Token {
		t.Errorf("job %d, token %d after %d (%v)", again[0].Job, again[0].Token, leases[2].Token, err)
	}
}

func TestMaxEventIDIsThatOfTheTable(t *testing.T) {
	t.Parallel()
	list, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("octet_length(event_id) <= %d", store.MaxEventID); !strings.Contains(list[0], want) {
		t.Errorf("migration 1 does not say %q", want)
	}
}

func TestArchiveViewShowsNames(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	a := arrival("stripe-live", "evt_1", "app", "crm")
	a.Header = []byte(`{"A":["b"]}`)
	accept(t, db, a)
	var got [8]string
	if err := db.read.QueryRow("SELECT source, provider, event_id, state, received_at, jobs, headers, body FROM archive").Scan(
		&got[0], &got[1], &got[2], &got[3], &got[4], &got[5], &got[6], &got[7]); err != nil {
		t.Fatal(err)
	}
	want := [8]string{"stripe-live", "stripe", "evt_1", "queued", "2026-01-01T00:00:00.000Z", "app:queued crm:queued", `{"A":["b"]}`, "{}"}
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ damage, want string }{
		{"DELETE FROM payloads WHERE id = 2", "no body"},
		{"DELETE FROM jobs WHERE id = 2", "neither a job"},
		{"DELETE FROM deliveries WHERE id = 2", "jobs have no delivery"},
		{"DROP INDEX jobs_due", "index jobs_due is missing"},
		{"DELETE FROM attempts", "leased jobs have no attempt"},
		{"UPDATE deliveries SET hold = 1 WHERE id = 2", "quarantined deliveries have jobs"},
		{"UPDATE dedup SET delivery = 99 WHERE event_id = 'b'", "never given out"},
		{"INSERT INTO payloads VALUES (77, '', '', x'', x'')", "payloads belong to no delivery"},
		{"INSERT INTO attempts VALUES (77, 99, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', NULL, NULL)", "attempts have no job"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			db := opened(t, t.TempDir(), Options{})
			for _, id := range []string{"a", "b", "c"} {
				accept(t, db, arrival("s", id, "app"))
			}
			if _, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "n", Max: 1, TTL: time.Minute, Now: t0}); err != nil {
				t.Fatal(err)
			}
			if problems, err := db.Check(t.Context(), true); err != nil || len(problems) > 0 {
				t.Fatalf("before: %q %v", problems, err)
			}
			execNow(t, db.path, "CREATE INDEX mine ON deliveries (type)") // the owner's own, no damage
			execNow(t, db.path, c.damage)
			problems, err := db.Check(t.Context(), true)
			if err != nil || !strings.Contains(strings.Join(problems, "\n"), c.want) {
				t.Errorf("found %q (%v), want %q", problems, err, c.want)
			}
		})
	}
}
