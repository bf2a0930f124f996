package engine

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

// Cached is a just committed delivery with its request.
type Cached struct {
	Head    store.DeliveryHead
	Payload *store.Payload // shared by the items of a batch; never changed
	Bytes   int            // counted for this entry
	Jobs    int            // leases still expected
}

// Cacheable tells whether a request of so many bytes is kept at all.
func Cacheable(bytes int) bool { return bytes <= cacheBytes/8 }

// Cache keeps what was just committed for the leases that follow at once, so that they
// need not read it. Leases come oldest first: when it is full the new one is not kept,
// unless the oldest was left over. Whoever misses an entry reads the file.
type Cache struct {
	byID  map[int64]Cached
	order []int64 // oldest first; some are gone from byID already
	bytes int
}

// Put keeps an entry, if there is room.
func (c *Cache) Put(e Cached) {
	if c.byID == nil {
		c.byID = map[int64]Cached{}
	}
	for c.bytes+e.Bytes > cacheBytes {
		if len(c.order) == 0 || c.order[0] > e.Head.ID-cacheSpan {
			return
		}
		c.drop(c.order[0])
		c.order = c.order[1:]
	}
	c.byID[e.Head.ID] = e
	c.order = append(c.order, e.Head.ID)
	c.bytes += e.Bytes
	if len(c.order) > 2*len(c.byID)+256 {
		c.tidy()
	}
}

// tidy forgets the order of those that are gone.
func (c *Cache) tidy() {
	c.order = slices.DeleteFunc(c.order, func(id int64) bool { _, ok := c.byID[id]; return !ok })
}

// Drop forgets an entry, if there is one.
func (c *Cache) Drop(id int64) {
	if _, ok := c.byID[id]; ok {
		c.drop(id)
	}
}

func (c *Cache) drop(id int64) {
	c.bytes -= c.byID[id].Bytes
	delete(c.byID, id)
}

// Get returns a copy that is the caller's own.
func (c *Cache) Get(id int64) (store.DeliveryHead, store.Payload, bool) {
	e, ok := c.byID[id]
	if !ok {
		return store.DeliveryHead{}, store.Payload{}, false
	}
	if e.Jobs--; e.Jobs > 0 {
		c.byID[id] = e
	} else {
		c.drop(id)
	}
	p := *e.Payload
	p.Header, p.Body, p.Part = slices.Clone(p.Header), slices.Clone(p.Body), e.Head.Part
	return e.Head, p, true
}
