package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// Accept writes one request; see store.Inbox.
func (d *DB) Accept(ctx context.Context, a store.Arrival) ([]store.Outcome, error) {
	if err := keepable(&a); err != nil {
		return nil, fmt.Errorf("accept %s: %w", a.Source, err)
	}
	if d.space.Low() {
		return nil, fmt.Errorf("accept %s: %w: %d bytes are free on the volume, the floor is %d", a.Source, store.ErrUnavailable, d.space.Now(), d.space.MinFree)
	}
	if err := d.roomInside(); err != nil {
		return nil, fmt.Errorf("accept %s: %w", a.Source, err)
	}
	w := &write{arrival: &a}
	if err := d.submit(ctx, w, len(a.Body)+len(a.Header)+512); err != nil {
		return nil, fmt.Errorf("accept %s: %w", a.Source, err)
	}
	return w.outcomes, nil
}

// keepable refuses what must not be written. There are no constraints underneath: what
// passes here is written as it is.
func keepable(a *store.Arrival) error {
	if err := engine.Check(a); err != nil {
		return err
	}
	for i := range a.Events {
		e := &a.Events[i]
		if len(e.ID) > store.MaxEventID {
			return fmt.Errorf("%w: an event id of %d bytes", store.ErrRefused, len(e.ID))
		}
		if err := jobsKeepable(e.Jobs); err != nil {
			return err
		}
	}
	return nil
}

// jobsKeepable: each has a key, and no two go to one destination.
func jobsKeepable(jobs []store.NewJob) error {
	for i, j := range jobs {
		if j.Key == "" {
			return fmt.Errorf("%w: a job for %s without an idempotency key", store.ErrRefused, j.Destination)
		}
		if slices.ContainsFunc(jobs[:i], func(b store.NewJob) bool { return b.Destination == j.Destination }) {
			return fmt.Errorf("%w: two jobs for %s", store.ErrRefused, j.Destination)
		}
	}
	return nil
}

// accept writes one request, event by event.
func (w *writer) accept(one *write) error {
	a := one.arrival
	one.err, one.outcomes = nil, make([]store.Outcome, len(a.Events))
	source, err := w.nameID(a.Source)
	if err != nil {
		return err
	}
	provider, err := w.nameID(a.Provider)
	if err != nil {
		return err
	}
	payload := int64(0)
	for i := range a.Events {
		if one.outcomes[i], payload, err = w.event(a, &a.Events[i], source, provider, payload); err != nil {
			return err
		}
	}
	for i := range a.Events { // what they revive goes behind the request's own
		if out := &one.outcomes[i]; out.Kind == store.Duplicate {
			if out.Revived, err = w.duplicate(out.Delivery, &a.Events[i], a.Accepted()); err != nil {
				return err
			}
		}
	}
	return nil
}

// event writes one event: its key, its delivery, its jobs, and with the first new one of
// a request the request itself. payload is the number under which that is kept, 0 before.
func (w *writer) event(a *store.Arrival, e *store.Event, source, provider, payload int64) (out store.Outcome, _ int64, err error) {
	at := a.Accepted()
	earlier := int64(0)
	if e.Quarantine == "" {
		holder, claimed, err := w.claimed(source, e, at)
		if err != nil {
			return out, payload, err
		}
		if claimed {
			return store.Outcome{Kind: store.Duplicate, Delivery: holder}, payload, nil
		}
		earlier = holder // its window has passed
	}
	id, err := w.next(tDeliveries)
	if err != nil {
		return out, payload, err
	}
	if payload == 0 {
		payload = id
		if err := w.put(tPayloads, num(id), encodePayload(&store.Payload{Method: a.Method, Target: a.Target, Header: a.Header, Body: a.Body})); err != nil {
			return out, payload, err
		}
	}
	d := delivery{
		id: id, source: source, provider: provider, eventID: e.ID, kind: e.Type, resource: e.Resource, version: e.Version, unit: e.Unit,
		receivedAt: engine.Milli(a.ReceivedAt), size: int64(e.Size), digest: e.Digest, slot: int64(a.Slot), part: int64(e.Part), payload: payload, quarantine: e.Quarantine,
		made: e.Made, test: e.Test, ackMicros: a.AckMicros, remote: a.Remote, earlier: earlier,
	}
	out = store.Outcome{Kind: store.Accepted, Delivery: id}
	if e.Quarantine != "" {
		out.Kind, d.hold, d.eventID = store.Quarantined, holdQuarantined, ""
	} else if err := w.identified(&d, e, at); err != nil {
		return out, payload, err
	}
	if a.At.IsZero() { // one that is let in late is not the newest that came in
		w.pending.newest = d.receivedAt
	}
	w.remember(&d, a, e)
	return out, payload, w.changeDelivery(nil, &d)
}

// identified claims the delivery's key and adds its jobs.
func (w *writer) identified(d *delivery, e *store.Event, at time.Time) error {
	if err := w.claim(d.source, e.ID, d.id, engine.Milli(at.Add(e.Window))); err != nil {
		return err
	}
	for _, j := range e.Jobs {
		if err := w.addJob(d, j, e, at, false, false); err != nil {
			return err
		}
	}
	if len(e.Jobs) == 0 {
		d.hold = holdJobless
	}
	return nil
}

func dedupKey(source int64, eventID string) []byte { return append(small(source), eventID...) }

