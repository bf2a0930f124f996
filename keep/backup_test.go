package keep

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"acuse/store"
	"acuse/store/sqlite"
)

func newBackups(t *testing.T, c *clocks, p *Plan) (*Backups, *sqlite.DB) {
	t.Helper()
	db := opened(t)
	return NewBackups(BackupsOptions{Source: db, Dir: t.TempDir(), Plan: func() Plan { return *p }, Now: c.Wall}), db
}

// open opens what a backup holds as a store.
func restored(t *testing.T, path string, identities ...age.Identity) *sqlite.DB {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, engine, _, err := Unseal(f, identities)
	if err != nil || engine != "sqlite" {
		t.Fatal(engine, err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, DataFile(engine)), b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(context.WithoutCancel(t.Context()), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestABackupIsWholeAndSoIsAnEncryptedOne(t *testing.T) {
	t.Parallel()
	c := &clocks{}
	b, db := newBackups(t, c, &Plan{})
	accept(t, db, "evt_of_maria", t0)
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plain, sealed := filepath.Join(dir, "a.db"), filepath.Join(dir, "a.db.age")
	if err := b.Make(t.Context(), plain, "", nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Make(t.Context(), sealed, id.Recipient().String()+" "+other.Recipient().String(), nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*sqlite.DB{restored(t, plain), restored(t, sealed, id), restored(t, sealed, other)} {
		if d, err := s.Delivery(t.Context(), 1); err != nil || d.EventID != "evt_of_maria" {
			t.Fatal(d, err)
		}
	}
	if text, err := os.ReadFile(sealed); err != nil || strings.Contains(string(text), "evt_of_maria") {
		t.Fatal("readable", err)
	}
	for _, path := range []string{plain, sealed} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, st.Mode(), err)
		}
	}
	if err := b.Make(t.Context(), sealed, id.Recipient().String(), nil); !errors.Is(err, os.ErrExist) {
		t.Errorf("over an existing one: %v", err)
	}
	if err := b.Make(t.Context(), sealed+"2", "age1nonsense", nil); err == nil {
		t.Error("a recipient that is none")
	}
	if left := names(t, dir); len(left) != 2 {
		t.Errorf("files: %v", left)
	}
	if left := names(t, b.opt.Dir); len(left) != 0 {
		t.Errorf("readable copies are left: %v", left)
	}
	last, err := b.Last(t.Context())
	if err != nil || !last.Equal(t0) {
		t.Errorf("last %v %v", last, err)
	}
	stranger, _ := age.GenerateX25519Identity()
	f, err := os.Open(sealed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, ids := range [][]age.Identity{nil, {stranger}} {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := Unseal(f, ids); !errors.Is(err, ErrSealed) {
			t.Errorf("without its identity: %v", err)
		}
	}
}

func TestAFileThatIsNoBackupIsSaidSo(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "text": "hello", "zeros": strings.Repeat("\x00", 64)} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := Unseal(f, nil); !errors.Is(err, ErrNoBackup) {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
	}
}

func TestPlannedBackupsRotateAndAreMissedWhenLate(t *testing.T) {
	t.Parallel()
	c, dir := &clocks{}, filepath.Join(t.TempDir(), "backups")
	p := &Plan{Every: 24 * time.Hour, Keep: 2, Dir: dir}
	b, db := newBackups(t, c, p)
	accept(t, db, "a", t0)
	due := func() string {
		t.Helper()
		made, err := b.Due(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(made)
	}
	if got := due(); got != "acuse-20260101T000000Z.db" {
		t.Fatalf("the first: %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "acuse-mine.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".acuse-backup-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.pass(23 * time.Hour)
	if got := due(); got != "." {
		t.Fatalf("too early: %s", got)
	}
	c.pass(time.Hour)
	due()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	p.EncryptTo = id.Recipient().String()
	c.pass(24 * time.Hour)
	due()
	want := []string{"acuse-20260102T000000Z.db", "acuse-20260103T000000Z.db.age", "acuse-mine.db"}
	if got := names(t, dir); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("files %v, want %v", got, want)
	}
	restored(t, filepath.Join(dir, want[1]), id)

	c.pass(25 * time.Hour)
	if _, late := b.Late(t.Context()); late {
		t.Error("late within the hour")
	}
	c.pass(time.Minute)
	if since, late := b.Late(t.Context()); !late || !since.Equal(t0.Add(72*time.Hour)) {
		t.Errorf("late since %v, %v", since, late)
	}
	due()
	if _, late := b.Late(t.Context()); late {
		t.Error("late after it was made")
	}
	p.Every = 0
	c.pass(1000 * time.Hour)
	if _, late := b.Late(t.Context()); late || due() != "." {
		t.Error("no plan, but late")
	}
}

// sick is a source whose copies fail.
type sick struct{ store.Store }

func (sick) Backup(context.Context, string) error { return store.ErrUnavailable }

func TestABackupThatFailsIsMissed(t *testing.T) {
	t.Parallel()
	c := &clocks{}
	b := NewBackups(BackupsOptions{Source: sick{opened(t)}, Dir: t.TempDir(), Now: c.Wall,
		Plan: func() Plan { return Plan{Every: time.Hour, Keep: 1, Dir: t.TempDir()} }})
	if _, err := b.Due(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Fatal(err)
	}
	if last, err := b.Last(t.Context()); err != nil || !last.IsZero() {
		t.Fatal(last, err)
	}
	c.pass(61 * time.Minute)
	if _, late := b.Late(t.Context()); !late {
		t.Error("nobody is told")
	}
}
