package bolt

import (
	"errors"
	"fmt"
	"log/slog"

	bbolt "go.etcd.io/bbolt"

	"acuse/store"
	"acuse/store/engine"
)

// writer is the state of the committer's goroutine: the transaction under way and what
// is kept in memory beside the file. What a transaction changes here lies in pending
// until it is on disk.
type writer struct {
	*tx
	log     *slog.Logger
	caught  func(p any) error
	names   map[string]int64
	leasing map[int64]bool // destinations that were leased from since start
	cache   engine.Cache
	pending pending

	committed int  // transaction that the memory agrees with
	sick      bool // the last commit failed: the file is looked at before the next
	torn      bool // the engine stopped in the middle of it: its state is not used again
}

// pending is what the transaction under way changed in memory.
type pending struct {
	names   []string
	moves   []engine.Move
	accepts []engine.Cached
	newest  int64 // received_at of the newest delivery, unix milliseconds; 0: none is new
}

// begin starts a transaction.
func (w *writer) begin(d *DB) error {
	w.pending = pending{names: w.pending.names[:0], moves: w.pending.moves[:0], accepts: w.pending.accepts[:0]}
	if w.sick {
		if err := d.heal(); err != nil {
			return err
		}
	}
	t, err := d.file.Load().Begin(true)
	if err != nil {
		return err
	}
	w.tx = &tx{Tx: t}
	used, free := room(t)
	t.DB().NoFreelistSync = free > manyFree
	d.inUse.Store(used)
	return nil
}

// room is how many bytes of the file hold something as a transaction finds it, and how
// many of its pages nothing: those that a reader still wants count as free.
func room(t *bbolt.Tx) (used int64, free int) {
	s := t.DB().Stats()
	free = s.FreePageN + s.PendingPageN
	return t.Size() - int64(free)*pageSize, free
}

// forget takes back what the transaction changed in memory.
func (w *writer) forget() {
	for _, name := range w.pending.names {
		delete(w.names, name)
	}
}

// publish makes the committed changes visible; the caller holds the tally's lock.
func (w *writer) publish(t *engine.Tally, highest int64) {
	for _, m := range w.pending.moves {
		t.Move(m)
	}
	t.Deliveries = highest
	if w.pending.newest != 0 {
		t.Newest = w.pending.newest
	}
	for _, c := range w.pending.accepts {
		w.cache.Put(c)
	}
}

// load reads what the writer keeps in memory: names, the tally.
func (w *writer) load(x *tx, t *engine.Tally) error {
	w.names = map[string]int64{}
	c := x.bucket(tNames).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		w.names[string(v)] = smallAt(k, 0)
	}
	w.committed = x.ID()
	*t = engine.Tally{}
	return x.count(t)
}

// count reads the tally from the file.
func (x *tx) count(t *engine.Tally) error {
	move := func(destination int64, to store.JobState) {
		t.Move(engine.Move{Destination: x.name(destination), To: to, N: 1})
	}
	for k := range x.keys(tDue, nil, false) {
		move(smallAt(k, 0), store.Queued)
	}
	for k := range x.keys(tLeases, nil, false) {
		j, err := x.job(last(k))
		if err != nil {
			return err
		}
		move(j.destination, store.Leased)
	}
	for k := range x.keys(tDead, nil, false) {
		move(smallAt(k, 0), store.Dead)
	}
	for range x.keys(tHold, []byte{holdQuarantined}, false) {
		t.Move(engine.Move{N: 1})
	}
	t.Deliveries = int64(x.bucket(tDeliveries).Sequence())
	if k, v := x.bucket(tDeliveries).Cursor().Last(); k != nil {
		d, err := decodeDelivery(numAt(k, 0), v)
		if err != nil {
			return err
		}
		t.Newest = d.receivedAt
	}
	return nil
}

// nameID returns the number of a source, destination or provider, a new one if need be.
func (w *writer) nameID(name string) (int64, error) {
	if id, ok := w.names[name]; ok {
		return id, nil
	}
	id, err := w.next(tNames)
	if err != nil {
		return 0, err
	}
	if err := w.put(tNames, small(id), []byte(name)); err != nil {
		return 0, err
	}
	w.names[name] = id
	w.pending.names = append(w.pending.names, name)
	return id, nil
}

// job reads one job; store.ErrNotFound.
func (x *tx) job(id int64) (job, error) {
	v := x.get(tJobs, num(id))
	if v == nil {
		return job{}, store.ErrNotFound
	}
	return decodeJob(id, v)
}

// jobOf reads a job that a delivery names.
func (x *tx) jobOf(delivery, id int64) (job, error) {
	j, err := x.job(id)
	if errors.Is(err, store.ErrNotFound) {
		err = fault{where: "jobs", err: fmt.Errorf("job %d of delivery %d is missing", id, delivery)}
	}
	return j, err
}

// delivery reads one row; ok is false when it is not there.
func (x *tx) delivery(id int64) (d delivery, ok bool, err error) {
	v := x.get(tDeliveries, num(id))
	if v == nil {
		return delivery{}, false, nil
	}
	d, err = decodeDelivery(id, v)
	return d, err == nil, err
}
