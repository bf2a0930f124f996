package alert

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestAFillingVolumeIsToldOnceAStep: before it is full, by steps, the highest alone when
// several are reached at once, and its end once.
func TestAFillingVolumeIsToldOnceAStep(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		const total = 1000 << 30
		var used atomic.Int64 // percent
		a := w.alerter(t, Options{Disk: func() (free, _ int64) { return total / 100 * (100 - used.Load()), total }})
		begin(t, a)
		reach := func(percent int64, want ...string) {
			t.Helper()
			used.Store(percent)
			after(2 * time.Minute)
			got := w.got()
			if len(got) != len(want) {
				t.Fatalf("at %d %%: %q, want %q", percent, got, want)
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Fatalf("at %d %%: %q, want %q", percent, got, want)
				}
			}
		}
		reach(79)
		reach(80, "the volume is 80 % full")
		reach(85)
		reach(96, "the volume is 95 % full")
		reach(97)
		after(24 * time.Hour)
		reach(97, "95 % full") // one reminder
		reach(50, "the volume is under 80 % again")
		after(time.Hour)
		reach(91, "the volume is 90 % full")
	})
}

func TestTheLastMebibytesCountWhateverTheVolume(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free, total int64
		want        int
	}{{0, 0, 0}, {50 << 20, 1 << 40, 3}, {200 << 20, 1 << 30, 1}, {4 << 20, 8 << 20, 0}, {1 << 20, 8 << 20, 1}, {0, 8 << 20, 3}} {
		if got := filled(c.free, c.total); len(got) != c.want {
			t.Errorf("%d of %d free: %v", c.free, c.total, got)
		}
	}
}
