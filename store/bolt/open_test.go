package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bbolt "go.etcd.io/bbolt"

	"acuse/store"
	"acuse/store/sqlite"
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

// TestSettings pins what SIGKILL cannot show: a commit is on the disk when it returns.
func TestSettings(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	file := db.file.Load()
	if file.NoSync || file.NoGrowSync || file.FreelistType != bbolt.FreelistMapType || file.Info().PageSize != 4096 || file.IsReadOnly() {
		t.Errorf("no sync %v, no grow sync %v, free list %v, page size %d", file.NoSync, file.NoGrowSync, file.FreelistType, file.Info().PageSize)
	}
	onWriter(t, db, func(w *writer) error {
		for i := range tables {
			if got := w.bucket(i).FillPercent; ascending[i] != (got == 0.95) {
				t.Errorf("%s is filled to %v", tableNames[i], got)
			}
		}
		return nil
	})
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
	if want := []string{"acuse.bolt", "acuse.lock", "acuse.reserve"}; !slices.Equal(names, want) {
		t.Errorf("files: %v, want %v", names, want)
	}
}

func TestSecondProcessIsToldWhoHasTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opened(t, dir, Options{})
	if _, err := open(dir); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process id %d", os.Getpid())) {
		t.Fatalf("got %v", err)
	}
}

