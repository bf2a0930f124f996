package access

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// ErrThrottled is what errors.Is finds in a *Throttled.
var ErrThrottled = errors.New("access: too many wrong passwords")

// Throttled reports a try that came too soon after many wrong ones. The password
// was not looked at.
type Throttled struct {
	Wait time.Duration // until the next try is looked at
}

func (t *Throttled) Error() string { return fmt.Sprintf("%v; wait %v", ErrThrottled, t.Wait) }

// Is makes a *Throttled be ErrThrottled.
func (t *Throttled) Is(target error) bool { return target == ErrThrottled }

const (
	freeTries    = 10               // wrong passwords that cost no wait
	longestWait  = 15 * time.Minute // of an address
	longestNamed = 30 * time.Second // of a name: a stranger can slow its owner down, not lock them out
	forgetAfter  = time.Hour        // without a wrong password
	maxKept      = 4096             // addresses and names together
)

// throttle counts wrong passwords by address and by name. After ten, each further
// one doubles the wait, from one second on.
type throttle struct {
	mu   sync.Mutex
	kept map[string]tries
}

// tries of one key: wrong ones in a row and when the last one was. A key of a name
// at an address is kept when that pair logged in: the name's wait does not hold it.
type tries struct {
	wrong int
	last  time.Time
}

func newThrottle() *throttle { return &throttle{kept: map[string]tries{}} }

// wait is how long a try by name from an address has to wait; 0: not at all.
func (t *throttle) wait(name, from string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.left(byAddress(from), longestWait, now)
	if _, known := t.kept[byPair(name, from)]; !known {
		left = max(left, t.left(byName(name), longestNamed, now))
	}
	return left
}

func (t *throttle) left(key string, most time.Duration, now time.Time) time.Duration {
	k, ok := t.kept[key]
	if !ok || k.wrong < freeTries || now.Sub(k.last) > forgetAfter {
		return 0
	}
	wait := most
	if over := k.wrong - freeTries; over < 16 {
		wait = min(most, time.Second<<over)
	}
	return max(0, wait-now.Sub(k.last))
}

func (t *throttle) failed(name, from string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range []string{byAddress(from), byName(name)} {
		k := t.kept[key]
		if now.Sub(k.last) > forgetAfter {
			k.wrong = 0
		}
		t.keep(key, tries{wrong: k.wrong + 1, last: now})
	}
}

func (t *throttle) passed(name, from string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.kept, byAddress(from))
	delete(t.kept, byName(name))
	t.keep(byPair(name, from), tries{last: now})
}

// keep bounds the memory: when full, the key that was quiet longest goes.
func (t *throttle) keep(key string, k tries) {
	if _, ok := t.kept[key]; !ok && len(t.kept) >= maxKept {
		oldest, at := "", time.Time{}
		for key, k := range t.kept {
			if oldest == "" || k.last.Before(at) {
				oldest, at = key, k.last
			}
		}
		delete(t.kept, oldest)
	}
	t.kept[key] = k
}

func byName(name string) string { return "n " + short(strings.ToLower(name)) }

func byPair(name, from string) string { return byName(name) + " " + byAddress(from) }

// byAddress takes "ip" or "ip:port". A network of IPv6 is one sender: whoever has
// one address has 2^64.
func byAddress(from string) string {
	ip, err := netip.ParseAddr(from)
	if err != nil {
		ap, err := netip.ParseAddrPort(from)
		if err != nil {
			return "a " + short(from)
		}
		ip = ap.Addr()
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return "a " + p.String()
		}
	}
	return "a " + ip.String()
}

// short bounds what a stranger can make us keep.
func short(s string) string {
	if len(s) > 64 {
		return string(digest(s))
	}
	return s
}
