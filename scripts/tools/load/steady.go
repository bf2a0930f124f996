package load

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// steadyClients is how many connections a Steady sends on.
const steadyClients = 16

// Steady sends signed Stripe events to /in/load at an even rate and keeps what each took.
type Steady struct {
	Addr   string
	Rate   int    // events a second
	Prefix string // of every event id

	mu      sync.Mutex
	took    []time.Duration
	acked   map[string]bool
	refused int64
	end     chan struct{}
	wg      sync.WaitGroup
}

// Start begins to send.
func (s *Steady) Start() {
	s.end, s.acked = make(chan struct{}), map[string]bool{}
	for i := range steadyClients {
		s.wg.Go(func() { s.send(int64(i)) })
	}
}

// send posts every steadyClients-th event on one connection.
func (s *Steady) send(n int64) {
	c := &Client{Addr: s.Addr}
	defer c.Close()
	t := time.NewTicker(time.Second * steadyClients / time.Duration(s.Rate))
	defer t.Stop()
	for ; ; n += steadyClients {
		select {
		case <-s.end:
			return
		case <-t.C:
		}
		now, id := time.Now(), EventID(s.Prefix, n)
		status, _, err := c.Post("/in/load", Body(id, now), now)
		s.mu.Lock()
		s.took = append(s.took, time.Since(now))
		if err != nil || status != http.StatusOK {
			s.refused++
		} else {
			s.acked[id] = true
		}
		s.mu.Unlock()
	}
}

// Acknowledged is a copy of the ids that were answered 200 so far.
func (s *Steady) Acknowledged() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]bool, len(s.acked))
	for id := range s.acked {
		out[id] = true
	}
	return out
}

// Cut returns the latencies since the last cut, sorted.
func (s *Steady) Cut() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.took
	s.took = nil
	slices.Sort(out)
	return out
}

// Stop ends the sending and tells how many events were not answered 200.
func (s *Steady) Stop() int64 {
	close(s.end)
	s.wg.Wait()
	return s.refused
}

// At is a percentile of sorted durations; 0 of none.
func At(list []time.Duration, percent int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[(len(list)-1)*percent/100].Round(10 * time.Microsecond)
}