// raw changes the file of a store that is closed.
func raw(t *testing.T, path string, f func(x *bbolt.Tx) error) {
	t.Helper()
	file, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Update(f), file.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := opened(t, dir, Options{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	set := func(n uint64) func(*bbolt.Tx) error {
		return func(x *bbolt.Tx) error {
			return x.Bucket([]byte("meta")).Put(keySchema, binary.BigEndian.AppendUint64(nil, n))
		}
	}
	raw(t, db.path, set(99))
	if _, err := open(dir); !isErr(err, store.ErrNewerSchema) {
		t.Fatalf("got %v", err)
	}
	raw(t, db.path, set(schema))
	opened(t, dir, Options{}) // refused without a trace
}

func TestForeignFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*bbolt.Tx) error{
		"of another program": func(x *bbolt.Tx) error { _, err := x.CreateBucket([]byte("theirs")); return err },
		"with a bucket of the same name": func(x *bbolt.Tx) error {
			_, err := x.CreateBucket([]byte("meta"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			raw(t, filepath.Join(dir, "acuse.bolt"), f)
			if _, err := open(dir); err == nil || !strings.Contains(err.Error(), "not a data file of acuse") {
				t.Fatalf("got %v", err)
			}
		})
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "acuse.bolt"), bytes.Repeat([]byte("no data file"), 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(dir); err == nil {
		t.Fatal("a file of something else is opened")
	}
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	del := func(n table, k ...[]byte) func(*tx) error { return func(x *tx) error { return x.del(n, key(k...)) } }
	put := func(n table, v []byte, k ...[]byte) func(*tx) error {
		return func(x *tx) error { return x.put(n, key(k...), v) }
	}
	for _, c := range []struct {
		damage func(*tx) error
		want   string
	}{
		{del(tPayloads, num(2)), "no body"},
		{del(tJobs, num(2)), "neither a job"},
		{del(tDeliveries, num(2)), "jobs have no delivery"},
		{del(tDue, small(3), num(t0.UnixMilli()), num(2)), "jobs are missing in index due"},
		{del(tSources, small(1), num(2)), "deliveries are missing in index sources"},
		{del(tAttempts, num(1), num(1)), "leased jobs have no attempt"},
		{put(tDedup, append(binary.BigEndian.AppendUint64(nil, 99), make([]byte, 8)...), small(1), []byte("b")), "never given out"},
		{put(tPayloads, nil, num(3000)), "payloads belong to no delivery"},
		{put(tAttempts, (&attempt{}).encode(), num(99), num(77)), "attempts have no job"},
		{put(tDue, nil, small(3), num(5), num(2)), "entries of index due lead nowhere"},
		{put(tHold, nil, []byte{1}, num(2)), "entries of index hold lead nowhere"},
		{put(tDeliveries, []byte{9}, num(2)), "deliveries cannot be read"},
		{put(tPayloads, []byte{1, 0, 0, 0, 0, 1, 'x'}, num(2)), "bodies are damaged"},
		{func(x *tx) error { return x.DeleteBucket([]byte("trail")) }, "bucket trail is missing"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			db := opened(t, t.TempDir(), Options{})
			for _, id := range []string{"a", "b", "c"} {
				accept(t, db, arrival("s", id, "app"))
			}
			leased(t, db)
			sound(t, db)
			onWriter(t, db, func(w *writer) error { return c.damage(w.tx) })
			problems, err := db.Check(t.Context(), true)
			if err != nil || !strings.Contains(strings.Join(problems, "\n"), c.want) {
				t.Errorf("found %q (%v), want %q", problems, err, c.want)
			}
		})
	}
}

// TestBrokenPageIsAnErrorAndNotTheEnd overwrites the pages that hold a body.
func TestBrokenPageIsAnErrorAndNotTheEnd(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	a := big("broken")
	accept(t, db, a)
	for i := range 10 { // so that the next ones go to other pages
		accept(t, db, arrival("s", fmt.Sprint("whole", i), "app"))
	}
	// The page is copied when it gets a neighbour: every copy is damaged.
	damage := func(b []byte, at func(start int) int) {
		t.Helper()
		content, err := os.ReadFile(db.path)
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; ; {
			i := bytes.Index(content[from:], bytes.Repeat([]byte("x"), 1000))
			if i < 0 {
				return
			}
			if _, err := db.raw.WriteAt(b, int64(at(from+i))); err != nil {
				t.Fatal(err)
			}
			from += i + 256<<10
		}
	}
	damage([]byte("y"), func(start int) int { return start + 1700 })
	if _, err := db.Payload(t.Context(), 1); err == nil {
		t.Error("a changed body is handed out")
	}
	damage(make([]byte, 64), func(start int) int { return start / pageSize * pageSize })
	for range 2 {
		if _, err := db.Payload(t.Context(), 1); err == nil {
			t.Error("a broken page is read")
		}
		accept(t, db, arrival("s", fmt.Sprint(time.Now().UnixNano()), "app"))
	}
	problems, err := db.Check(t.Context(), true)
	if err != nil || len(problems) == 0 {
		t.Errorf("check: %q %v", problems, err)
	}
}

// TestPageOfAShortListGoesOn fills the archive past one scan: the match at its far end
// is reached by following next, and found at once by its id.
func TestPageOfAShortListGoesOn(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	first := arrival("s", "needle", "app")
	first.Events[0].Type = "rare"
	accept(t, db, first)
	batch := arrival("s", "x")
	for i := 0; i < scanRows+500; i += 500 {
		batch.Events = batch.Events[:0]
		for k := range 500 {
			batch.Events = append(batch.Events, store.Event{ID: "x" + time.Duration(i+k).String(), Type: "common", Part: k, Window: time.Hour})
		}
		accept(t, db, batch)
	}
	list, next, err := db.Deliveries(t.Context(), store.DeliveryFilter{Type: "rare"})
	if err != nil || len(list) != 0 || next == 0 {
		t.Fatalf("first page: %d rows, next %d, %v", len(list), next, err)
	}
	list, next, err = db.Deliveries(t.Context(), store.DeliveryFilter{Type: "rare", Before: next})
	if err != nil || len(list) != 1 || next != 0 {
		t.Fatalf("second page: %d rows, next %d, %v", len(list), next, err)
	}
	list, next, err = db.Deliveries(t.Context(), store.DeliveryFilter{Query: "needle"})
	if err != nil || len(list) != 1 || next == 0 {
		t.Fatalf("by id: %d rows, next %d, %v", len(list), next, err)
	}
	older, _, err := db.Neighbours(t.Context(), scanRows+400, store.DeliveryFilter{Type: "rare"})
	if err != nil || older != 1 {
		t.Errorf("older neighbour %d, want 1 (%v)", older, err)
	}
}

// TestListOfFreePagesIsLeftOutWhenLong: it is written with each commit while it is short,
// left out while it is long, and written when the store is closed.
func TestListOfFreePagesIsLeftOutWhenLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := opened(t, dir, Options{})
	accept(t, db, arrival("s", "a", "app"))
	if db.file.Load().NoFreelistSync {
		t.Error("a short list is left out")
	}
	a := arrival("s", "b")
	a.Body = make([]byte, (manyFree+1000)*pageSize)
	accept(t, db, a)
	if _, err := db.Purge(t.Context(), store.PurgeRule{Now: t0.Add(48 * time.Hour), Age: time.Hour}); err != nil {
		t.Fatal(err)
	}
	onWriter(t, db, func(*writer) error { return nil })
	if !db.file.Load().NoFreelistSync {
		t.Error("a long list is written")
	}
	sound(t, db)
	before := db.Health().Bytes
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = opened(t, dir, Options{})
	a.Events[0].ID = "c"
	accept(t, db, a) // fits into what is free
	if after := db.Health().Bytes; after > before+growBytes {
		t.Errorf("the file grew from %d to %d bytes", before, after)
	}
	sound(t, db)
}

