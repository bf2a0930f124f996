package access

import (
	"fmt"
	"testing"
	"time"
)

func fail(t *throttle, name, from string, n int, now time.Time) {
	for range n {
		t.failed(name, from, now)
	}
}

func TestThrottleDoublesUpToItsEnd(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[int]time.Duration{
		9: 0, 10: time.Second, 11: 2 * time.Second, 13: 8 * time.Second, 40: longestWait, 1000: longestWait,
	} {
		th := newThrottle()
		for i := range wrong {
			th.failed(fmt.Sprint("name", i), home, t0)
		}
		if got := th.wait("ana", home, t0); got != want {
			t.Errorf("%d wrong: wait %v, want %v", wrong, got, want)
		}
	}
}

func TestThrottleByNameAcrossAddresses(t *testing.T) {
	t.Parallel()
	th := newThrottle()
	for i := range 100 {
		th.failed("ana", fmt.Sprintf("198.51.100.%d", i), t0)
	}
	if got := th.wait("Ana", home, t0); got != longestNamed {
		t.Errorf("a stranger's address: wait %v, want %v", got, longestNamed)
	}
	if got := th.wait("eva", home, t0); got != 0 {
		t.Errorf("another name: wait %v", got)
	}
	if got := th.wait("ana", home, t0.Add(longestNamed)); got != 0 {
		t.Errorf("after the wait: %v", got)
	}
}

func TestAStrangerCannotLockOutAKnownAddress(t *testing.T) {
	t.Parallel()
	th := newThrottle()
	th.passed("ana", home, t0)
	fail(th, "ana", "198.51.100.9", 50, t0)
	if got := th.wait("ana", home, t0); got != 0 {
		t.Errorf("ana at home waits %v", got)
	}
	fail(th, "ana", home, freeTries, t0)
	if got := th.wait("ana", home, t0); got == 0 {
		t.Error("a known address tries without end")
	}
}

func TestThrottleTakesANetworkOfIPv6ForOneSender(t *testing.T) {
	t.Parallel()
	th := newThrottle()
	for i := range freeTries {
		th.failed(fmt.Sprint("name", i), fmt.Sprintf("[2001:db8:1:2::%x]:443", i), t0)
	}
	if th.wait("ana", "2001:db8:1:2:ffff::1", t0) == 0 {
		t.Error("the same /64 does not wait")
	}
	if th.wait("ana", "2001:db8:1:3::1", t0) != 0 {
		t.Error("another /64 waits")
	}
	if byAddress("::ffff:203.0.113.7") != byAddress("203.0.113.7:80") {
		t.Error("an IPv4 address in IPv6 form is another sender")
	}
}

func TestThrottleForgetsAndIsBounded(t *testing.T) {
	t.Parallel()
	th := newThrottle()
	fail(th, "ana", home, 30, t0)
	if got := th.wait("ana", home, t0.Add(forgetAfter+time.Second)); got != 0 {
		t.Errorf("an hour later: wait %v", got)
	}
	th.failed("ana", home, t0.Add(forgetAfter+time.Second))
	if k := th.kept[byName("ana")]; k.wrong != 1 {
		t.Errorf("counts on from %d", k.wrong)
	}
	for i := range 2 * maxKept {
		th.failed(fmt.Sprint("name", i), fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), t0.Add(2*time.Hour))
	}
	if len(th.kept) > maxKept {
		t.Errorf("%d keys kept", len(th.kept))
	}
	if _, ok := th.kept[byAddress(home)]; ok {
		t.Error("the quietest key stayed")
	}
	long := string(make([]byte, 1<<20))
	th.failed(long, long, t0)
	for k := range th.kept {
		if len(k) > 200 {
			t.Errorf("a key of %d bytes is kept", len(k))
		}
	}
}
