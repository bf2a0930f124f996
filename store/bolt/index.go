package bolt

import (
	"slices"

	"acuse/store"
	"acuse/store/engine"
)

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
	switch j.turn {
	case engine.Turn:
		add(tTurns, lineKey(j.destination, j.order), num(j.id))
		add(tHeads, num(j.turnAt), num(j.id))
		fallthrough
	case engine.Waits:
		add(tLine, lineKey(j.destination, j.order), num(j.place), num(j.id))
	}
	if j.state == store.Queued && j.latest != 0 {
		add(tLatest, small(j.destination), num(j.latest), num(j.delivery), num(j.id))
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
