package bolt

import (
	"context"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// lineKey is the prefix of an order: the jobs of a destination with the same order value.
func lineKey(destination int64, order string) []byte { return key(small(destination), text(order)) }

// first is the last number of the first key with the prefix, or of the last one.
func (x *tx) first(t table, prefix []byte, back bool) (n int64, ok bool) {
	for k := range x.keys(t, prefix, back) {
		return last(k), true
	}
	return 0, false
}

// advance gives the turn to the first in line, due at that instant, if nobody has it.
// Whoever takes a job out of a line, or puts one in, calls it afterwards.
func (w *writer) advance(destination int64, order string, at int64) error {
	if order == "" {
		return nil
	}
	line := lineKey(destination, order)
	if _, taken := w.first(tTurns, line, false); taken {
		return nil
	}
	id, ok := w.first(tLine, line, false)
	if !ok {
		return nil
	}
	old, err := w.jobOf(0, id)
	if err != nil {
		return err
	}
	j := old
	j.turn, j.turnAt, j.due = engine.Turn, at, at
	return w.change(&old, &j)
}

// leaves writes a job in a state in which it may not keep its turn, and lets the next one
// have it.
func (w *writer) leaves(old, j *job, at int64) error {
	if !engine.Keeps(j.state, j.strict) {
		j.turn, j.turnAt = engine.NoTurn, 0
	}
	if err := w.change(old, j); err != nil || j.turn == old.turn {
		return err
	}
	return w.advance(j.destination, j.order, at)
}

// requeue queues a job again, due at that instant, with a fresh budget: at the end of its
// line, if it has one. What else changes is in j already.
func (w *writer) requeue(old, j *job, at int64) error {
	j.state, j.due, j.since, j.spent, j.settled, j.reason, j.token, j.supersededBy = store.Queued, at, at, 0, 0, 0, 0, 0
	j.turnAt = 0
	if j.order != "" {
		last := int64(0)
		for k := range w.keys(tLine, lineKey(j.destination, j.order), true) {
			last = numAt(k, len(k)-16)
			break
		}
		j.due, j.turn = engine.Never, engine.Waits
		j.place = engine.EndPlace(int64(w.bucket(tDeliveries).Sequence()), last)
	}
	if err := w.change(old, j); err != nil {
		return err
	}
	return w.advance(j.destination, j.order, at)
}

// supersede ends the queued jobs of lower versions than that of the event, which became
// the job.
func (w *writer) supersede(n *job, source int64, e *store.Event, at int64) error {
	var ids []int64
	for k := range w.keys(tLatest, key(small(n.destination), num(n.latest)), true) {
		if numAt(k, 12) < n.delivery {
			if ids = append(ids, last(k)); len(ids) == engine.MaxOlder {
				break
			}
		}
	}
	for _, id := range ids {
		old, err := w.jobOf(0, id)
		if err != nil {
			return err
		}
		d, err := w.found(old.delivery)
		if err != nil {
			return err
		}
		same := d.source == source && d.resource == e.Resource && d.kind == e.Type && d.unit == e.Unit
		if !same || !store.Newer(d.unit, e.Version, d.version) {
			continue
		}
		j := old
		j.state, j.settled, j.token, j.supersededBy = store.Superseded, at, 0, n.delivery
		if err := w.leaves(&old, &j, at); err != nil {
			return err
		}
	}
	return nil
}

// Line tells where a job stands; see store.Orders.
func (d *DB) Line(ctx context.Context, id int64) (out store.Line, err error) {
	err = d.view(ctx, func(x *tx) error {
		j, err := x.job(id)
		if err != nil {
			return err
		}
		if j.turn == engine.NoTurn {
			return store.ErrNotFound
		}
		line := lineKey(j.destination, j.order)
		head, ok := x.first(tTurns, line, false)
		if !ok {
			return store.ErrNotFound
		}
		if out.Head, err = x.head1(head); err != nil || j.turn == engine.Turn {
			return err
		}
		for k := range x.keys(tLine, line, false) {
			if numAt(k, len(k)-16) >= j.place || out.Ahead == store.MaxAhead {
				break
			}
			out.Ahead++
		}
		// The one that has its turn may stand behind by its place: a released delivery
		// with a lower number does not take it away.
		out.Ahead = max(out.Ahead, 1)
		return nil
	})
	return out, wrap(err, "line of job %d", id)
}

// head1 is the job whose turn it is.
func (x *tx) head1(id int64) (h store.Head, err error) {
	j, err := x.jobOf(0, id)
	if err != nil {
		return h, err
	}
	h = store.Head{Job: j.id, Delivery: j.delivery, Destination: x.name(j.destination), Order: j.order, State: j.state, Since: engine.Instant(j.turnAt)}
	if j.state == store.Queued {
		h.DueAt = engine.Instant(j.due)
	}
	n := 0
	for range x.keys(tLine, lineKey(j.destination, j.order), false) {
		if n++; n > store.MaxAhead {
			break
		}
	}
	h.Behind = max(n-1, 0)
	return h, nil
}

// Heads lists the jobs that hold up others; see store.Orders.
func (d *DB) Heads(ctx context.Context, since time.Time, limit int) (list []store.Head, err error) {
	err = d.view(ctx, func(x *tx) error {
		looked := 0
		for k := range x.keys(tHeads, nil, false) {
			if numAt(k, 0) > engine.Milli(since) || len(list) == limit || looked == engine.HeadLooks {
				break
			}
			looked++
			h, err := x.head1(last(k))
			if err != nil {
				return err
			}
			if h.Behind > 0 {
				list = append(list, h)
			}
		}
		return nil
	})
	return list, wrap(err, "heads")
}
