package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"acuse/provider"
	"acuse/store"
)

// Quarantine is what a Releaser needs of the store.
type Quarantine interface {
	QuarantinedAfter(ctx context.Context, source string, after int64, limit int) ([]store.Delivery, error)
	Release(ctx context.Context, delivery int64, e store.Event, by store.Actor, at time.Time) (store.Outcome, error)
	Delivery(ctx context.Context, id int64) (store.Delivery, error)
	Payload(ctx context.Context, delivery int64) (store.Payload, error)
	Deliveries(ctx context.Context, f store.DeliveryFilter) (list []store.Delivery, next int64, err error)
}

// Releaser lets deliveries out of quarantine, once the config can identify them.
type Releaser struct {
	edge  *Edge
	store Quarantine
}

// NewReleaser makes one that identifies with the edge's present sources.
func NewReleaser(e *Edge, s Quarantine) *Releaser { return &Releaser{edge: e, store: s} }

// Release identifies quarantined deliveries again, with the config of now, and queues
// their jobs. ids choose; none means every one of the source; an empty source means
// every source. What still cannot be identified stays where it is and is not counted.
// A dry run counts what could be released and writes nothing.
//
// A request that is a batch by now is released as the one delivery it is, under the
// digest of its item ids: a delivery's number is never split up.
func (r *Releaser) Release(ctx context.Context, source string, ids []int64, dryRun bool, by store.Actor) (released, duplicates int, err error) {
	wake := map[string]bool{}
	defer func() {
		for lane := range wake {
			r.edge.wake([]string{lane})
		}
	}()
	var foreseen map[dedupKey]bool // what a dry run would have claimed by now
	if dryRun {
		foreseen = map[dedupKey]bool{}
	}
	each := func(d store.Delivery) error {
		kind, lanes, err := r.one(ctx, d, foreseen, by)
		switch {
		case err != nil:
			return fmt.Errorf("release %d: %w", d.ID, err)
		case kind == store.Duplicate:
			duplicates++
		case kind == store.Accepted:
			released++
			for _, l := range lanes {
				wake[l] = !dryRun
			}
		}
		return nil
	}
	if len(ids) > 0 {
		return released, duplicates, r.chosen(ctx, source, ids, each)
	}
	for after := int64(0); ; {
		list, err := r.store.QuarantinedAfter(ctx, source, after, 100)
		if err != nil || len(list) == 0 {
			return released, duplicates, err
		}
		for _, d := range list {
			after = d.ID
			if err := each(d); err != nil {
				return released, duplicates, err
			}
		}
	}
}

func (r *Releaser) chosen(ctx context.Context, source string, ids []int64, each func(store.Delivery) error) error {
	for _, id := range ids {
		d, err := r.store.Delivery(ctx, id)
		if err != nil {
			return fmt.Errorf("release %d: %w", id, err)
		}
		if d.Quarantine == "" || source != "" && d.Source != source {
			return fmt.Errorf("release %d: %w", id, store.ErrState)
		}
		if err := each(d); err != nil {
			return err
		}
	}
	return nil
}

// one releases a delivery, or foresees what its release would come to; kind 0 says
// that it stays.
func (r *Releaser) one(ctx context.Context, d store.Delivery, foreseen map[dedupKey]bool, by store.Actor) (kind store.Kind, lanes []string, err error) {
	src := (*r.edge.sources.Load())[d.Source]
	if src == nil {
		return 0, nil, nil
	}
	p, err := r.store.Payload(ctx, d.ID)
	if errors.Is(err, store.ErrPayloadGone) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	ev, ok, err := identify(src, p)
	if err != nil || !ok {
		return 0, nil, err
	}
	if foreseen != nil {
		kind, err := r.foresee(ctx, dedupKey{d.Source, ev.ID}, foreseen)
		return kind, nil, err
	}
	out, err := r.store.Release(ctx, d.ID, ev, by, r.edge.now().UTC())
	if err != nil {
		return 0, nil, err
	}
	r.edge.changed(d.ID)
	return out.Kind, src.lanes, nil
}

// dedupKey is what one delivery alone can claim.
type dedupKey struct{ source, id string }

// foresee tells whether the event's key is free. Keys whose delivery retention has
// removed are taken for free: they can only be seen by claiming them.
func (r *Releaser) foresee(ctx context.Context, key dedupKey, foreseen map[dedupKey]bool) (store.Kind, error) {
	if foreseen[key] {
		return store.Duplicate, nil
	}
	foreseen[key] = true
	list, _, err := r.store.Deliveries(ctx, store.DeliveryFilter{Source: key.source, Query: key.id})
	for i := range list {
		if list[i].EventID == key.id { // the query also finds types and resources
			return store.Duplicate, err
		}
	}
	return store.Accepted, err
}

// identify reads the identity of a kept request; ok is false while it has none.
func identify(src *source, p store.Payload) (ev store.Event, ok bool, err error) {
	h, err := store.DecodeHeader(p.Header)
	if err != nil {
		return store.Event{}, false, err
	}
	_, _, rest := route(pathOf(p.Target))
	res := src.Checker.Identify(&provider.Request{
		Method: p.Method, Target: p.Target, URL: src.url(rest, p.Target), Host: h.Get("Host"), Header: h, Body: p.Body,
	})
	if res.Quarantine != "" || len(res.Events) == 0 {
		return store.Event{}, false, nil
	}
	in := res.Events[0]
	if len(res.Events) > 1 {
		in = provider.Event{ID: joint(res.Events), Type: in.Type, Test: in.Test}
	}
	in.Part = -1
	ev = src.event(&in, p.Body)
	ev.Jobs = src.jobs(ev.ID, ev.Test)
	src.rule(&ev, &in, p.Method, h, p.Body)
	return ev, true, nil
}

// joint is one id for several events.
func joint(list []provider.Event) string {
	h := sha256.New()
	for _, e := range list {
		fmt.Fprintf(h, "%d:%s", len(e.ID), e.ID)
	}
	return "batch:" + hex.EncodeToString(h.Sum(nil))
}
