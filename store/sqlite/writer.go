package sqlite

import (
	"acuse/store/engine"
	"context"
)

// writer is the state of the committer's goroutine: the connection and the numbers it
// gives out. What a transaction changes here lies in pending until it is on disk.
type writer struct {
	*conn
	open    func() (*conn, error)
	log     func(msg string, args ...any)
	numbers numbers
	names   map[string]int64
	byID    map[int64]string
	leasing map[int64]bool // destinations that were leased from since start
	cache   engine.Cache
	pending pending
	copying *copying // a backup under way on the connection; nil: none
}

// numbers are the next to give out.
type numbers struct{ delivery, job, attempt, name int64 }

// pending is what the transaction under way changed in memory.
type pending struct {
	before  numbers
	names   []string
	moves   []engine.Move
	accepts []engine.Cached
	newest  int64 // received_at of the newest delivery, unix milliseconds; 0: none is new
}

// pendingMark is a point to go back to within the transaction.
type pendingMark struct {
	numbers               numbers
	names, moves, accepts int
	newest                int64
}

func (d *DB) newWriter(ctx context.Context) *writer {
	return &writer{
		open:    func() (*conn, error) { return d.connectWriter(context.WithoutCancel(ctx)) },
		log:     d.log.Error,
		names:   map[string]int64{},
		byID:    map[int64]string{},
		leasing: map[int64]bool{},
	}
}

// connected opens the connection if there is none, or none any more.
func (w *writer) connected() (err error) {
	if w.conn == nil {
		w.conn, err = w.open()
	}
	return err
}

// load reads what the writer keeps in memory: names, the next numbers, the tally.
func (w *writer) load(t *engine.Tally) error {
	if err := w.query("SELECT id, name FROM names", func(r []val) error {
		w.names[r[1].(string)], w.byID[r[0].(int64)] = r[0].(int64), r[1].(string)
		return nil
	}); err != nil {
		return err
	}
	for text, n := range map[string]*int64{
		"SELECT max((SELECT delivery FROM marks), ifnull((SELECT max(id) FROM deliveries), 0))": &w.numbers.delivery,
		"SELECT max((SELECT job FROM marks), ifnull((SELECT max(id) FROM jobs), 0))":            &w.numbers.job,
		"SELECT max((SELECT attempt FROM marks), ifnull((SELECT max(id) FROM attempts), 0))":    &w.numbers.attempt,
		"SELECT ifnull(max(id), 0) FROM names":                                                  &w.numbers.name,
	} {
		last, err := w.number(text)
		if err != nil {
			return err
		}
		*n = last + 1
	}
	return w.count(t)
}

func (w *writer) begin() error {
	w.pending = pending{before: w.numbers, names: w.pending.names[:0], moves: w.pending.moves[:0], accepts: w.pending.accepts[:0]}
	if err := w.connected(); err != nil {
		return err
	}
	_, err := w.exec("BEGIN IMMEDIATE")
	return err
}

// rollback ends the transaction, if the engine has not done so, and forgets what it
// changed in memory.
func (w *writer) rollback() {
	w.restore(pendingMark{numbers: w.pending.before})
	_, _ = w.exec("ROLLBACK") // fails when the engine rolled back by itself
}

// recover opens the connection anew after storage failed: whatever state it was in.
func (w *writer) recover() {
	if w.copying != nil {
		_ = w.copying.end(w) // it cannot go on without its connection
	}
	if w.conn != nil {
		_ = w.conn.close() // it failed already; what matters is the new one
		w.conn = nil
	}
	if err := w.connected(); err != nil {
		w.log("reopen", "err", err)
	}
}

func (w *writer) mark() pendingMark {
	p := &w.pending
	return pendingMark{w.numbers, len(p.names), len(p.moves), len(p.accepts), p.newest}
}

// restore goes back to a mark, as the engine does to its savepoint.
func (w *writer) restore(m pendingMark) {
	for _, name := range w.pending.names[m.names:] {
		delete(w.byID, w.names[name])
		delete(w.names, name)
	}
	w.pending.names = w.pending.names[:m.names]
	w.pending.moves = w.pending.moves[:m.moves]
	w.pending.accepts = w.pending.accepts[:m.accepts]
	w.pending.newest = m.newest
	w.numbers = m.numbers
}

// publish makes the committed changes visible; the caller holds the tally's lock.
func (w *writer) publish(t *engine.Tally) {
	for _, m := range w.pending.moves {
		t.Move(m)
	}
	t.Deliveries = w.numbers.delivery - 1
	if w.pending.newest != 0 {
		t.Newest = w.pending.newest
	}
	for _, c := range w.pending.accepts {
		w.cache.Put(c)
	}
}

// name returns the number of a source, destination or provider, a new one if need be.
func (w *writer) name(name string) (int64, error) {
	if id, ok := w.names[name]; ok {
		return id, nil
	}
	id := w.numbers.name
	if _, err := w.exec("INSERT OR FAIL INTO names (id, name) VALUES (?, ?)", id, name); err != nil {
		return 0, err
	}
	w.numbers.name++
	w.names[name], w.byID[id] = id, name
	w.pending.names = append(w.pending.names, name)
	return id, nil
}
