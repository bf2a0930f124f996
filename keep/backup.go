package keep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"filippo.io/age"

	"acuse/store"
)

// Source is what a backup is made of.
type Source interface {
	Backup(ctx context.Context, path string) error
	Health() store.Health
	Setting(ctx context.Context, name string) (value string, ok bool, err error)
	PutSetting(ctx context.Context, name, value string) error
}

// Plan of the backups that acuse makes by itself; Every 0 is none.
type Plan struct {
	Every     time.Duration
	Keep      int    // how many; older ones are removed
	Dir       string // made if it is missing
	EncryptTo string // age recipients; empty: not encrypted
}

// BackupsOptions of NewBackups. Source, Dir, Plan and Now are needed.
type BackupsOptions struct {
	Source Source
	Dir    string      // the data folder: what is to be encrypted is written there first
	Plan   func() Plan // as configured now
	Now    func() time.Time
	Log    *slog.Logger
}

// Backups makes copies of the archive while it works.
type Backups struct {
	opt   BackupsOptions
	since time.Time // when this process began
	one   sync.Mutex
}

// roomPattern names the folders inside the data folder where copies wait to be encrypted.
const roomPattern = ".acuse-copy-*"

// NewBackups makes none yet; Run makes the planned ones. It removes what a crash in the
// middle of one left in the data folder.
func NewBackups(o BackupsOptions) *Backups {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	sweep(o.Dir, roomPattern)
	return &Backups{opt: o, since: o.Now()}
}

// sweep removes what the patterns match in a folder. It is no matter if it cannot.
func sweep(dir string, patterns ...string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		for _, p := range patterns {
			if ok, _ := filepath.Match(p, e.Name()); ok {
				_ = os.RemoveAll(filepath.Join(dir, e.Name()))
			}
		}
	}
}

// Make writes a consistent copy to the new file at path, encrypted when recipients are
// given, and notes when. progress may be nil; total is about right.
func (b *Backups) Make(ctx context.Context, path, recipients string, progress func(done, total int64)) error {
	to, err := Recipients(recipients)
	if err != nil {
		return err
	}
	b.one.Lock()
	defer b.one.Unlock()
	if progress == nil {
		progress = func(int64, int64) {}
	}
	if len(to) == 0 {
		err = b.plain(ctx, path, progress)
	} else {
		err = b.sealed(ctx, path, to, progress)
	}
	if err != nil {
		return err
	}
	return b.opt.Source.PutSetting(ctx, store.SettingLastBackup, b.opt.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
}

// plain lets the engine copy, and watches how far its temporary file has grown.
func (b *Backups) plain(ctx context.Context, path string, progress func(done, total int64)) error {
	total := b.opt.Source.Health().Bytes
	done := make(chan error, 1)
	go func() { done <- b.opt.Source.Backup(ctx, path) }()
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-t.C:
			if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".acuse-backup-*")); len(names) > 0 {
				if st, err := os.Stat(names[len(names)-1]); err == nil {
					progress(min(st.Size(), total), total)
				}
			}
		}
	}
}

// sealed copies into the data folder first, which is as private as the archive itself, so
// that nothing readable ever lies where the backup goes.
func (b *Backups) sealed(ctx context.Context, path string, to []age.Recipient, progress func(done, total int64)) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("backup to %s: %w", path, os.ErrExist), err)
	}
	room, err := os.MkdirTemp(b.opt.Dir, roomPattern)
	if err != nil {
		return err
	}
	defer os.RemoveAll(room)
	plain := filepath.Join(room, "copy")
	if err := b.plain(ctx, plain, func(done, total int64) { progress(done/2, total) }); err != nil {
		return err
	}
	in, err := os.Open(plain)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(path), ".acuse-sealed-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	w, err := age.Encrypt(out, to...)
	if err == nil {
		err = Copy(ctx, w, in, func(done int64) { progress(st.Size()/2+done/2, st.Size()) })
	}
	if err == nil {
		err = w.Close()
	}
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	if err := os.Link(out.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
