package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"

	"acuse/cli"
	"acuse/keep"
	"acuse/store"
)

// archive is a store in a folder of its own.
func archive(t *testing.T, engine string) (string, store.Store) {
	t.Helper()
	dir := t.TempDir()
	s, err := openFolder(context.WithoutCancel(t.Context()), engine, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return dir, s
}

func put(t testing.TB, s store.Store, id string) {
	t.Helper()
	if _, err := s.Accept(context.WithoutCancel(t.Context()), store.Arrival{Source: "s", Provider: "p", ReceivedAt: time.Now(), Method: "POST", Target: "/in/s",
		Header: []byte(`{}`), Body: []byte(strings.Repeat(id, 100)),
		Events: []store.Event{{ID: id, Part: -1, Window: time.Hour, Jobs: []store.NewJob{{Destination: "app", Key: id, State: store.Queued}}}}}); err != nil {
		t.Error(err)
	}
}

// TestABackupUnderLoadRestoresToItsMoment makes a plain and an encrypted backup while
// events come in, restores each into a new folder, and looks for everything that was
// acknowledged before the backup began; what is there is whole.
func TestABackupUnderLoadRestoresToItsMoment(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "bbolt"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dir, s := archive(t, engine)
			b := keep.NewBackups(keep.BackupsOptions{Source: s, Dir: dir, Plan: func() keep.Plan { return keep.Plan{} }, Now: time.Now})
			var stored atomic.Int64
			stop, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						put(t, s, fmt.Sprint(i))
						stored.Add(1)
					}
				}
			}()
			id, err := age.GenerateX25519Identity()
			if err != nil {
				t.Fatal(err)
			}
			key := filepath.Join(t.TempDir(), "key.txt")
			if err := os.WriteFile(key, []byte("# created: today\n"+id.String()+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 50 {
				put(t, s, "x"+fmt.Sprint(stored.Add(1)))
			}
			for _, to := range []string{"", id.Recipient().String()} {
				before := stored.Load()
				file := filepath.Join(t.TempDir(), "copy")
				if err := b.Make(t.Context(), file, to, nil); err != nil {
					t.Fatal(err)
				}
				after := stored.Load()
				identity := key
				if to == "" {
					identity = ""
				}
				c, err := verify(t.Context(), cli.VerifyOptions{File: file, Identity: identity})
				if err != nil || len(c.Problems) > 0 || c.Engine != engine {
					t.Fatalf("verify: %+v %v", c, err)
				}
				into := filepath.Join(t.TempDir(), "new", "data")
				r, err := restore(t.Context(), cli.RestoreOptions{File: file, Identity: identity, Dir: into})
				if err != nil || len(r.Problems) > 0 || r.Counts != c.Counts {
					t.Fatalf("restore: %+v %v, verified %+v", r, err, c)
				}
				st, err := os.Stat(into)
				if err != nil || st.Mode().Perm() != 0o700 {
					t.Errorf("the folder: %v %v", st.Mode(), err)
				}
				got, err := openFolder(t.Context(), engine, into)
				if err != nil {
					t.Fatal(err)
				}
				totals, err := got.Totals(t.Context())
				if err != nil || totals.Queued < before || totals.Queued > after+1 {
					t.Errorf("%d events are in the backup; there were %d when it began and %d when it ended (%v)", totals.Queued, before, after, err)
				}
				if err := got.Close(); err != nil {
					t.Fatal(err)
				}
			}
			close(stop)
			<-ended
		})
	}
}

func TestARestoreTouchesNothingThatItShouldNot(t *testing.T) {
	t.Parallel()
	dir, s := archive(t, "sqlite")
	put(t, s, "a")
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := s.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	put(t, s, "b")
	if _, err := restore(t.Context(), cli.RestoreOptions{File: file, Dir: dir, Force: true}); !errors.Is(err, store.ErrLocked) {
		t.Fatalf("under a running server: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := restore(t.Context(), cli.RestoreOptions{File: file, Dir: dir}); !errors.Is(err, cli.ErrHoldsData) {
		t.Fatalf("over an archive: %v", err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 3 * 8192; i < 6*8192; i++ {
		text[i] ^= 0x5a
	}
	if err := os.WriteFile(damaged, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := restore(t.Context(), cli.RestoreOptions{File: damaged, Dir: dir, Force: true}); err == nil && len(c.Problems) == 0 {
		t.Fatal("a damaged backup was restored")
	}
	if n := deliveries(t, dir); n != 2 {
		t.Fatalf("after what was refused there are %d deliveries, want 2", n)
	}
	c, err := restore(t.Context(), cli.RestoreOptions{File: file, Dir: dir, Force: true})
	if err != nil || len(c.Replaced) != 1 {
		t.Fatal(c, err)
	}
	if n := deliveries(t, dir); n != 1 {
		t.Fatalf("%d deliveries after the restore, want 1", n)
	}
	old, err := verify(t.Context(), cli.VerifyOptions{File: c.Replaced[0]})
	if err != nil || old.Counts.Deliveries != 2 {
		t.Fatalf("what was there: %+v %v", old, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".restore-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if _, err := verify(t.Context(), cli.VerifyOptions{File: filepath.Join(dir, "acuse.lock")}); !errors.Is(err, keep.ErrNoBackup) {
		t.Errorf("no backup: %v", err)
	}
}

func deliveries(t *testing.T, dir string) int64 {
	t.Helper()
	c, err := inspect(t.Context(), "sqlite", dir)
	if err != nil {
		t.Fatal(err)
	}
	return c.Counts.Deliveries
}