// holder is the delivery that has a key, 0 for none, and until when.
func (x *tx) holder(source int64, eventID string) (delivery, expires int64, err error) {
	v := x.get(tDedup, dedupKey(source, eventID))
	if v == nil {
		return 0, 0, nil
	}
	if len(v) < 16 {
		return 0, 0, fault{where: "dedup", err: errRecord}
	}
	return int64(binary.BigEndian.Uint64(v)), int64(binary.BigEndian.Uint64(v[8:])), nil
}

// claimed tells whether an event is a duplicate at a moment: whether the delivery that has
// its key, 0 for none, still has a right to it.
func (x *tx) claimed(source int64, e *store.Event, at time.Time) (delivery int64, claimed bool, err error) {
	holder, expires, err := x.holder(source, e.ID)
	if err != nil || holder == 0 {
		return 0, false, err
	}
	return holder, expires > engine.Milli(at) || e.WithRow && x.get(tDeliveries, num(holder)) != nil, nil
}

// claim gives a key to a delivery.
func (x *tx) claim(source int64, eventID string, delivery, expires int64) error {
	if err := x.dropKey(source, eventID); err != nil {
		return err
	}
	v := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(delivery)), uint64(expires))
	return x.put(tDedup, dedupKey(source, eventID), v)
}

// dropKey removes a key, if it is there.
func (x *tx) dropKey(source int64, eventID string) error {
	holder, expires, err := x.holder(source, eventID)
	if err != nil || holder == 0 {
		return err
	}
	if err := x.del(tLoose, key(num(expires), dedupKey(source, eventID))); err != nil {
		return err
	}
	return x.del(tDedup, dedupKey(source, eventID))
}

// duplicate counts a repeat on the delivery and, if its event says so, revives the
// delivery's dead letters that died of exhausted attempts, once each.
func (w *writer) duplicate(id int64, e *store.Event, at time.Time) (revived bool, err error) {
	d, ok, err := w.delivery(id)
	if err != nil || !ok {
		return false, err // without a row only the key is left: the repeat is not counted
	}
	before := d
	d.duplicates++
	d.lastDuplicateAt = max(d.lastDuplicateAt, engine.Milli(at))
	if d.digest != e.Digest {
		d.bodyDiffers++
	}
	if err := w.changeDelivery(&before, &d); err != nil || !e.Revive || d.payload == 0 {
		return false, err
	}
	for _, n := range d.jobs {
		j, err := w.jobOf(id, n)
		if err != nil {
			return false, err
		}
		if j.state != store.Dead || j.reason != store.Exhausted || j.revived {
			continue
		}
		old := j
		j.revived = true
		if err := w.requeue(&old, &j, engine.Milli(at)); err != nil {
			return false, err
		}
		revived = true
	}
	return revived, nil
}

// addJob adds one new job to a delivery; the caller writes the delivery. Without an event
// it supersedes nothing.
func (w *writer) addJob(d *delivery, n store.NewJob, e *store.Event, at time.Time, resend, passthrough bool) error {
	destination, err := w.nameID(n.Destination)
	if err != nil {
		return err
	}
	id, err := w.next(tJobs)
	if err != nil {
		return err
	}
	j := job{
		id: id, delivery: d.id, destination: destination, state: n.State, due: engine.Milli(at), since: engine.Milli(at),
		key: n.Key, note: n.Note, resend: resend, passthrough: passthrough, order: n.Order, strict: n.Strict && n.Order != "",
	}
	switch {
	case j.state != store.Queued:
		j.settled = engine.Milli(at)
		if j.state == store.Dead {
			j.reason, j.lastClass = store.RefusedByApp, engine.ClassRule
		}
	case j.order != "":
		j.due, j.turn, j.place = engine.Never, engine.Waits, engine.Place(d.id)
	}
	if j.state == store.Queued && n.Latest && e != nil {
		j.latest = engine.Latest(w.name(d.source), e)
	}
	d.jobs = append(d.jobs, id)
	if err := w.change(nil, &j); err != nil {
		return err
	}
	if j.turn != engine.NoTurn {
		if err := w.advance(destination, j.order, engine.Milli(at)); err != nil {
			return err
		}
	}
	if j.latest == 0 {
		return nil
	}
	return w.supersede(&j, d.source, e, engine.Milli(at))
}

// remember puts a new delivery into the cache once it is committed, for those of its
// destinations that are being worked on. The request's bytes stay its caller's: copied.
func (w *writer) remember(d *delivery, a *store.Arrival, e *store.Event) {
	c := engine.Cached{Bytes: 512}
	for _, j := range e.Jobs {
		if j.State == store.Queued && w.leasing[w.names[j.Destination]] {
			c.Jobs++
		}
	}
	if c.Jobs == 0 || e.Quarantine != "" || !engine.Cacheable(len(a.Body)+len(a.Header)) {
		return
	}
	c.Head = w.head(d)
	if n := len(w.pending.accepts); n > 0 && d.payload != d.id && w.pending.accepts[n-1].Head.ID >= d.payload {
		c.Payload = w.pending.accepts[n-1].Payload // the item before, of the same request
	} else {
		c.Payload = &store.Payload{Method: a.Method, Target: a.Target, Header: slices.Clone(a.Header), Body: slices.Clone(a.Body)}
		c.Bytes += len(a.Body) + len(a.Header)
	}
	w.pending.accepts = append(w.pending.accepts, c)
}
