package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"acuse/store"
)

// Reclaim gives free pages back; see store.Retention.
func (d *DB) Reclaim(ctx context.Context, most int64) (freed, left int64, err error) {
	err = d.do(ctx, func(w *writer) error {
		before, err := w.number("PRAGMA freelist_count")
		if err != nil || before == 0 {
			freed, left = 0, 0
			return err
		}
		// It answers with a row for every page: a query, or it would stop after the first.
		if err := w.query(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", max(1, most/pageSize)), func([]val) error { return nil }); err != nil {
			return err
		}
		after, err := w.number("PRAGMA freelist_count")
		freed, left = (before-after)*pageSize, after*pageSize
		return err
	})
	return freed, left, wrap(err, "reclaim")
}

// Where the journal is cut back, readers or not; the budget is 64 MiB. From longJournal on
// a read of ours that began over a second ago is ended, from maxJournal on every one.
const (
	longJournal = 32 << 20
	maxJournal  = 44 << 20
)

// boundJournal copies the journal back and empties it when it has grown too long: that a
// reader holds on to an old state keeps the usual way, at every checkpointPages, from
// doing so.
func (d *DB) boundJournal(size int64) {
	if size < longJournal {
		d.journalHeld = false
		return
	}
	age, wait := time.Second, 0
	if size >= maxJournal {
		age, wait = 0, 100 // milliseconds: what was ended needs a moment to leave
	}
	if n := d.readers.end(age); n > 0 {
		d.log.Warn("ended reads that kept the journal from being emptied", "reads", n, "journal", size)
	} else if wait > 0 && d.journalHeld {
		wait = 0 // someone else's read, an sqlite3 shell: it cannot be ended
	}
	err := d.w.truncateJournal(wait)
	if err != nil && wait > 0 && !d.journalHeld {
		d.log.Warn("the journal cannot be emptied: another program reads the file", "err", err, "journal", size)
		d.journalHeld = true
	}
}

// truncateJournal copies the journal back and empties it. A reader that stays in the way
// for wait milliseconds makes it an error.
func (w *writer) truncateJournal(wait int) error {
	if err := w.script(fmt.Sprintf("PRAGMA busy_timeout = %d", wait)); err != nil {
		return err
	}
	row, _, err := w.row("PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && row[0].(int64) != 0 {
		err = fmt.Errorf("%w: a reader holds on to an old state", store.ErrBusy)
	}
	if back := w.script("PRAGMA busy_timeout = 5000"); back != nil && err == nil {
		err = back
	}
	return err
}

// readers are the read transactions under way, so that those which last too long can be
// ended.
type readers struct {
	mu   sync.Mutex
	next int
	open map[int]reader
}

type reader struct {
	since time.Time // monotonic
	end   context.CancelCauseFunc
}

var errSlowReader = fmt.Errorf("%w: the read took so long that the journal could not be emptied", store.ErrUnavailable)

// begin registers a read; done forgets it.
func (r *readers) begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[int]reader{}
	}
	id := r.next
	r.next++
	r.open[id] = reader{time.Now(), cancel}
	return ctx, func() {
		r.mu.Lock()
		delete(r.open, id)
		r.mu.Unlock()
		cancel(nil)
	}
}

// end ends the reads that have lasted longer than age.
func (r *readers) end(age time.Duration) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.open {
		if time.Since(one.since) > age {
			one.end(errSlowReader)
			n++
		}
	}
	return n
}
