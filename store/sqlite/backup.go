package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	sqlite "modernc.org/sqlite"
)

// Backup writes a consistent copy to path, which must not exist: under a temporary name
// beside it first, so that a crash never leaves half a copy under the final one. Writes
// go on meanwhile.
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
	if err := d.copyInto(ctx, f.Name()); err != nil {
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

// A step of a copy holds up the writer, and the pause after it is as long: a copy takes at
// most half of the writer's time. When events come in faster than pages are copied, the steps
// become longer, so that a copy ends whatever comes in.
const (
	copyPages   = 64 // at once, before the time is looked at
	copyTime    = 5 * time.Millisecond
	maxCopyTime = 100 * time.Millisecond
)

// copyInto fills the empty file at path, step by step, on the writer's own connection: what
// it commits meanwhile goes into the pages copied already, so the copy is of the moment at which
// it ends, and no reader holds the journal up.
func (d *DB) copyInto(ctx context.Context, path string) error {
	d.copies.Lock() // one at a time
	defer d.copies.Unlock()
	// Each step is waited for even when the caller leaves: it would run after all.
	steady := context.WithoutCancel(ctx)
	var c *copying
	if err := d.between(steady, func(w *writer) (err error) {
		c, err = w.copyTo(path)
		return err
	}); err != nil {
		return err
	}
	took := copyTime
	for more := true; more; {
		began, left := time.Now(), c.left
		err := d.between(steady, func(w *writer) (err error) {
			more, err = c.step(w, took)
			return err
		})
		if c.left >= left {
			took = min(2*took, maxCopyTime)
		}
		if err == nil && more {
			err = pause(ctx, time.Since(began))
		}
		if err != nil {
			return errors.Join(err, d.between(steady, func(w *writer) error { return c.end(w) }))
		}
	}
	var copied *conn
	if err := d.between(steady, func(w *writer) (err error) {
		copied, err = c.done(w)
		return err
	}); err != nil {
		return err
	}
	return errors.Join(copied.finish(), copied.close())
}

// finish drops the free pages, which may hold what was removed, and makes the copy one file
// that can be read from a folder where nothing may be written.
func (c *conn) finish() error {
	if err := c.query("PRAGMA incremental_vacuum", func([]val) error { return nil }); err != nil {
		return err
	}
	return c.script("PRAGMA journal_mode = DELETE")
}

// between runs f in the committer's goroutine, in no transaction.
func (d *DB) between(ctx context.Context, f func(*writer) error) error {
	return d.submit(ctx, &write{after: f}, 0)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// copying is a copy under way. It lives on the writer's connection and ends with it.
type copying struct {
	b    *sqlite.Backup
	left int // pages, after the last step
}

var errCopyEnded = errors.New("the storage failed during the copy: try again")

// copyTo begins a copy. The target is synced as a whole at the end, and thrown away
// before: it needs neither journal nor syncs of its own.
func (w *writer) copyTo(path string) (*copying, error) {
	b, err := w.conn.c.(interface {
		NewBackup(string) (*sqlite.Backup, error)
	}).NewBackup(dsn(path, "_pragma=synchronous(OFF)&_pragma=journal_mode(OFF)"))
	if err != nil {
		return nil, err
	}
	w.copying = &copying{b: b, left: math.MaxInt}
	return w.copying, nil
}

// step copies for about as long as it may take.
func (c *copying) step(w *writer, took time.Duration) (more bool, err error) {
	if w.copying != c {
		return false, errCopyEnded
	}
	for began := time.Now(); ; {
		more, err = c.b.Step(copyPages)
		c.left = c.b.Remaining()
		if err != nil || !more || time.Since(began) >= took {
			return more, err
		}
	}
}

// end gives the copy up. Called by whoever closes the connection, too.
func (c *copying) end(w *writer) error {
	if w.copying != c {
		return nil
	}
	w.copying = nil
	return c.b.Finish()
}

// done hands over the connection to the whole copy.
func (c *copying) done(w *writer) (*conn, error) {
	if w.copying != c {
		return nil, errCopyEnded
	}
	w.copying = nil
	dc, err := c.b.Commit()
	if err != nil {
		return nil, err
	}
	return &conn{c: dc, stmts: map[string]driver.StmtExecContext{}}, nil
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
