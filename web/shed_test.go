package web

import (
	"net/netip"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// docs/http.md H15.
func TestShed(t *testing.T) {
	t.Parallel()
	var (
		now   = time.Unix(1767225600, 0)
		bad   = netip.MustParseAddr("198.51.100.9")
		good  = netip.MustParseAddr("203.0.113.7")
		fresh = netip.MustParseAddr("203.0.113.8")
	)
	begin := func() (*shed, *source) { return newShed(), newSource(signedSource("s"), metrics.NewSet()) }
	flood := func(s *shed, src *source, n int) {
		for i := range n {
			s.refused(netip.AddrFrom4([4]byte{12, byte(i >> 16), byte(i >> 8), byte(i)}), src, now)
		}
	}
	away := func(s *shed, a netip.Addr, src *source, at time.Time) bool {
		_, away := s.turnsAway(a, src, at)
		return away
	}

	t.Run("an address that used up its refusals is turned away for a while", func(t *testing.T) {
		t.Parallel()
		s, src := begin()
		for range refusalsBurst {
			if away(s, bad, src, now) {
				t.Fatal("turned away too early")
			}
			s.refused(bad, src, now)
		}
		wait, is := s.turnsAway(bad, src, now)
		if !is || wait <= 0 || wait > time.Second {
			t.Errorf("away %v, wait %v", is, wait)
		}
		if away(s, good, src, now) {
			t.Error("another address is turned away with it")
		}
		if away(s, bad, src, now.Add(time.Second)) {
			t.Error("it is turned away for ever")
		}
	})
	t.Run("an address that sent a good request lately never is", func(t *testing.T) {
		t.Parallel()
		s, src := begin()
		s.passed(good, now)
		for range 10 * refusalsBurst {
			s.refused(good, src, now)
		}
		if away(s, good, src, now) {
			t.Error("signed traffic of a shared address is starved")
		}
		later := now.Add(provenFor)
		for range 2 * refusalsBurst {
			s.refused(good, src, later)
		}
		if !away(s, good, src, later) {
			t.Error("its credit does not run out")
		}
	})
	t.Run("in a flood from everywhere a stranger gets one try", func(t *testing.T) {
		t.Parallel()
		s, src := begin()
		flood(s, src, 1000)
		if away(s, fresh, src, now) {
			t.Error("a stranger is turned away before its first try")
		}
		s.refused(fresh, src, now)
		if !away(s, fresh, src, now) {
			t.Error("it failed and gets another try during the flood")
		}
		s.passed(fresh, now)
		if away(s, fresh, src, now) {
			t.Error("a good try does not help")
		}
	})
	t.Run("loopback, the own network and sockets are everybody", func(t *testing.T) {
		t.Parallel()
		s, src := begin()
		for _, a := range []netip.Addr{{}, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("172.17.0.1"), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fe80::1")} {
			for range 10 * refusalsBurst {
				s.refused(a, src, now)
			}
			if away(s, a, src, now) {
				t.Errorf("%v is turned away", a)
			}
		}
	})
	t.Run("an IPv6 sender is its network", func(t *testing.T) {
		t.Parallel()
		s, src := begin()
		for i := range refusalsBurst {
			s.refused(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)}), src, now)
		}
		if !away(s, netip.MustParseAddr("2001:db8::ffff"), src, now) || away(s, netip.MustParseAddr("2001:db8:1::1"), src, now) {
			t.Error("the first 64 bits do not decide")
		}
	})
	t.Run("memory is bounded and the recent ones stay", func(t *testing.T) {
		t.Parallel()
		s, src := begin()
		for i := range 5 * maxCallers {
			s.refused(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), src, now)
			s.passed(good, now)
		}
		if n := len(s.young) + len(s.old); n > 2*maxCallers+1 {
			t.Errorf("%d addresses are remembered", n)
		}
		if c := s.find(good, false); c == nil || c.proven.IsZero() {
			t.Error("the address in use was forgotten")
		}
	})
}

func TestBucketRefills(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767225600, 0)
	b := bucket{perSecond: 2, burst: 3}
	for i := range 3 {
		if _, ok := b.take(now); !ok {
			t.Fatalf("token %d", i)
		}
	}
	if wait, ok := b.take(now); ok || wait != 500*time.Millisecond {
		t.Errorf("empty: %v %v", wait, ok)
	}
	if _, ok := b.take(now.Add(500 * time.Millisecond)); !ok {
		t.Error("half a second is one token")
	}
	if _, ok := b.take(now.Add(-time.Hour)); ok {
		t.Error("a step back gave a token")
	}
	if _, ok := b.take(now.Add(time.Hour)); !ok {
		t.Error("not refilled")
	}
}
