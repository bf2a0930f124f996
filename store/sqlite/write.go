package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	sqlite "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"acuse/store"
	"acuse/store/engine"
)

// write is one thing to commit: an arrival, or a function for everything else. The
// committer's goroutine fills in the outcome before the batch is announced.
type write struct {
	arrival  *store.Arrival
	outcomes []store.Outcome

	// do runs inside the transaction, again when its batch had to be rolled back. An
	// error that is not the engine's is the outcome of this write alone; do must not
	// have written anything then.
	do   func(*writer) error
	last bool // runs after the batch's arrivals: a lease sees them
	// after runs once the transaction is on disk, outside of any; its error is the
	// outcome.
	after func(*writer) error

	err error
}

// submit queues w and waits until its transaction ended.
func (d *DB) submit(ctx context.Context, w *write, bytes int) error {
	if err := d.committer.Do(ctx, w, bytes); err != nil {
		return err
	}
	return w.err
}

// do commits one function.
func (d *DB) do(ctx context.Context, f func(*writer) error) error {
	return d.submit(ctx, &write{do: f}, 0)
}

// commit is the committer's write function: one transaction for the whole batch. When
// the engine refuses something, the batch is run again with a savepoint for each write,
// so that one write fails alone. When the volume is full the reserve is given up and
// all but the arrivals are run again.
func (d *DB) commit(batch []*write) {
	err := d.transact(batch, false)
	if err != nil && !unavailable(err) {
		err = d.transact(batch, true)
	}
	if d.isFull(err) {
		d.space.Full()
		if rest := withoutArrivals(batch, err); len(rest) > 0 && d.space.GiveUp() {
			batch, err = rest, d.transact(rest, true)
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		for _, w := range batch {
			w.err = err
		}
	}
	d.note(err, len(batch))
	if err != nil {
		d.doubted = d.doubted || code(err) == lib.SQLITE_IOERR
		d.w.recover()
		return
	}
	for _, w := range batch {
		if w.after != nil && w.err == nil {
			w.err = w.after(d.w)
		}
	}
	d.boundJournal(d.walSize)
}

// slow is how long a transaction may take before it is logged: the disk or the machine is
// to blame, since no batch is large enough.
const slow = 200 * time.Millisecond

// transact runs the batch in one transaction; nil means it is on disk. After an error
// nothing of it is.
func (d *DB) transact(batch []*write, alone bool) error {
	w, began := d.w, time.Now()
	if d.lost {
		return engine.ErrReplaced
	}
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.apply(batch, alone); err != nil {
		w.rollback()
		return err
	}
	applied := time.Since(began)
	if _, err := w.exec("COMMIT"); err != nil {
		w.rollback()
		return err
	}
	if d.lost = !d.kept(); d.lost {
		return engine.ErrReplaced // the commit went to a file without a name
	}
	took := time.Since(began)
	if took > slow {
		d.log.Warn("slow transaction", "took", took, "of_it_sync", took-applied, "writes", len(batch))
	}
	d.space.Used(size(batch))
	d.mu.Lock()
	w.publish(&d.tally)
	d.counts.commits++
	d.counts.writes += uint64(len(batch))
	d.counts.longest = max(d.counts.longest, took)
	d.mu.Unlock()
	return nil
}

// size is about how many bytes a batch takes on the disk, indexes and half-filled pages
// included.
func size(batch []*write) (n int64) {
	for _, w := range batch {
		n += 1024
		if w.arrival != nil {
			n += int64(len(w.arrival.Body)+len(w.arrival.Header)) * 3 / 2
		}
	}
	return n
}

// apply writes the batch: what came back from workers and people first, then the
// arrivals together, leases last.
func (w *writer) apply(batch []*write, alone bool) error {
	for _, one := range batch {
		if one.do != nil && !one.last {
			if err := w.one(one, alone); err != nil {
				return err
			}
		}
	}
	if err := w.arrivals(batch, alone); err != nil {
		return err
	}
	for _, one := range batch {
		if one.do != nil && one.last {
			if err := w.one(one, alone); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) arrivals(batch []*write, alone bool) error {
	var list []*write
	for _, one := range batch {
		if one.arrival == nil {
			continue
		}
		if !alone {
			list = append(list, one)
		} else if err := w.one(one, true); err != nil {
			return err
		}
	}
	return w.accept(list)
}

// one runs one write. With alone set, what it wrote is taken back when the engine
// refuses it, and the batch goes on.
func (w *writer) one(one *write, alone bool) error {
	if !alone {
		return w.outcome(one, one.do(w))
	}
	if _, err := w.exec("SAVEPOINT one"); err != nil {
		return err
	}
	mark := w.mark()
	var err error
	if one.arrival != nil {
		err = w.accept([]*write{one})
	} else {
		err = one.do(w)
	}
	if isEngine(err) {
		if unavailable(err) {
			return err
		}
		if _, back := w.exec("ROLLBACK TO one"); back != nil {
			return back
		}
		w.restore(mark)
		err = fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	if _, release := w.exec("RELEASE one"); release != nil {
		return release
	}
	return w.outcome(one, err)
}

// outcome keeps an error that concerns one write only; an engine's error ends the batch.
func (w *writer) outcome(one *write, err error) error {
	if isEngine(err) && !errors.Is(err, store.ErrRefused) {
		return err
	}
	one.err = err
	return nil
}

// note keeps what Health shows, and logs a failing disk once a minute only.
func (d *DB) note(err error, writes int) {
	d.mu.Lock()
	was := d.broken
	d.broken = err
	tell := err != nil && (was == nil || time.Since(d.logged) > time.Minute)
	if tell {
		d.logged = time.Now()
	}
	d.mu.Unlock()
	switch {
	case tell:
		d.log.Error("commit", "err", err, "writes", writes)
	case err == nil && was != nil:
		d.log.Info("commits work again")
	}
	if err == nil {
		d.space.Restock()
	}
}

func withoutArrivals(batch []*write, err error) (rest []*write) {
	for _, w := range batch {
		if w.arrival == nil {
			rest = append(rest, w)
		} else {
			w.err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
	}
	return rest
}

// isEngine tells an error of SQLite from an outcome such as store.ErrLeaseLost.
func isEngine(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e)
}

func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// isFull tells whether err comes from a full volume. Where SQLite cannot say so itself,
// as when the journal's index cannot grow, the volume is asked.
func (d *DB) isFull(err error) bool {
	switch code(err) {
	case lib.SQLITE_FULL:
		return true
	case lib.SQLITE_IOERR, lib.SQLITE_CANTOPEN:
		free, _ := engine.Free(d.dir)
		return free < 1<<20
	}
	return false
}

// unavailable tells whether storage fails, rather than one write being wrong.
func unavailable(err error) bool {
	switch code(err) {
	case 0, lib.SQLITE_CONSTRAINT, lib.SQLITE_TOOBIG, lib.SQLITE_MISMATCH, lib.SQLITE_ERROR:
		return false // 0: not the engine's error at all
	}
	return true
}
