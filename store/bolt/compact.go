package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bbolt "go.etcd.io/bbolt"

	"acuse/store/engine"
)

// When a start copies the file to make it smaller: there is more free inside than in use,
// enough to be worth it, and so little in use that it takes a second or two.
const (
	compactFree = 64 << 20
	compactUsed = 256 << 20
)

// Compact makes the file of a store that nobody has open as small as what it holds, and
// returns its size before and after. It needs room for the copy. A crash leaves the file
// as it was, or the new one.
func Compact(ctx context.Context, dir string, o Options) (before, after int64, err error) {
	if _, err := os.Stat(filepath.Join(dir, "acuse.bolt")); err != nil {
		return 0, 0, fmt.Errorf("compact: %w", err)
	}
	o.compact = always
	d, err := Open(ctx, dir, o)
	if err != nil {
		return 0, 0, fmt.Errorf("compact: %w", err)
	}
	before, after = d.before, d.Health().Bytes
	return before, after, d.Close()
}

// when says whether Open copies the file.
type when int

const (
	ifWorthIt when = iota
	always
)

// compactAtStart copies the file if that was asked for, or is worth it, and opens the copy.
func (d *DB) compactAtStart(w when) error {
	st, err := d.raw.Stat()
	if err != nil {
		return err
	}
	d.before = st.Size()
	used := int64(0)
	if err := d.view(context.Background(), func(x *tx) error {
		used, _ = room(x.Tx)
		return nil
	}); err != nil {
		return err
	}
	free := st.Size() - used
	switch {
	case w == always:
	case free < compactFree || free < used:
		return nil
	case used > compactUsed || d.space.Now() < used+d.space.MinFree:
		d.log.Info("the data file has much free space inside: run acuse compact while the server is stopped", "used", used, "free", free)
		return nil
	}
	name := d.path + ".compact"
	defer os.Remove(name) // gone already when all went well
	if err := d.copyTo(name); err != nil {
		if w == always {
			return err
		}
		d.log.Warn("compact", "err", err) // it goes on with the file as it was
		return nil
	}
	if err := d.takeOver(name); err != nil {
		return err
	}
	d.log.Info("made the data file smaller", "before", d.before, "used", used)
	return nil
}

// copyTo writes what is in use to a new file.
func (d *DB) copyTo(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // what an earlier one left
	}
	o := d.options()
	o.NoSync = true // it is synced as a whole, before it gets its name
	to, err := openFile(name, o)
	if err != nil {
		return err
	}
	to.AllocSize = growBytes
	err = bbolt.Compact(to, d.file.Load(), 4<<20)
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	return engine.Sync(name)
}

// takeOver puts a file in the place of the old one and opens it.
func (d *DB) takeOver(name string) error {
	if err := os.Rename(name, d.path); err != nil {
		return err
	}
	if err := engine.Sync(d.dir); err != nil {
		return err
	}
	raw, err := os.OpenFile(d.path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = d.raw.Close()
	d.raw = raw
	return errors.Join(err, d.reopen(), d.reload())
}
