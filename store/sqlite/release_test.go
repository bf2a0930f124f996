package sqlite

import (
	"bytes"
	"compress/gzip"

	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"acuse/store"
	"acuse/store/storetest"
)

// update writes the data file of this schema into testdata, if it is not there.
var update = os.Getenv("ACUSE_UPDATE") != ""

var r0 = time.UnixMilli(1767225600123).UTC()

func releaseArrival(source, id string, at time.Duration, destinations ...string) store.Arrival {
	a := store.Arrival{
		Source: source, Provider: "stripe", ReceivedAt: r0.Add(at), Remote: "203.0.113.7", Method: "POST", Target: "/in/" + source + "?x=1",
		Header: []byte(`{"Content-Type":["application/json"],"X-Latin":["café"]}`), Body: []byte(`{"id":"` + id + `"}`), Slot: 1, AckMicros: 250,
	}
	e := store.Event{ID: id, Type: "invoice.paid", Resource: "in_" + id, Version: "7", Unit: "int", Part: -1, Size: len(a.Body), Digest: int64(len(id)), Window: 7 * 24 * time.Hour}
	for _, d := range destinations {
		e.Jobs = append(e.Jobs, store.NewJob{Destination: d, Key: source + ":" + id + ":" + d, State: store.Queued})
	}
	a.Events = []store.Event{e}
	return a
}

// fillRelease brings at least one of everything into an empty store: what a data file of a
// release holds. Only what was there in the first schema, so that old files compare.
func fillRelease(t *testing.T, s store.Store) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	accept := func(a store.Arrival) {
		t.Helper()
		_, err := s.Accept(ctx, a)
		must(err)
	}
	lease := func(at time.Duration) store.Lease {
		t.Helper()
		l, err := s.Lease(ctx, store.LeaseQuery{Destination: "app", Owner: "n1/run1/http", Max: 1, TTL: time.Minute, Now: r0.Add(at)})
		must(err)
		return l[0]
	}
	settle := func(l store.Lease, at time.Duration, s2 store.Settlement) {
		t.Helper()
		s2.Job, s2.Token, s2.At = l.Job, l.Token, r0.Add(at)
		must(s.Settle(ctx, s2))
	}
	ana := store.Actor{Name: "ana", From: "192.0.2.1"}

	accept(releaseArrival("shop", "evt_1", 0, "app")) // 1: delivered after a failure; a duplicate with another body; resent
	settle(lease(time.Second), 2*time.Second, store.Settlement{State: store.Queued, Due: r0.Add(12 * time.Second), Result: store.Result{
		Status: 503, Class: "status", Error: "503", Duration: 30 * time.Millisecond, Header: []byte(`{"Retry-After":["1"]}`), Body: []byte("busy")}})
	settle(lease(13*time.Second), 14*time.Second, store.Settlement{State: store.Delivered, Result: store.Result{
		Status: 200, Duration: 20 * time.Millisecond, Connect: time.Millisecond, TLS: 2 * time.Millisecond, FirstByte: 19 * time.Millisecond, Body: []byte("ok"), Worker: "w1"}})
	again := releaseArrival("shop", "evt_1", time.Minute, "app")
	again.Events[0].Digest = 99
	accept(again)
	accept(releaseArrival("shop", "evt_2", time.Hour, "app")) // 2: dead
	settle(lease(time.Hour), time.Hour, store.Settlement{State: store.Dead, Reason: store.RefusedByApp, Result: store.Result{Status: 410, Class: "status", Error: "410", Maybe: true}})
	accept(releaseArrival("shop", "evt_3", 2*time.Hour, "app")) // 3: leased
	lease(2 * time.Hour)
	accept(releaseArrival("shop", "evt_4", 3*time.Hour, "app", "crm")) // 4: queued twice
	filtered := releaseArrival("shop", "evt_5", 3*time.Hour, "app")    // 5
	filtered.Events[0].Jobs[0].State, filtered.Events[0].Jobs[0].Note = store.Filtered, "type == 'x'"
	accept(filtered)
	unknown := releaseArrival("shop", "", 3*time.Hour) // 6: quarantined
	unknown.Events[0].Quarantine, unknown.Events[0].Resource = "no id at $.id", ""
	accept(unknown)
	batch := releaseArrival("batch", "i1", 4*time.Hour, "crm") // 7, 8
	second := releaseArrival("batch", "i2", 4*time.Hour, "crm").Events[0]
	batch.Events[0].Part, second.Part = 0, 1
	batch.Events, batch.Body = append(batch.Events, second), []byte(`[{"id":"i1"},{"id":"i2"}]`)
	accept(batch)
	kept := releaseArrival("raw", "\xff\x00id", 5*time.Hour) // 9: no job, bytes that are no text
	kept.Body = []byte{0, 255, 1}
	accept(kept)
	accept(releaseArrival("shop", "evt_10", 5*time.Hour, "app")) // 10: cancelled
	_, err := s.Cancel(ctx, 10, "", ana, r0.Add(6*time.Hour))
	must(err)
	_, err = s.Resend(ctx, store.Resend{Delivery: 1, AsNew: true, By: ana, At: r0.Add(7 * time.Hour), Reason: "asked",
		NewKeys: func(e, d string) string { return "shop:" + e + ":" + d }}) // 11: a copy of 1
	must(err)
	_, err = s.Resend(ctx, store.Resend{Delivery: 1, By: ana, At: r0.Add(8 * time.Hour), Passthrough: true})
	must(err)
	must(s.Reject(ctx, store.Rejection{Source: "shop", Reason: "signature_mismatch", Detail: "tried=1", Remote: "198.51.100.9", At: r0, Status: 401, Signed: true,
		Method: "POST", Target: "/in/shop", Header: []byte(`{}`), Body: []byte("x"), Size: 1}))
	must(s.PutNotice(ctx, store.Notice{Rule: "dead", Subject: "app", Since: r0, SentAt: r0, Count: 1, Text: "1 dead letter"}))
	must(s.PutUser(ctx, store.User{Name: "ana", Role: "owner", Password: "$argon2id$x", Language: "es", CreatedAt: r0}))
	must(s.PutToken(ctx, store.Token{ID: "tok1", Name: "ci", Agent: "bot", Hash: []byte("0123456789"), Scopes: []string{"read", "body"}, CreatedAt: r0, LastUsed: r0, Expires: r0.Add(time.Hour)}))
	must(s.PutSession(ctx, store.Session{ID: "sess1", User: "ana", Data: []byte("opaque"), Expires: r0.Add(time.Hour)}))
	must(s.PutSetting(ctx, "node", "ABCDEFGH"))
	must(s.Audit(ctx, store.AuditEntry{At: r0, By: ana, Act: "login"}))
}

