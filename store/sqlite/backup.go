package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a consistent copy to path, which must not exist: under a temporary name
// beside it first, so that a crash never leaves half a copy under the final one. Writes
// go on meanwhile; the journal cannot shrink until it is done.
func (d *DB) Backup(ctx context.Context, path string) error {
	return wrap(d.backup(ctx, path), "backup to %s", path)
}

func (d *DB) backup(ctx context.Context, path string) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(os.ErrExist, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".acuse-backup-*") // made with 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	if err := f.Close(); err != nil {
		return err
	}
	if err := d.vacuumInto(ctx, f.Name()); err != nil {
		return err
	}
	if err := syncPath(f.Name()); err != nil {
		return err
	}
	// Link, not rename: it fails when another backup took the name meanwhile.
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncPath(filepath.Dir(path))
}

// vacuumInto fills the empty file at path on a connection of its own.
func (d *DB) vacuumInto(ctx context.Context, path string) error {
	c, err := connect(ctx, d.path, "mode=rw", []string{"PRAGMA busy_timeout = 5000", "PRAGMA trusted_schema = OFF"})
	if err != nil {
		return err
	}
	s, err := c.prepared("VACUUM INTO ?")
	if err == nil {
		_, err = s.ExecContext(ctx, c.named([]val{path}))
	}
	return errors.Join(err, c.close())
}

// syncPath makes a file or a folder's entries survive power loss.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync %s: %w", path, err), f.Close())
	}
	return f.Close()
}
