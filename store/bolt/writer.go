package bolt

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

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

// indexKey is one key of an index.
type indexKey struct {
	t   table
	key string
}

// indexKeys are the keys under which the job is found, by its state.
func (j *job) indexKeys() (list []indexKey) {
	if j == nil {
		return nil
	}
	add := func(t table, parts ...[]byte) { list = append(list, indexKey{t, string(key(parts...))}) }
	switch j.state {
	case store.Queued:
		add(tDue, small(j.destination), num(j.due), num(j.id))
	case store.Leased:
		add(tLeases, num(j.until), num(j.id))
	case store.Dead, store.Cancelled, store.Superseded, store.Filtered:
		add(tEnded, []byte{byte(j.state)}, num(j.delivery), num(j.id))
	}
	if j.state == store.Dead {
		add(tDead, small(j.destination), []byte{byte(j.reason)}, num(j.lastStatus), []byte(j.lastClass), num(j.settled), num(j.id))
	}
	if j.resend {
		add(tResent, num(j.delivery), num(j.id))
	}
	return list
}

// indexKeys are the keys under which the delivery is listed.
func (d *delivery) indexKeys() []indexKey {
	if d == nil {
		return nil
	}
	list := []indexKey{
		{tSources, string(key(small(d.source), num(d.id)))},
		{tReceived, string(key(num(d.receivedAt), num(d.id)))},
	}
	if d.hold != holdNone {
		list = append(list, indexKey{tHold, string(key([]byte{byte(d.hold)}, num(d.id)))})
	}
	if d.duplicates > 0 {
		list = append(list, indexKey{tRepeated, string(num(d.id))})
	}
	if d.payload != 0 && d.payload != d.id {
		list = append(list, indexKey{tShared, string(key(num(d.payload), num(d.id)))})
	}
	return list
}

// change writes a job in its new state, with the keys under which it is found. old is
// what it was, nil for a new one.
func (w *writer) change(old, j *job) error {
	if err := w.reindex(old.indexKeys(), j.indexKeys()); err != nil {
		return err
	}
	from := store.JobState(0)
	if old != nil {
		from = old.state
	}
	if from != j.state {
		w.pending.moves = append(w.pending.moves, engine.Move{Destination: w.name(j.destination), From: from, To: j.state, N: 1})
	}
	return w.put(tJobs, num(j.id), j.encode())
}

// changeDelivery is change for a delivery.
func (w *writer) changeDelivery(old, d *delivery) error {
	if err := w.reindex(old.indexKeys(), d.indexKeys()); err != nil {
		return err
	}
	held := func(d *delivery) int64 {
		if d != nil && d.hold == holdQuarantined {
			return 1
		}
		return 0
	}
	if n := held(d) - held(old); n != 0 {
		w.pending.moves = append(w.pending.moves, engine.Move{N: n})
	}
	return w.put(tDeliveries, num(d.id), d.encode())
}

func (w *writer) reindex(before, after []indexKey) error {
	for _, k := range before {
		if !slices.Contains(after, k) {
			if err := w.del(k.t, []byte(k.key)); err != nil {
				return err
			}
		}
	}
	for _, k := range after {
		if !slices.Contains(before, k) {
			if err := w.put(k.t, []byte(k.key), nil); err != nil {
				return err
			}
		}
	}
	return nil
}
