package bolt

import (
	"context"
	"time"
)

// scrubPages is how many pages one step of the overwriting goes through.
const scrubPages = 4096

// scrub overwrites the free pages of the file: what was removed lies in them until they
// are used again. It goes through the file in steps on the writer's goroutine. While
// anyone reads an older state it cannot, and says that traces are left.
func (d *DB) scrub(ctx context.Context) (traces bool, err error) {
	for range 2 { // what the last transaction freed is free after the next one only
		if err := d.do(ctx, func(w *writer) error { return w.put(tMeta, keyScrub, nil) }); err != nil {
			return false, err
		}
	}
	for at, end := int64(2), int64(3); at < end; at += scrubPages {
		tries := 0
		for done := false; !done; {
			if err := d.do(ctx, func(w *writer) (err error) {
				if done = d.reading.TryLock(); !done {
					return nil
				}
				defer d.reading.Unlock()
				end, err = d.scrubStep(w, at)
				return err
			}); err != nil {
				return false, err
			}
			if tries++; !done && tries == 20 {
				return true, nil
			}
			if !done {
				time.Sleep(50 * time.Millisecond) // between two pages of a reader
			}
		}
	}
	return false, nil
}

var keyScrub = []byte("scrub")

// scrubStep overwrites the free ones of some pages from at on, and returns how many pages
// the file has. Nobody reads meanwhile.
func (d *DB) scrubStep(w *writer, at int64) (end int64, err error) {
	st, err := d.raw.Stat()
	if err != nil {
		return 0, err
	}
	used, end := w.Size()/pageSize, st.Size()/pageSize
	zero := make([]byte, pageSize)
	for id := at; id < min(end, at+scrubPages); id++ {
		if id < used {
			p, err := w.Page(int(id))
			if err != nil {
				return 0, fault{where: "scrub", err: err}
			}
			if p == nil || p.Type != "free" {
				continue
			}
		}
		if _, err := d.raw.WriteAt(zero, id*pageSize); err != nil {
			return 0, fault{where: "scrub", err: err}
		}
	}
	return end, d.raw.Sync()
}
