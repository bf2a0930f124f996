package sqlite

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
	if i.Delivery.Source == "" || i.Delivery.EventID == "" && i.Delivery.State != store.StateQuarantined {
		return out, fmt.Errorf("import delivery %d: %w: it has no source or no event id", i.Delivery.ID, store.ErrRefused)
	}
	err := d.do(ctx, func(w *writer) (err error) {
		out, err = w.importOne(i)
		return err
	})
	return out, wrap(err, "import delivery %d", i.Delivery.ID)
}

func (w *writer) importOne(i store.Import) (out store.Imported, err error) {
	id := w.numbers.delivery
	if i.Delivery.ID >= id {
		id, out.Kept = i.Delivery.ID, true
	}
	row := store.DeliveryRow{Delivery: i.Delivery, Digest: i.Digest, Jobless: len(i.Delivery.Jobs) == 0}
	row.ID, row.DuplicateOf, row.CopyOf = id, 0, 0
	source, err := w.name(row.Source)
	if err != nil {
		return out, err
	}
	if row.State != store.StateQuarantined {
		holder, earlier, err := w.claimUntil(source, row.EventID, id, ms(i.Expires), ms(i.At), false)
		if err != nil {
			return out, err
		}
		if holder != id {
			return store.Imported{Delivery: holder, Duplicate: true}, nil
		}
		row.Earlier = earlier
	}
	if i.Payload != nil {
		row.Payload = id
		p := i.Payload
		if _, err := w.exec(insertPayload.rows(1), id, p.Method, p.Target, blob(p.Header), blob(p.Body)); err != nil {
			return out, err
		}
	}
	w.numbers.delivery = id + 1
	if err := w.loadDelivery(&row); err != nil {
		return out, err
	}
	out.Delivery = id
	for _, j := range i.Delivery.Jobs {
		if err := w.importJob(&out, i, j); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (w *writer) importJob(out *store.Imported, i store.Import, j store.Job) error {
	old := j.ID
	j.ID, j.Delivery = w.numbers.job, out.Delivery
	w.numbers.job++
	j.LeaseToken, j.LeaseOwner = 0, ""
	row := store.JobRow{Since: i.At}
	if j.State == store.Queued || j.State == store.Leased {
		if i.Requeue && i.Payload != nil {
			j.State, j.DueAt, j.Spent = store.Queued, i.At, 0
			if j.Order != "" {
				row.Turn, row.Place = engine.Waits, engine.Place(j.Delivery)
			}
		} else {
			j.State, j.SettledAt = store.Cancelled, i.At
			out.Cancelled++
		}
	}
	j.SupersededBy, j.TurnAt = 0, time.Time{}
	row.Job = j
	if err := w.loadJob(&row); err != nil {
		return err
	}
	if row.Turn != engine.NoTurn {
		if err := w.advance(line{w.names[j.Destination], j.Order}, ms(i.At)); err != nil {
			return err
		}
	}
	for _, a := range i.Attempts {
		if a.Job != old {
			continue
		}
		if a.Outcome == store.Running {
			a.Outcome = store.Interrupted
		}
		a.ID, a.Job = w.numbers.attempt, j.ID
		w.numbers.attempt++
		if err := w.loadAttempt(&a); err != nil {
			return err
		}
	}
	return nil
}
