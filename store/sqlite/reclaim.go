package sqlite

import (
	"context"
	"fmt"
	"os"
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

// maxJournal is where the journal is cut back, readers or not: the budget is 64 MiB.
const maxJournal = 40 << 20

// boundJournal copies the journal back and empties it when it has grown too long: that a
// reader holds on to an old state keeps the usual way, at every checkpointPages, from
// doing so. Such a reader of ours is ended.
func (d *DB) boundJournal() {
	if d.journal++; d.journal%32 != 0 {
		return
	}
	st, err := os.Stat(d.path + "-wal")
	if err != nil || st.Size() < maxJournal {
		return
	}
	if n := d.readers.end(time.Second); n > 0 {
		d.log.Warn("ended reads that kept the journal from being emptied", "reads", n, "journal", st.Size())
	}
	if err := d.w.truncateJournal(); err != nil {
		d.log.Warn("empty the journal", "err", err, "journal", st.Size())
	}
}

// truncateJournal copies the journal back and empties it. It waits for nobody: a reader
// in the way makes it an error.
func (w *writer) truncateJournal() error {
	if err := w.script("PRAGMA busy_timeout = 0"); err != nil {
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
