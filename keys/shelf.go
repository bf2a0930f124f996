package keys

import (
	"container/list"
	"time"
)

// shelf keeps the values that were used last, by URL.
type shelf[T any] struct {
	most  int
	order *list.List // newest first, of item[T]
	by    map[string]*list.Element
}

type item[T any] struct {
	url   string
	value T
}

func newShelf[T any](most int) shelf[T] {
	return shelf[T]{most: most, order: list.New(), by: map[string]*list.Element{}}
}

func (s *shelf[T]) get(url string) (T, bool) {
	e, ok := s.by[url]
	if !ok {
		var none T
		return none, false
	}
	s.order.MoveToFront(e)
	return e.Value.(item[T]).value, true
}

func (s *shelf[T]) put(url string, v T) {
	s.drop(url)
	s.by[url] = s.order.PushFront(item[T]{url, v})
	if last := s.order.Back(); s.order.Len() > s.most {
		s.drop(last.Value.(item[T]).url)
	}
}

func (s *shelf[T]) drop(url string) {
	if e, ok := s.by[url]; ok {
		s.order.Remove(e)
		delete(s.by, url)
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
