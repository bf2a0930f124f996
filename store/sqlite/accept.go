package sqlite

import (
	"context"
	"fmt"

	"acuse/store"
	"acuse/store/engine"
)

// Accept writes one request; see store.Inbox.
func (d *DB) Accept(ctx context.Context, a store.Arrival) ([]store.Outcome, error) {
	if err := engine.Check(&a); err != nil {
		return nil, fmt.Errorf("accept %s: %w", a.Source, err)
	}
	if d.space.Low() {
		return nil, fmt.Errorf("accept %s: %w: %d bytes are free on the volume, the floor is %d", a.Source, store.ErrUnavailable, d.space.Now(), d.space.MinFree)
	}
	w := &write{arrival: &a}
	if err := d.submit(ctx, w, len(a.Body)+len(a.Header)+512); err != nil {
		return nil, fmt.Errorf("accept %s: %w", a.Source, err)
	}
	return w.outcomes, nil
}

// item is one event of a batch on its way into the tables.
type item struct {
	w       *write
	event   *store.Event
	index   int // among the arrival's events
	source  int64
	id      int64 // its delivery, or the first one of a duplicate
	dup     bool
	earlier int64 // delivery that had the same event id before
	payload int64
}

// accept writes the arrivals of a batch, table by table.
func (w *writer) accept(list []*write) error {
	if len(list) == 0 {
		return nil
	}
	items, err := w.items(list)
	if err != nil {
		return err
	}
	if err := w.claim(items); err != nil {
		return err
	}
	if err := w.insertPayloads(items); err != nil {
		return err
	}
	if err := w.insertDeliveries(items); err != nil {
		return err
	}
	if err := w.insertJobs(items); err != nil {
		return err
	}
	for i := range items {
		if err := w.accepted(&items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) items(list []*write) ([]item, error) {
	items := make([]item, 0, len(list))
	for _, one := range list {
		a := one.arrival
		one.err, one.outcomes = nil, make([]store.Outcome, len(a.Events))
		source, err := w.name(a.Source)
		if err != nil {
			return nil, err
		}
		for i := range a.Events {
			items = append(items, item{w: one, event: &a.Events[i], index: i, source: source})
		}
	}
	return items, nil
}

// accepted tells the request what became of one of its events.
func (w *writer) accepted(it *item) error {
	out := &it.w.outcomes[it.index]
	*out = store.Outcome{Kind: store.Accepted, Delivery: it.id}
	switch {
	case it.dup:
		out.Kind = store.Duplicate
		var err error
		out.Revived, err = w.duplicate(it.id, it.event, it.w.arrival.Accepted())
		return err
	case it.event.Quarantine != "":
		out.Kind = store.Quarantined
		w.quarantined(1)
	}
	if it.w.arrival.At.IsZero() { // one that is let in late is not the newest that came in
		w.pending.newest = ms(it.w.arrival.ReceivedAt)
	}
	w.remember(it)
	return nil
}
