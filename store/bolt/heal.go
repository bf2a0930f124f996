package bolt

import (
	"errors"
	"os"

	"acuse/store/engine"
)

// heal makes the engine fit for the next commit after one failed. That one may have
// reached the file all the same: then the page that says so was perhaps never synced,
// and what it freed must not be used before it is. So the two first pages are written
// again, as they are, and synced; and what is kept in memory is read anew.
func (d *DB) heal() error {
	w := d.w
	t, err := d.file.Load().Begin(false)
	switch {
	case err != nil || w.torn:
		if err == nil {
			err = t.Rollback()
		}
		if again := d.reopen(); again != nil {
			return errors.Join(err, again)
		}
		w.torn, w.committed = false, 0 // unknown
	default:
		number := t.ID()
		if err := t.Rollback(); err != nil {
			return err
		}
		if number == w.committed {
			w.sick = false
			return nil
		}
	}
	if err := d.writeMetaAgain(); err != nil {
		return err
	}
	if err := d.reload(); err != nil {
		return err
	}
	w.cache = engine.Cache{}
	w.sick = false
	return nil
}

func (d *DB) writeMetaAgain() error {
	page := make([]byte, pageSize)
	for at := int64(0); at < 2*pageSize; at += pageSize {
		if _, err := d.raw.ReadAt(page, at); err != nil {
			return err
		}
		if _, err := d.raw.WriteAt(page, at); err != nil {
			return err
		}
		if err := d.raw.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// removed tells that the file has no name any more, or that another has its name: what
// is written then is lost with the process.
func (d *DB) removed() bool {
	mine, err := d.raw.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(d.path)
	return err != nil || !os.SameFile(mine, named)
}
