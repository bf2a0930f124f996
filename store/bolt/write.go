package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"acuse/store"
	"acuse/store/engine"
)

// write is one thing to commit: an arrival, or a function for everything else. The
// committer's goroutine fills in the outcome before the batch is announced.
type write struct {
	arrival  *store.Arrival
	outcomes []store.Outcome

	// do runs inside the transaction, again when its batch had to be rolled back. An
	// error that is no fault is the outcome of this write alone; do must not have
	// written anything then.
	do   func(*writer) error
	last bool // runs after the batch's arrivals: a lease sees them

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
// the volume is full the reserve is given up and all but the arrivals are run again.
func (d *DB) commit(batch []*write) {
	debug.SetPanicOnFault(true) // a page that cannot be read is an error, not the end
	rest, err := d.transact(batch)
	if err != nil && d.isFull(err) {
		d.space.Full()
		if others := withoutArrivals(rest, err); len(others) > 0 && d.space.GiveUp() {
			rest, err = d.transact(others)
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		for _, w := range rest {
			w.err = err
		}
	}
	d.note(err, len(batch))
	if d.w.sick {
		if err := d.heal(); err != nil {
			d.log.Error("reopen", "err", err)
		}
	}
}

// transact runs the batch in one transaction; nil means it is on disk. A write at which
// the engine finds fault fails alone: it is taken out and the others are run again. They
// are returned: with an error, nothing of them is on disk.
func (d *DB) transact(batch []*write) ([]*write, error) {
	for len(batch) > 0 {
		bad, err := d.try(batch)
		if bad == nil {
			return batch, err
		}
		why := store.ErrRefused
		if f := (fault{}); errors.As(err, &f) && f.unread {
			why = store.ErrUnavailable
		}
		bad.err = fmt.Errorf("%w: %w", why, err)
		batch = slices.DeleteFunc(slices.Clone(batch), func(w *write) bool { return w == bad })
	}
	return nil, nil
}

// try is one run of a batch. bad is the write that the engine found fault with.
func (d *DB) try(batch []*write) (bad *write, err error) {
	w, began := d.w, time.Now()
	if err := w.begin(d); err != nil {
		return nil, err
	}
	if bad, err := w.apply(batch); err != nil {
		w.forget()
		return bad, errors.Join(err, w.Rollback())
	}
	number, highest := w.ID(), int64(w.bucket(tDeliveries).Sequence())
	if err := w.finish(); err != nil {
		w.forget()
		w.sick = true
		return nil, err
	}
	if d.removed() {
		w.forget()
		w.sick = true
		return nil, engine.ErrReplaced
	}
	d.space.Used(size(batch))
	d.mu.Lock()
	w.publish(&d.tally, highest)
	d.counts.commits++
	d.counts.writes += uint64(len(batch))
	d.counts.longest = max(d.counts.longest, time.Since(began))
	d.mu.Unlock()
	w.committed = number
	return nil, nil
}

// finish commits. After an error nothing of the transaction is acknowledged, although
// the file may hold it; see heal.
func (w *writer) finish() (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.torn = true
			err = errors.Join(fmt.Errorf("commit: %v", p), w.Rollback())
		}
	}()
	return w.Commit()
}

// size is about how many bytes a batch takes on the disk, half-filled pages included.
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
// arrivals, leases last.
func (w *writer) apply(batch []*write) (bad *write, err error) {
	for turn := range 3 {
		for _, one := range batch {
			mine := 0
			switch {
			case one.arrival != nil:
				mine = 1
			case one.last:
				mine = 2
			}
			if mine != turn {
				continue
			}
			if err := w.one(one); err != nil {
				return one, err
			}
		}
	}
	return nil, nil
}

// one runs one write. What is no fault concerns that write only, and stays with it.
func (w *writer) one(one *write) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = w.caught(p)
		}
	}()
	if one.arrival != nil {
		return w.accept(one)
	}
	one.err = one.do(w)
	if f := (fault{}); errors.As(one.err, &f) {
		return one.err
	}
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

// isFull tells whether err comes from a full volume, or a file that may not grow. Where
// the engine hides the cause the volume is asked.
func (d *DB) isFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	free, _ := engine.Free(d.dir)
	return free < 1<<20
}
