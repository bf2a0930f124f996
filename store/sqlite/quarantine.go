package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"acuse/store"
)

const selectQuarantined = `SELECT id FROM deliveries INDEXED BY deliveries_hold WHERE hold <> 0 AND hold = 1 AND id > ?
	AND (?2 = '' OR source = (SELECT id FROM names WHERE name = ?2)) ORDER BY id LIMIT ?`

// QuarantinedAfter lists, oldest first; see store.Operator.
func (d *DB) QuarantinedAfter(ctx context.Context, source string, after int64, limit int) (list []store.Delivery, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		ids, err := ints(ctx, tx, selectQuarantined, after, source, limit)
		if err != nil {
			return err
		}
		list, err = deliveries(ctx, tx, ids)
		return err
	})
	return list, wrap(err, "quarantined deliveries")
}

// Release takes a delivery out of quarantine; see store.Operator.
func (d *DB) Release(ctx context.Context, delivery int64, e store.Event, by store.Actor, at time.Time) (store.Outcome, error) {
	if e.ID == "" || e.Quarantine != "" {
		return store.Outcome{}, fmt.Errorf("release delivery %d: %w: it has no event id", delivery, store.ErrState)
	}
	var out store.Outcome
	err := d.do(ctx, func(w *writer) (err error) {
		out, err = w.release(delivery, e, by, at)
		return err
	})
	return out, wrap(err, "release delivery %d", delivery)
}

func (w *writer) release(delivery int64, e store.Event, by store.Actor, at time.Time) (out store.Outcome, err error) {
	row, ok, err := w.row("SELECT hold, source, digest FROM deliveries WHERE id = ?", delivery)
	switch {
	case err != nil:
		return out, err
	case !ok:
		return out, store.ErrNotFound
	case row[0].(int64) != holdQuarantined:
		return out, store.ErrState
	}
	source := row[1].(int64)
	e.Digest = row[2].(int64)
	out = store.Outcome{Kind: store.Accepted, Delivery: delivery}
	holder, earlier, err := w.claimFor(source, e, delivery, at)
	if err != nil {
		return out, err
	}
	reason := ""
	if holder != delivery {
		out.Kind, out.Delivery = store.Duplicate, holder
		reason = fmt.Sprintf("duplicate of #%d", holder)
		if out.Revived, err = w.duplicate(holder, &e, at); err != nil {
			return out, err
		}
	}
	if err := w.identify(delivery, e, holder, earlier); err != nil {
		return out, err
	}
	list := w.newJobs()
	for _, j := range e.Jobs {
		if holder != delivery {
			j.State, j.Note = store.Cancelled, reason
		}
		if _, err := list.add(of{delivery, source, w.byID[source], &e}, j, at, false, false); err != nil {
			return out, err
		}
	}
	if err := list.end(); err != nil {
		return out, err
	}
	w.quarantined(-1)
	return out, w.audit(store.AuditEntry{At: at, By: by, Act: "release", Delivery: delivery, Reason: reason})
}

// claimFor claims the event's key for a delivery that exists already. holder is the
// delivery that has it now.
func (w *writer) claimFor(source int64, e store.Event, delivery int64, at time.Time) (holder, earlier int64, err error) {
	return w.claimUntil(source, e.ID, delivery, ms(at.Add(e.Window)), ms(at), e.WithRow)
}

// claimUntil claims a key, if nobody has it at now: withRow, the delivery that has it keeps
// it as long as it is kept itself.
func (w *writer) claimUntil(source int64, eventID string, delivery, expires, now int64, withRow bool) (holder, earlier int64, err error) {
	n, err := w.exec(insertDedup.rows(1), source, eventID, delivery, expires)
	if err != nil || n == 1 {
		return delivery, 0, err
	}
	row, ok, err := w.row(selectHolder, source, eventID)
	if err != nil || !ok {
		return 0, 0, fmt.Errorf("claim %.40q: no one has it: %w", eventID, err)
	}
	holder = row[0].(int64)
	if row[1].(int64) > now || withRow && row[2].(int64) != 0 {
		return holder, 0, nil
	}
	_, err = w.exec("UPDATE OR FAIL dedup SET delivery = ?, expires_at = ?, loose = 0 WHERE source = ? AND event_id = ?", delivery, expires, source, eventID)
	return delivery, holder, err
}

// identify writes what the event is into a delivery that was quarantined.
func (w *writer) identify(delivery int64, e store.Event, holder, earlier int64) error {
	hold, duplicateOf := int64(holdNone), int64(0)
	if len(e.Jobs) == 0 {
		hold = holdJobless
	}
	if holder != delivery {
		duplicateOf = holder
	}
	_, err := w.exec(`UPDATE OR FAIL deliveries SET hold = ?, quarantine = '', event_id = ?, made = ?, type = ?, resource = ?, version = ?, unit = ?,
		test = ?, part = ?, duplicate_of = ?, earlier = ? WHERE id = ?`,
		hold, e.ID, flag(e.Made), e.Type, e.Resource, e.Version, e.Unit, flag(e.Test), int64(e.Part), duplicateOf, earlier, delivery)
	return err
}
