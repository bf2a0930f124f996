package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"acuse/provider"
)

// Sender is one simulated provider: it signs each event, repeats some as a
// provider that missed the answer, sends some several times at once, and now and
// then somebody forges one.
type Sender struct {
	Source  string
	URL     string // of the source at acuse's public listener
	Checker *provider.Checker
	// Make is the n-th event: its id and the unsigned request.
	Make func(n int64) (id string, r provider.Request, err error)

	mu   sync.Mutex
	sent Sent
}

// Sent is what a sender counted.
type Sent struct {
	Acked     map[string]bool // events answered 2xx at least once
	Accepted  int             // answers "accepted"
	Duplicate int             // answers "duplicate"
	Forged    int             // forged requests
	Passed    int             // forged requests that were not refused: must stay 0
	Unsent    int             // events without any 2xx at the end
}

// Run sends an event about every pace until ctx ends, then waits for the repeats
// that it owes.
func (s *Sender) Run(ctx context.Context, pace time.Duration) error {
	s.sent.Acked = map[string]bool{}
	var wg sync.WaitGroup
	defer wg.Wait()
	for n := int64(1); ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pace/2 + rand.N(pace)):
		}
		id, r, err := s.Make(n)
		if err != nil {
			return fmt.Errorf("%s: event %d: %w", s.Source, n, err)
		}
		wg.Go(func() { s.deliver(id, r) })
	}
}

// deliver sends one event the way providers do: some race, some come again.
func (s *Sender) deliver(id string, r provider.Request) {
	copies := 1
	if rand.IntN(8) == 0 {
		copies = 5
	}
	var wg sync.WaitGroup
	for range copies {
		wg.Go(func() { s.untilTaken(id, r) })
	}
	wg.Wait()
	if rand.IntN(4) == 0 {
		time.Sleep(rand.N(2 * time.Second))
		s.untilTaken(id, r)
	}
	if rand.IntN(10) == 0 {
		s.forge(r)
	}
}

// untilTaken sends until a 2xx comes, with a signature of its own each time.
func (s *Sender) untilTaken(id string, r provider.Request) {
	for try := range 20 {
		status, answer := s.post(r, true)
		s.mu.Lock()
		if status/100 == 2 {
			s.sent.Acked[id] = true
			switch answer {
			case "accepted":
				s.sent.Accepted++
			case "duplicate":
				s.sent.Duplicate++
			}
		}
		s.mu.Unlock()
		if status/100 == 2 {
			return
		}
		time.Sleep(time.Duration(100*(try+1)) * time.Millisecond)
	}
	s.mu.Lock()
	s.sent.Unsent++
	s.mu.Unlock()
}

// forge sends the event with a changed body or token under an old signature.
func (s *Sender) forge(r provider.Request) {
	status, _ := s.post(r, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent.Forged++
	if status/100 == 2 {
		s.sent.Passed++
	}
}

// post sends one signed request and returns the status and the answer's "status";
// a request that is not genuine carries a spoiled signature or token.
func (s *Sender) post(r provider.Request, genuine bool) (int, string) {
	r.Header = r.Header.Clone()
	if err := s.Checker.Sign(&r, 0, time.Now()); err != nil {
		return 0, err.Error()
	}
	if !genuine {
		spoil(r.Header, s.Checker.AuthHeaders())
	}
	req, err := http.NewRequest(r.Method, s.URL, bytes.NewReader(r.Body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header = r.Header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return 0, err.Error()
	}
	var answer struct {
		Status any `json:"status"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return res.StatusCode, ""
	}
	return res.StatusCode, fmt.Sprint(answer.Status)
}

// spoil changes the last letter or digit before the padding of each value.
func spoil(h http.Header, names []string) {
	for _, name := range names {
		for i, v := range h.Values(name) {
			b := []byte(v)
			for j := len(b) - 3; j >= 0; j-- {
				if b[j] != '=' {
					b[j] = map[bool]byte{true: 'b', false: 'a'}[b[j] == 'a']
					break
				}
			}
			h[http.CanonicalHeaderKey(name)][i] = string(b)
		}
	}
}

// Sent tells what was counted so far.
func (s *Sender) Sent() Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sent
	c.Acked = make(map[string]bool, len(s.sent.Acked))
	for id := range s.sent.Acked {
		c.Acked[id] = true
	}
	return c
}
