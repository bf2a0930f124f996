package web

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of the refused requests of one address, and how long it counts that an
// address once sent a good one or a bad one.
const (
	refusalsPerSecond = 5
	refusalsBurst     = 200
	provenFor         = 24 * time.Hour
	failedFor         = time.Minute
	maxCallers        = 4096 // addresses remembered, twice that at most
)

// shed turns floods of forged and unsigned requests away before their bodies are
// read, and lets through what may be signed. Only refusals count; good requests cost
// nothing. An address that sent a good request lately is never turned away. A
// stranger is turned away when it used up its own refusals, or when the source is
// flooded and it failed already: so everybody gets one try, and one good try is
// enough. Memory is bounded: the addresses seen longest ago are forgotten.
type shed struct {
	mu         sync.Mutex
	young, old map[netip.Addr]*caller
}

// caller is what is remembered of an address.
type caller struct {
	refusals bucket
	proven   time.Time // last good request; zero: none
	failed   time.Time // last refused one; zero: none
}

func newShed() *shed { return &shed{young: map[netip.Addr]*caller{}} }

// turnsAway tells whether a request of the address is refused unread, and for how
// long. Addresses of the own machine and network are never turned away: behind a proxy
// that is not listed as trusted everybody comes from there.
func (s *shed) turnsAway(addr netip.Addr, src *source, now time.Time) (wait time.Duration, away bool) {
	if !counted(addr) {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(network(addr), false)
	if c == nil || recent(now, c.proven, provenFor) {
		return 0, false
	}
	if wait, away = c.refusals.empty(now); away {
		return wait, true
	}
	if recent(now, c.failed, failedFor) {
		src.mu.Lock()
		defer src.mu.Unlock()
		return src.refusals.empty(now)
	}
	return 0, false
}

// refused counts a request that did not pass its check.
func (s *shed) refused(addr netip.Addr, src *source, now time.Time) {
	src.mu.Lock()
	src.refusals.take(now)
	src.mu.Unlock()
	if !counted(addr) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(network(addr), true)
	c.failed = now
	c.refusals.take(now)
}

// passed remembers that the address sent a good request.
func (s *shed) passed(addr netip.Addr, now time.Time) {
	if !counted(addr) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.find(network(addr), true).proven = now
}

// find looks an address up in both generations; add adds it when it is unknown.
func (s *shed) find(addr netip.Addr, add bool) *caller {
	if c := s.young[addr]; c != nil {
		return c
	}
	c := s.old[addr]
	if c == nil && !add {
		return nil
	}
	if c == nil {
		c = &caller{refusals: bucket{perSecond: refusalsPerSecond, burst: refusalsBurst}}
	}
	if len(s.young) >= maxCallers {
		s.old, s.young = s.young, map[netip.Addr]*caller{}
	}
	s.young[addr] = c
	return c
}

func counted(a netip.Addr) bool {
	return a.IsValid() && !a.IsLoopback() && !a.IsPrivate() && !a.IsLinkLocalUnicast()
}

// network is what one sender can be told apart by: an IPv4 address, the first 64 bits
// of an IPv6 one.
func network(a netip.Addr) netip.Addr {
	if a.Is4() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}

func recent(now, then time.Time, d time.Duration) bool {
	return !then.IsZero() && now.Sub(then) < d
}
