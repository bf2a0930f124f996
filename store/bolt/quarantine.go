package bolt

import (
	"context"
	"fmt"
	"time"

	"acuse/store"
)

// QuarantinedAfter lists, oldest first; see store.Operator.
func (d *DB) QuarantinedAfter(ctx context.Context, source string, after int64, limit int) (list []store.Delivery, err error) {
	err = d.view(ctx, func(x *tx) error {
		only := int64(0)
		if source != "" {
			if only = x.named(source); only == 0 {
				return nil
			}
		}
		for id := range under(tHold, []byte{holdQuarantined})(x, after, 1<<62, false) {
			if len(list) >= limit {
				break
			}
			row, err := x.found(id)
			if err != nil {
				return err
			}
			if only != 0 && row.source != only {
				continue
			}
			out, err := x.full(&row)
			if err != nil {
				return err
			}
			list = append(list, out)
		}
		return nil
	})
	return list, wrap(err, "quarantined deliveries")
}

// Release takes a delivery out of quarantine; see store.Operator.
func (d *DB) Release(ctx context.Context, delivery int64, e store.Event, by store.Actor, at time.Time) (store.Outcome, error) {
	if e.ID == "" || e.Quarantine != "" {
		return store.Outcome{}, fmt.Errorf("release delivery %d: %w: it has no event id", delivery, store.ErrState)
	}
	if err := keepable(&store.Arrival{Source: "any", Events: []store.Event{e}}); err != nil {
		return store.Outcome{}, fmt.Errorf("release delivery %d: %w", delivery, err)
	}
	var out store.Outcome
	err := d.do(ctx, func(w *writer) (err error) {
		out, err = w.release(delivery, e, by, at)
		return err
	})
	return out, wrap(err, "release delivery %d", delivery)
}

func (w *writer) release(id int64, e store.Event, by store.Actor, at time.Time) (out store.Outcome, err error) {
	d, err := w.found(id)
	switch {
	case err != nil:
		return out, err
	case d.hold != holdQuarantined:
		return out, store.ErrState
	}
	before := d
	d.hold, d.quarantine, d.eventID, d.made, d.kind, d.resource = holdNone, "", e.ID, e.Made, e.Type, e.Resource
	d.version, d.unit, d.test, d.part, d.earlier = e.Version, e.Unit, e.Test, int64(e.Part), 0
	e.Digest = d.digest
	out = store.Outcome{Kind: store.Accepted, Delivery: id}
	holder, claimed, err := w.claimed(d.source, &e, at)
	if err != nil {
		return out, err
	}
	reason := ""
	if claimed {
		out.Kind, out.Delivery = store.Duplicate, holder
		reason = fmt.Sprintf("duplicate of #%d", holder)
		d.duplicateOf = holder
		if out.Revived, err = w.duplicate(holder, &e, at); err != nil {
			return out, err
		}
		for _, j := range e.Jobs {
			j.State, j.Note = store.Cancelled, reason
			if err := w.addJob(&d, j, nil, at, false, false); err != nil {
				return out, err
			}
		}
		if len(e.Jobs) == 0 {
			d.hold = holdJobless
		}
	} else {
		d.earlier = holder
		if err := w.identified(&d, &e, at); err != nil {
			return out, err
		}
	}
	if err := w.changeDelivery(&before, &d); err != nil {
		return out, err
	}
	return out, w.audit(store.AuditEntry{At: at, By: by, Act: "release", Delivery: id, Reason: reason})
}
