package sqlite

import (
	"context"
	"database/sql"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// line is an order: the jobs of a destination that have the same order value.
type line struct {
	destination int64
	value       string // empty: no order
}

const (
	selectTurn = "SELECT id FROM jobs INDEXED BY jobs_turn WHERE order_turn = 1 AND destination = ? AND order_value = ?"
	selectNext = "SELECT id FROM jobs INDEXED BY jobs_line WHERE order_turn <> 0 AND destination = ? AND order_value = ? ORDER BY order_place, id LIMIT 1"
	selectLast = "SELECT order_place FROM jobs INDEXED BY jobs_line WHERE order_turn <> 0 AND destination = ? AND order_value = ? ORDER BY order_place DESC, id DESC LIMIT 1"
	giveTurn   = "UPDATE OR FAIL jobs SET order_turn = 1, order_since = ?, due_at = ? WHERE id = ?"
)

// advance gives the turn to the first in line, due at that instant, if nobody has it.
// Whoever takes a job out of a line, or puts one in, calls it afterwards.
func (w *writer) advance(l line, at int64) error {
	if l.value == "" {
		return nil
	}
	if _, taken, err := w.row(selectTurn, l.destination, l.value); err != nil || taken {
		return err
	}
	row, ok, err := w.row(selectNext, l.destination, l.value)
	if err != nil || !ok {
		return err
	}
	_, err = w.exec(giveTurn, at, at, row[0].(int64))
	return err
}

// endOf is the place behind all of a line.
func (w *writer) endOf(l line) (int64, error) {
	last, err := w.number(selectLast, l.destination, l.value)
	return engine.EndPlace(w.numbers.delivery-1, last), err
}

// requeue queues a job again, due at that instant, with a fresh budget: at the end of its
// line, if it has one. set is what else changes.
func (w *writer) requeue(job int64, l line, at int64, set string) error {
	due, turn, place := at, int64(engine.NoTurn), int64(0)
	if l.value != "" {
		var err error
		if place, err = w.endOf(l); err != nil {
			return err
		}
		due, turn = engine.Never, engine.Waits
	}
	if _, err := w.exec(`UPDATE OR FAIL jobs SET state = 1, due_at = ?2, since = ?3, spent = 0, settled_at = 0, reason = 0, lease_token = 0,
		superseded_by = 0, order_turn = ?4, order_place = ?5, order_since = 0`+set+` WHERE id = ?1`, job, due, at, turn, place); err != nil {
		return err
	}
	return w.advance(l, at)
}

// older is a queued job that may be superseded.
type older struct {
	id, delivery      int64
	version           string
	value             string
	source            int64
	resource, kind, u string
}

const selectOlder = `SELECT j.id, j.delivery, j.order_value, d.version, d.source, d.resource, d.type, d.unit
	FROM jobs j INDEXED BY jobs_latest JOIN deliveries d ON d.id = j.delivery
	WHERE j.state = 1 AND j.latest <> 0 AND j.destination = ?1 AND j.latest = ?2 AND j.delivery < ?3 ORDER BY j.delivery DESC LIMIT ?4`

// newest is a job just added whose event may replace earlier ones.
type newest struct {
	delivery, destination, source, digest int64
	event                                 *store.Event
	at                                    int64
}

// supersede ends the queued jobs of lower versions.
func (w *writer) supersede(n newest) error {
	var list []older
	if err := w.query(selectOlder, func(r []val) error {
		list = append(list, older{id: r[0].(int64), delivery: r[1].(int64), value: r[2].(string), version: r[3].(string),
			source: r[4].(int64), resource: r[5].(string), kind: r[6].(string), u: r[7].(string)})
		return nil
	}, n.destination, n.digest, n.delivery, int64(engine.MaxOlder)); err != nil {
		return err
	}
	for _, o := range list {
		same := o.source == n.source && o.resource == n.event.Resource && o.kind == n.event.Type && o.u == n.event.Unit
		if !same || !store.Newer(o.u, n.event.Version, o.version) {
			continue
		}
		if _, err := w.exec("UPDATE OR FAIL jobs SET state = 6, settled_at = ?, lease_token = 0, order_turn = 0, superseded_by = ? WHERE id = ?",
			n.at, n.delivery, o.id); err != nil {
			return err
		}
		w.moved(n.destination, store.Queued, store.Superseded)
		if err := w.advance(line{n.destination, o.value}, n.at); err != nil {
			return err
		}
	}
	return nil
}

const (
	selectJobLine = "SELECT destination, order_value, order_place, order_turn FROM jobs WHERE id = ?"
	headColumns   = "SELECT j.id, j.delivery, n.name, j.order_value, j.state, j.order_since, j.due_at, j.destination FROM jobs j"
	selectHead    = headColumns + " INDEXED BY jobs_turn JOIN names n ON n.id = j.destination WHERE j.order_turn = 1 AND j.destination = ? AND j.order_value = ?"
	selectHeads   = headColumns + ` INDEXED BY jobs_heads CROSS JOIN names n ON n.id = j.destination WHERE j.order_turn = 1 AND j.order_since <= ?
		ORDER BY j.order_since LIMIT ?`
	countAhead = `SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_line
		WHERE order_turn <> 0 AND destination = ?1 AND order_value = ?2 AND order_place < ?3 LIMIT ?4)`
	countLine = `SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_line
		WHERE order_turn <> 0 AND destination = ?1 AND order_value = ?2 LIMIT ?3)`
)

// Line tells where a job stands; see store.Orders.
func (d *DB) Line(ctx context.Context, job int64) (out store.Line, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		var l line
		var place, turn int64
		if err := tx.QueryRowContext(ctx, selectJobLine, job).Scan(&l.destination, &l.value, &place, &turn); err != nil {
			return d.missing(err)
		}
		if turn == engine.NoTurn {
			return store.ErrNotFound
		}
		var destination int64
		if out.Head, destination, err = scanHead(tx.QueryRowContext(ctx, selectHead, l.destination, l.value)); err != nil {
			return d.missing(err)
		}
		if out.Head.Behind, err = behind(ctx, tx, destination, l.value); err != nil || turn == engine.Turn {
			return err
		}
		// The one that has its turn may stand behind by its place: a released delivery
		// with a lower number does not take it away.
		err = tx.QueryRowContext(ctx, countAhead, l.destination, l.value, place, store.MaxAhead).Scan(&out.Ahead)
		out.Ahead = max(out.Ahead, 1)
		return err
	})
	return out, wrap(err, "line of job %d", job)
}

func scanHead(s scanner) (h store.Head, destination int64, err error) {
	var since, due int64
	err = s.Scan(&h.Job, &h.Delivery, &h.Destination, &h.Order, &h.State, &since, &due, &destination)
	if h.Since = instant(since); h.State == store.Queued {
		h.DueAt = instant(due)
	}
	return h, destination, err
}

// behind counts the jobs of a line but for the one that has its turn.
func behind(ctx context.Context, tx *sql.Tx, destination int64, value string) (n int, err error) {
	err = tx.QueryRowContext(ctx, countLine, destination, value, store.MaxAhead+1).Scan(&n)
	return max(n-1, 0), err
}

// Heads lists the jobs that hold up others; see store.Orders.
func (d *DB) Heads(ctx context.Context, since time.Time, limit int) (list []store.Head, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		var all []store.Head
		var lanes []int64
		if err := each(ctx, tx, selectHeads, func(s scanner) error {
			h, destination, err := scanHead(s)
			all, lanes = append(all, h), append(lanes, destination)
			return err
		}, ms(since), engine.HeadLooks); err != nil {
			return err
		}
		for i, h := range all {
			if len(list) == limit {
				break
			}
			if h.Behind, err = behind(ctx, tx, lanes[i], h.Order); err != nil {
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
