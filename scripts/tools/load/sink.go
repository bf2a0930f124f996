package load

import (
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"sync"
)

// Sink is a destination that remembers what it was given.
type Sink struct {
	URL string

	mu  sync.Mutex
	got map[string]*Seen
	srv *http.Server
}

// Seen is what the sink was given for one event.
type Seen struct {
	Times int
	Keys  map[string]bool   // idempotency keys
	Sums  map[[32]byte]bool // SHA-256 of the bodies
}

// NewSink starts a sink on a free loopback port.
func NewSink() (*Sink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Sink{URL: "http://" + l.Addr().String() + "/hook", got: map[string]*Seen{}}
	s.srv = &http.Server{Handler: http.HandlerFunc(s.take)}
	go s.srv.Serve(l)
	return s, nil
}

func (s *Sink) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	id := r.Header.Get("Acuse-Event-Id")
	s.mu.Lock()
	seen := s.got[id]
	if seen == nil {
		seen = &Seen{Keys: map[string]bool{}, Sums: map[[32]byte]bool{}}
		s.got[id] = seen
	}
	seen.Times++
	seen.Keys[r.Header.Get("Idempotency-Key")] = true
	seen.Sums[sha256.Sum256(body)] = true
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// Count is how many different events came in.
func (s *Sink) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// Each calls f with a copy of the pointer of every event seen.
func (s *Sink) Each(f func(id string, seen *Seen)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, seen := range s.got {
		f(id, seen)
	}
}

// Close stops the sink.
func (s *Sink) Close() { s.srv.Close() }
