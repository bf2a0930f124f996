package keys

import (
	"container/list"
	"crypto/sha256"
	"strings"
	"time"

	"acuse/provider"
)

// docID tells documents apart. An address is not enough: what was taken for one source
// because its host vouches is not thereby good for another that asks for a chain, and what
// one source's credentials are refused, another's may get.
type docID struct {
	url   string
	kind  provider.KeyKind
	names string
	post  [sha256.Size]byte
}

func idOf(r provider.KeyRequest) docID {
	id := docID{url: r.URL, kind: r.Kind, names: strings.Join(r.Names, "\n")}
	if r.Post != nil {
		id.post = sha256.Sum256(r.Post)
	}
	return id
}

// shelf keeps the values that were used last.
type shelf[T any] struct {
	most  int
	order *list.List // newest first, of item[T]
	by    map[docID]*list.Element
}

type item[T any] struct {
	id    docID
	value T
}

func newShelf[T any](most int) shelf[T] {
	return shelf[T]{most: most, order: list.New(), by: map[docID]*list.Element{}}
}

func (s *shelf[T]) get(id docID) (T, bool) {
	e, ok := s.by[id]
	if !ok {
		var none T
		return none, false
	}
	s.order.MoveToFront(e)
	return e.Value.(item[T]).value, true
}

func (s *shelf[T]) put(id docID, v T) {
	s.drop(id)
	s.by[id] = s.order.PushFront(item[T]{id, v})
	if last := s.order.Back(); s.order.Len() > s.most {
		s.drop(last.Value.(item[T]).id)
	}
}

func (s *shelf[T]) drop(id docID) {
	if e, ok := s.by[id]; ok {
		s.order.Remove(e)
		delete(s.by, id)
	}
}

// bucket is a token bucket that starts full.
type bucket struct {
	perSecond, burst float64

	spent float64
	at    time.Time
}

func (b *bucket) take(now time.Time) bool {
	if d := now.Sub(b.at).Seconds(); d > 0 {
		b.spent = max(0, b.spent-d*b.perSecond)
		b.at = now
	}
	if b.spent+1 > b.burst {
		return false
	}
	b.spent++
	return true
}