func TestCompactMakesTheFileAsSmallAsWhatItHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := opened(t, dir, Options{})
	for i := range 40 {
		accept(t, db, big(fmt.Sprint(i)))
	}
	for range 39 {
		l := leased(t, db)
		if err := db.Settle(t.Context(), store.Settlement{Job: l.Job, Token: l.Token, At: t0, State: store.Delivered}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Purge(t.Context(), store.PurgeRule{Now: t0.Add(48 * time.Hour), Age: time.Hour, Work: 50_000}); err != nil {
		t.Fatal(err)
	}
	if freed, left, err := db.Reclaim(t.Context(), 1<<30); err != nil || freed != 0 || left < 8<<20 {
		t.Errorf("reclaim: freed %d, left %d, %v", freed, left, err)
	}
	want := storetest.Contents(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(db.path+".compact", []byte("what a crash left"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, after, err := Compact(t.Context(), dir, Options{})
	if err != nil || before < 8<<20 || after > 5<<20 {
		t.Fatalf("from %d to %d bytes: %v", before, after, err)
	}
	db = opened(t, dir, Options{})
	if got := storetest.Contents(t, db); !slices.Equal(got, want) {
		t.Error("the contents changed")
	}
	if id := accept(t, db, arrival("s", "next", "app")); id != 41 {
		t.Errorf("number %d, want 41", id)
	}
	sound(t, db)
	if _, _, err := Compact(t.Context(), t.TempDir(), Options{}); !isErr(err, os.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}

// TestDumpCrossesTheEngines takes an archive to SQLite and back.
func TestDumpCrossesTheEngines(t *testing.T) {
	t.Parallel()
	here := opened(t, t.TempDir(), Options{})
	for _, id := range []string{"a", "b", "\xff\x00"} {
		accept(t, here, arrival("s", id, "app", "crm"))
	}
	l := leased(t, here)
	if err := here.Settle(t.Context(), store.Settlement{Job: l.Job, Token: l.Token, At: t0, State: store.Dead, Reason: store.Exhausted, Result: store.Result{Error: "no"}}); err != nil {
		t.Fatal(err)
	}
	leased(t, here)
	if err := here.PutToken(t.Context(), store.Token{ID: "t", Hash: []byte("h"), CreatedAt: t0}); err != nil {
		t.Fatal(err)
	}
	there, err := sqlite.Open(storetest.Background, t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	back := opened(t, t.TempDir(), Options{})
	copyTo := func(from, to store.Dumper) {
		t.Helper()
		records := make(chan store.Record)
		done := make(chan error, 1)
		go func() {
			defer close(records)
			done <- from.Dump(t.Context(), func(r store.Record) error { records <- r; return nil })
		}()
		err := to.Load(t.Context(), func() (store.Record, error) {
			r, ok := <-records
			if !ok {
				return r, io.EOF
			}
			return r, nil
		})
		if err := errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
	}
	copyTo(here, there)
	copyTo(there, back)
	want := storetest.Contents(t, here)
	for name, s := range map[string]store.Dumper{"sqlite": there, "bbolt": back} {
		if got := storetest.Contents(t, s); !slices.Equal(got, want) {
			t.Errorf("%s holds\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	sound(t, back)
}