// TestWriteRelease makes the data file of this schema once: ACUSE_UPDATE=1 go test -run TestWriteRelease.
func TestWriteRelease(t *testing.T) {
	dir := t.TempDir()
	db := opened(t, dir, Options{MinFree: -1})
	fillRelease(t, db)
	name := filepath.Join("testdata", fmt.Sprintf("%04d.db.gz", db.schema))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err == nil {
		return // a file of a release is never written again
	} else if !update {
		t.Fatalf("%s is missing: ACUSE_UPDATE=1 go test -run TestWriteRelease", name)
	}
	b, err := os.ReadFile(filepath.Join(dir, "acuse.db"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if _, err := z.Write(b); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// oldFile puts the data file of a release into a new folder.
func oldFile(t *testing.T, name string) (dir string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "acuse.db"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMigrationKeepsACopyOfWhatWasBefore: until the next migration, and only for a file
// that held something.
func TestMigrationKeepsACopyOfWhatWasBefore(t *testing.T) {
	t.Parallel()
	dir := oldFile(t, "testdata/0001.db.gz")
	earlier := filepath.Join(dir, "acuse.db.before-0")
	if err := os.WriteFile(earlier, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := opened(t, dir, Options{MinFree: -1})
	kept := filepath.Join(dir, fmt.Sprintf("acuse.db.before-%d", db.schema))
	info, err := os.Stat(kept)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the copy: %v %v", info, err)
	}
	if _, err := os.Stat(earlier); !os.IsNotExist(err) {
		t.Errorf("the copy before the earlier migration: %v", err)
	}
	c, err := connect(t.Context(), kept, "mode=ro&immutable=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	version, err := c.number("PRAGMA user_version")
	if err != nil || version != 1 {
		t.Errorf("the copy has version %d, %v", version, err)
	}
	if n, err := c.number("SELECT count(*) FROM deliveries"); err != nil || n != 11 {
		t.Errorf("the copy has %d deliveries, %v", n, err)
	}
}

// TestEveryReleasedFileOpensAndHoldsWhatItHeld opens the data file of every release with
// this code and compares it, record by record, with what the same acts make today.
func TestEveryReleasedFileOpensAndHoldsWhatItHeld(t *testing.T) {
	t.Parallel()
	fresh := opened(t, t.TempDir(), Options{MinFree: -1})
	fillRelease(t, fresh)
	want := storetest.Contents(t, fresh)
	files, err := filepath.Glob("testdata/*.db.gz")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			dir := oldFile(t, name)
			db := opened(t, dir, Options{MinFree: -1})
			if problems, err := db.Check(t.Context(), true); err != nil || len(problems) > 0 {
				t.Errorf("check: %q %v", problems, err)
			}
			got := storetest.Contents(t, db)
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("record %d differs:\ngot  %s\nwant %s", i, at(got, i), at(want, i))
				}
			}
			if l, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "x", Max: 10, TTL: time.Minute, Now: r0.Add(9 * time.Hour)}); err != nil || len(l) != 3 {
				t.Errorf("leased %d jobs, want 3: %v", len(l), err)
			}
		})
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}
