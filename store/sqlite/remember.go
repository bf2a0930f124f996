package sqlite

import (
	"slices"

	"acuse/store"
	"acuse/store/engine"
)

// remember puts a new delivery into the cache once it is committed, for those of its
// destinations that are being worked on. The request's bytes stay its caller's: copied.
func (w *writer) remember(it *item) {
	a, e := it.w.arrival, it.event
	c := engine.Cached{Bytes: 512}
	for _, j := range e.Jobs {
		if j.State == store.Queued && w.leasing[w.names[j.Destination]] {
			c.Jobs++
		}
	}
	if c.Jobs == 0 || e.Quarantine != "" || !engine.Cacheable(len(a.Body)+len(a.Header)) {
		return
	}
	c.Head = store.DeliveryHead{
		ID: it.id, Source: a.Source, Provider: a.Provider, EventID: e.ID, Made: e.Made, Type: e.Type, Resource: e.Resource,
		Version: e.Version, Unit: e.Unit, Test: e.Test, ReceivedAt: instant(ms(a.ReceivedAt)), Size: e.Size, Slot: a.Slot, Part: e.Part,
	}
	if n := len(w.pending.accepts); n > 0 && it.payload != it.id && w.pending.accepts[n-1].Head.ID >= it.payload {
		c.Payload = w.pending.accepts[n-1].Payload // the item before, of the same request
	} else {
		c.Payload = &store.Payload{Method: a.Method, Target: a.Target, Header: slices.Clone(a.Header), Body: slices.Clone(a.Body)}
		c.Bytes += len(a.Body) + len(a.Header)
	}
	w.pending.accepts = append(w.pending.accepts, c)
}
