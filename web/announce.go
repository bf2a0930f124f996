package web

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"
)

// An announcement is forgotten after ten minutes; at most a thousand are kept.
const (
	announceFor  = 10 * time.Minute
	maxAnnounced = 1000
)

// announced holds the tests of ours that are on their way in.
type announced struct {
	count atomic.Int32 // lets the hot path pass by without the lock

	mu   sync.Mutex
	list map[eventKey]announcement
}

// eventKey names what is announced: an event by its id, or a whole request by the
// digest of its body, where the id is not known before or there are several.
type eventKey struct {
	source, event string
	request       [sha256.Size]byte
}

type announcement struct {
	destinations []string
	until        time.Time
}

func (a *announced) add(k eventKey, destinations []string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.list == nil {
		a.list = map[eventKey]announcement{}
	}
	for k, v := range a.list {
		if now.After(v.until) || len(a.list) >= maxAnnounced {
			delete(a.list, k)
		}
	}
	a.list[k] = announcement{destinations: destinations, until: now.Add(announceFor)}
	a.count.Store(int32(len(a.list)))
}

// take finds and removes the announcement of an event.
func (a *announced) take(k eventKey, now time.Time) (destinations []string, ok bool) {
	if !a.waiting() {
		return nil, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.list[k]
	if !ok {
		return nil, false
	}
	delete(a.list, k)
	a.count.Store(int32(len(a.list)))
	return v.destinations, !now.After(v.until)
}

// waiting is true while anything is announced.
func (a *announced) waiting() bool { return a.count.Load() > 0 }
