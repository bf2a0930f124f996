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

// Announcement says which request of ours is on its way in: the next one of the source
// with exactly this body.
type Announcement struct {
	Source       string
	Body         []byte
	Destinations []string // its events go there, and not to the source's own
	// Checker is the source's Rehearsal where only the provider could sign: the request
	// may pass it instead. nil: it passes the source's own.
	Checker Checker
}

// announced holds the tests of ours that are on their way in.
type announced struct {
	count atomic.Int32 // lets the hot path pass by without the lock

	mu   sync.Mutex
	list map[requestKey]*announcement
}

// requestKey names a request by the digest of its body: its id is not always known
// before, and one request may hold several.
type requestKey struct {
	source string
	body   [sha256.Size]byte
}

type announcement struct {
	destinations []string
	checker      Checker
	until        time.Time
}

func keyOf(source string, body []byte) requestKey { return requestKey{source, sha256.Sum256(body)} }

func (a *announced) add(n Announcement, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.list == nil {
		a.list = map[requestKey]*announcement{}
	}
	for k, v := range a.list {
		if now.After(v.until) || len(a.list) >= maxAnnounced {
			delete(a.list, k)
		}
	}
	a.list[keyOf(n.Source, n.Body)] = &announcement{n.Destinations, n.Checker, now.Add(announceFor)}
	a.count.Store(int32(len(a.list)))
}

// waiting tells whether a request of the source is announced.
func (a *announced) waiting(source string) bool {
	if a.count.Load() == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for k := range a.list {
		if k.source == source {
			return true
		}
	}
	return false
}

// find gives the announcement of a request; nil: it is not announced.
func (a *announced) find(source string, body []byte, now time.Time) *announcement {
	if a.count.Load() == 0 {
		return nil
	}
	k := keyOf(source, body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.list[k]; n != nil && !now.After(n.until) {
		return n
	}
	return nil
}

// take removes an announcement; false when somebody was faster.
func (a *announced) take(source string, body []byte, n *announcement) bool {
	k := keyOf(source, body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.list[k] != n {
		return false
	}
	delete(a.list, k)
	a.count.Store(int32(len(a.list)))
	return true
}

// rehearse lets an announced request in by the keys of its announcement, which is used
// up by that: a second copy of the request is judged like everybody's. done is false
// when the request is none of ours.
func (e *Edge) rehearse(v *visit) (done bool) {
	n := e.announced.find(v.source.Name, v.request.Body, v.now)
	if n == nil || n.checker == nil {
		return false
	}
	res, err := n.checker.Receive(&v.request, v.now)
	if err != nil || res.Handshake != nil || res.Unverified || !e.announced.take(v.source.Name, v.request.Body, n) {
		return false
	}
	v.result, v.test = res, n
	return true
}

// expected finds the announcement of a request that passed the source's own check.
func (e *Edge) expected(v *visit) *announcement {
	n := e.announced.find(v.source.Name, v.request.Body, v.now)
	if n == nil || !e.announced.take(v.source.Name, v.request.Body, n) {
		return nil
	}
	return n
}
