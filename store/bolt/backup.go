package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"acuse/store/engine"
)

// Backup writes a consistent copy to path, which must not exist: under a temporary name
// beside it first, so that a crash never leaves half a copy under the final one. Writes
// go on meanwhile; pages that they replace are not used again until it is done.
func (d *DB) Backup(ctx context.Context, path string) error {
	return wrap(d.backup(ctx, path), "backup to %s", path)
}

func (d *DB) backup(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(os.ErrExist, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".acuse-backup-*") // made with 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	err = d.view(ctx, func(x *tx) error {
		_, err := x.WriteTo(stoppable{ctx, f})
		return err
	})
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// Link, not rename: it fails when another backup took the name meanwhile.
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return engine.Sync(filepath.Dir(path))
}

// stoppable ends a long copy when its caller leaves.
type stoppable struct {
	ctx context.Context
	f   *os.File
}

func (s stoppable) Write(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.f.Write(b)
}
