package cutfs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// mounted shows a disk at a folder, or skips nothing: without FUSE the test says so and the
// disk is tested by itself.
func mounted(t *testing.T, d *Disk) (dir string, unmount func()) {
	t.Helper()
	dir = t.TempDir()
	end, err := d.Mount(dir)
	if err != nil {
		t.Logf("NOT MOUNTED: %v", err)
		return "", nil
	}
	done := false
	unmount = func() {
		if !done {
			done = true
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(unmount)
	return dir, unmount
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOnlyWhatWasSyncedSurvivesACut(t *testing.T) {
	t.Parallel()
	d := New()
	dir, unmount := mounted(t, d)
	if dir == "" {
		return
	}
	f, err := os.Create(filepath.Join(dir, "a"))
	must(t, err)
	defer f.Close()
	write := func(s string, off int64) {
		t.Helper()
		_, err := f.WriteAt([]byte(s), off)
		must(t, err)
	}
	write("synced", 0)
	must(t, f.Sync())
	must(t, os.WriteFile(filepath.Join(dir, "nameless"), []byte("x"), 0o600))
	folder, err := os.Open(dir)
	must(t, err)
	must(t, folder.Sync())
	must(t, folder.Close())
	write("lost", 6)
	must(t, os.WriteFile(filepath.Join(dir, "new"), []byte("x"), 0o600))
	must(t, os.Remove(filepath.Join(dir, "nameless")))
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "syncedlost" {
		t.Fatalf("before the cut: %q, %v", got, err)
	}
	after := d.Cut(Drop, seeded())
	if _, err := f.Write([]byte("x")); !errors.Is(err, syscall.EIO) {
		t.Errorf("a write after the cut: %v", err)
	}
	f.Close()
	unmount()

	dir, _ = mounted(t, after)
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "synced" {
		t.Errorf("after the cut: %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
		t.Errorf("a name that was not synced: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "nameless")); err != nil || len(got) != 0 {
		t.Errorf("a removal that was not synced, of a file whose bytes were not: %q, %v", got, err)
	}
}

func TestARenameSurvivesWithItsFolderAlone(t *testing.T) {
	t.Parallel()
	for _, synced := range []bool{false, true} {
		d := New()
		dir, unmount := mounted(t, d)
		if dir == "" {
			return
		}
		put := func(name, text string) {
			f, err := os.Create(filepath.Join(dir, name))
			must(t, err)
			_, err = f.WriteString(text)
			must(t, err)
			must(t, f.Sync())
			must(t, f.Close())
		}
		sync := func() {
			f, err := os.Open(dir)
			must(t, err)
			must(t, f.Sync())
			must(t, f.Close())
		}
		put("a", "old")
		put("b", "new")
		sync()
		must(t, os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "a")))
		want := "old"
		if synced {
			sync()
			want = "new"
		}
		after := d.Cut(Drop, seeded())
		unmount()
		dir, _ = mounted(t, after)
		if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != want {
			t.Errorf("synced %v: %q, %v", synced, got, err)
		}
	}
}

func TestACutTearsWritesAtSectors(t *testing.T) {
	t.Parallel()
	for _, loss := range []Loss{Random, Tear} {
		torn, whole, gone := 0, 0, 0
		rnd := seeded()
		for range 200 {
			n := &node{mode: syscall.S_IFREG}
			n.write(0, bytes.Repeat([]byte("a"), 4096))
			n.sync()
			n.write(0, bytes.Repeat([]byte("b"), 4096))
			got := survive(n, loss, rnd, map[*node]*node{}).data
			for at := 0; at < len(got); at += Sector {
				if s := got[at : at+Sector]; bytes.Count(s, s[:1]) != Sector {
					t.Fatal("a sector is torn")
				}
			}
			switch bytes.Count(got, []byte("b")) {
			case 0:
				gone++
			case 4096:
				whole++
			default:
				torn++
			}
			if loss == Tear && bytes.Contains(got, []byte("ab")) {
				t.Fatal("the end of a torn write survived its beginning")
			}
		}
		if torn == 0 || loss == Tear && (whole == 0 || gone == 0) {
			t.Errorf("%v: torn %d, whole %d, gone %d", loss, torn, whole, gone)
		}
	}
}

func TestFaultsHitTheOperationsNamed(t *testing.T) {
	t.Parallel()
	d := New()
	dir, _ := mounted(t, d)
	if dir == "" {
		return
	}
	f, err := os.Create(filepath.Join(dir, "a"))
	must(t, err)
	defer f.Close()
	d.Fail(Fault{Op: OpWrite, After: 2, Err: syscall.ENOSPC})
	for i, want := range []error{nil, syscall.ENOSPC, nil} {
		if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, want) {
			t.Errorf("write %d: %v, want %v", i+1, err, want)
		}
	}
	if n := d.Heal(); n != 1 {
		t.Errorf("%d hits", n)
	}
	d.Fail(Fault{Op: OpSync, After: 1, Err: syscall.EIO, Lasting: true})
	for range 2 {
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("sync: %v", err)
		}
	}
	d.Heal()
	must(t, f.Sync())
}

// The engines map files into memory: what is written must be seen there at once.
func TestAMappedFileShowsWhatIsWritten(t *testing.T) {
	t.Parallel()
	dir, _ := mounted(t, New())
	if dir == "" {
		return
	}
	f, err := os.Create(filepath.Join(dir, "a"))
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(8192))
	seen, err := syscall.Mmap(int(f.Fd()), 0, 8192, syscall.PROT_READ, syscall.MAP_SHARED)
	must(t, err)
	defer syscall.Munmap(seen)
	if seen[4096] != 0 {
		t.Fatal("not empty")
	}
	_, err = f.WriteAt([]byte("x"), 4096)
	must(t, err)
	if seen[4096] != 'x' {
		t.Error("the mapping does not show the write")
	}
}

func TestWhatAFailedSyncLeftIsWrittenByNoLaterOne(t *testing.T) {
	t.Parallel()
	d := New()
	dir, unmount := mounted(t, d)
	if dir == "" {
		return
	}
	f, err := os.Create(filepath.Join(dir, "a"))
	must(t, err)
	folder, err := os.Open(dir)
	must(t, err)
	must(t, folder.Sync())
	must(t, folder.Close())
	_, err = f.WriteAt([]byte("first"), 0)
	must(t, err)
	must(t, f.Sync())
	_, err = f.WriteAt([]byte("SECOND"), 0)
	must(t, err)
	d.Fail(Fault{Op: OpSync, After: 1, Err: syscall.EIO})
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("the sync: %v", err)
	}
	_, err = f.WriteAt([]byte("third"), 6)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "SECONDthird" {
		t.Errorf("before the cut: %q, %v", got, err)
	}
	after := d.Cut(Drop, seeded())
	unmount()
	dir, _ = mounted(t, after)
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "first\x00third" {
		t.Errorf("after the cut: %q, %v", got, err)
	}
}
