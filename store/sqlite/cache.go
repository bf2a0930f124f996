package sqlite

import (
	"slices"

	"acuse/store"
)

// cacheBytes bounds what is kept of just committed requests; an entry with as many
// deliveries after it as cacheSpan is left over: its job was cancelled, say.
const (
	cacheBytes = 8 << 20
	cacheSpan  = 20_000
)

// cached is a just committed delivery with its request.
type cached struct {
	head    store.DeliveryHead
	payload *store.Payload // shared by the items of a batch; never changed
	bytes   int            // counted for this entry
	jobs    int            // leases still expected
}

// cache keeps what was just committed for the leases that follow at once, so that they
// need not read it. Leases come oldest first: when it is full the new one is not kept,
// unless the oldest was left over. Whoever misses an entry reads the file.
type cache struct {
	byID  map[int64]cached
	order []int64 // oldest first; some are gone from byID already
	bytes int
}

func (c *cache) put(e cached) {
	if c.byID == nil {
		c.byID = map[int64]cached{}
	}
	for c.bytes+e.bytes > cacheBytes {
		if len(c.order) == 0 || c.order[0] > e.head.ID-cacheSpan {
			return
		}
		c.drop(c.order[0])
		c.order = c.order[1:]
	}
	c.byID[e.head.ID] = e
	c.order = append(c.order, e.head.ID)
	c.bytes += e.bytes
	if len(c.order) > 2*len(c.byID)+256 {
		c.tidy()
	}
}

// tidy forgets the order of those that are gone.
func (c *cache) tidy() {
	c.order = slices.DeleteFunc(c.order, func(id int64) bool { _, ok := c.byID[id]; return !ok })
}

func (c *cache) drop(id int64) {
	c.bytes -= c.byID[id].bytes
	delete(c.byID, id)
}

// get returns a copy that is the caller's own.
func (c *cache) get(id int64) (store.DeliveryHead, store.Payload, bool) {
	e, ok := c.byID[id]
	if !ok {
		return store.DeliveryHead{}, store.Payload{}, false
	}
	if e.jobs--; e.jobs > 0 {
		c.byID[id] = e
	} else {
		c.drop(id)
	}
	p := *e.payload
	p.Header, p.Body, p.Part = slices.Clone(p.Header), slices.Clone(p.Body), e.head.Part
	return e.head, p, true
}

// remember puts a new delivery into the cache once it is committed, for those of its
// destinations that are being worked on. The request's bytes stay its caller's: copied.
func (w *writer) remember(it *item) {
	a, e := it.w.arrival, it.event
	c := cached{bytes: 512}
	for _, j := range e.Jobs {
		if j.State == store.Queued && w.leasing[w.names[j.Destination]] {
			c.jobs++
		}
	}
	if c.jobs == 0 || e.Quarantine != "" || len(a.Body)+len(a.Header) > cacheBytes/8 {
		return
	}
	c.head = store.DeliveryHead{
		ID: it.id, Source: a.Source, Provider: a.Provider, EventID: e.ID, Made: e.Made, Type: e.Type, Resource: e.Resource,
		Version: e.Version, Unit: e.Unit, Test: e.Test, ReceivedAt: instant(ms(a.ReceivedAt)), Size: e.Size, Slot: a.Slot, Part: e.Part,
	}
	if n := len(w.pending.accepts); n > 0 && it.payload != it.id && w.pending.accepts[n-1].head.ID >= it.payload {
		c.payload = w.pending.accepts[n-1].payload // the item before, of the same request
	} else {
		c.payload = &store.Payload{Method: a.Method, Target: a.Target, Header: slices.Clone(a.Header), Body: slices.Clone(a.Body)}
		c.bytes += len(a.Body) + len(a.Header)
	}
	w.pending.accepts = append(w.pending.accepts, c)
}
