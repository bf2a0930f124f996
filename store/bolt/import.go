package bolt

import (
	"context"
	"fmt"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// Import adds a delivery of another archive; see store.Dumper.
func (d *DB) Import(ctx context.Context, i store.Import) (store.Imported, error) {
	var out store.Imported
	if i.Delivery.Source == "" || i.Delivery.EventID == "" && i.Delivery.State != store.StateQuarantined || len(i.Delivery.EventID) > store.MaxEventID {
		return out, fmt.Errorf("import delivery %d: %w: it has no source or no event id, or too long a one", i.Delivery.ID, store.ErrRefused)
	}
	var jobs []store.NewJob
	for _, j := range i.Delivery.Jobs {
		jobs = append(jobs, store.NewJob{Destination: j.Destination, Key: j.Key})
	}
	if err := jobsKeepable(jobs); err != nil {
		return out, fmt.Errorf("import delivery %d: %w", i.Delivery.ID, err)
	}
	err := d.do(ctx, func(w *writer) (err error) {
		out, err = w.importOne(i)
		return err
	})
	return out, wrap(err, "import delivery %d", i.Delivery.ID)
}

func (w *writer) importOne(i store.Import) (out store.Imported, err error) {
	id := int64(w.bucket(tDeliveries).Sequence()) + 1
	if i.Delivery.ID >= id {
		id, out.Kept = i.Delivery.ID, true
	}
	row := store.DeliveryRow{Delivery: i.Delivery, Digest: i.Digest, Jobless: len(i.Delivery.Jobs) == 0}
	row.ID, row.DuplicateOf, row.CopyOf = id, 0, 0
	d, err := w.rowOf(&row)
	if err != nil {
		return out, err
	}
	if d.hold != holdQuarantined {
		holder, expires, err := w.holder(d.source, d.eventID)
		if err != nil {
			return out, err
		}
		if holder != 0 && expires > engine.Milli(i.At) {
			return store.Imported{Delivery: holder, Duplicate: true}, nil
		}
		d.earlier = holder
		if err := w.claim(d.source, d.eventID, id, engine.Milli(i.Expires)); err != nil {
			return out, err
		}
	}
	if i.Payload != nil {
		d.payload = id
		if err := w.put(tPayloads, num(id), encodePayload(i.Payload)); err != nil {
			return out, err
		}
	}
	if err := w.atLeast(tDeliveries, id); err != nil {
		return out, fault{where: "deliveries", err: err}
	}
	out.Delivery, w.pending.newest = id, d.receivedAt
	for _, j := range i.Delivery.Jobs {
		if err := w.importJob(&out, &d, i, j); err != nil {
			return out, err
		}
	}
	return out, w.changeDelivery(nil, &d)
}

func (w *writer) importJob(out *store.Imported, d *delivery, i store.Import, j store.Job) (err error) {
	old, row := j.ID, store.JobRow{Since: i.At}
	j.SupersededBy, j.TurnAt = 0, time.Time{}
	j.Delivery, j.LeaseToken, j.LeaseOwner = d.id, 0, ""
	if j.State == store.Queued || j.State == store.Leased {
		if i.Requeue && i.Payload != nil {
			j.State, j.DueAt, j.Spent = store.Queued, i.At, 0
			if j.Order != "" {
				row.Turn, row.Place = engine.Waits, engine.Place(d.id)
			}
		} else {
			j.State, j.SettledAt = store.Cancelled, i.At
			out.Cancelled++
		}
	}
	if j.ID, err = w.next(tJobs); err != nil {
		return err
	}
	row.Job = j
	n, err := w.jobOfRow(&row)
	if err != nil {
		return err
	}
	n.until = 0
	d.jobs = append(d.jobs, n.id)
	if err := w.change(nil, &n); err != nil {
		return err
	}
	if n.turn != engine.NoTurn {
		if err := w.advance(n.destination, n.order, engine.Milli(i.At)); err != nil {
			return err
		}
	}
	for _, a := range i.Attempts {
		if a.Job != old {
			continue
		}
		id, err := w.next(tAttempts)
		if err != nil {
			return err
		}
		one := attempt{job: n.id, id: id, n: int64(a.N), started: engine.Milli(a.StartedAt), resend: a.Resend, owner: a.Owner, result: a.Result}
		if one.result.Outcome == store.Running {
			one.result.Outcome = store.Interrupted
		}
		if err := w.putAttempt(&one); err != nil {
			return err
		}
	}
	return nil
}
