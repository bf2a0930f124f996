package web

import (
	"sync/atomic"
	"time"
)

// clockSlack is how far the clock may lie behind the newest event stored before it
// counts as not set.
const clockSlack = 60 * time.Second

// clock judges the wall clock. A machine without a battery starts in the past and is
// set a minute later; until then the time in a signature cannot be judged.
type clock struct {
	build  time.Time // zero: not known
	newest atomic.Int64
}

func newClock(build, newest time.Time) *clock {
	c := &clock{build: build}
	if !newest.IsZero() {
		c.newest.Store(newest.UnixMilli())
	}
	return c
}

// saw remembers the time of a stored event.
func (c *clock) saw(t time.Time) {
	ms := t.UnixMilli()
	for old := c.newest.Load(); ms > old; old = c.newest.Load() {
		if c.newest.CompareAndSwap(old, ms) {
			return
		}
	}
}

// set tells whether now can be believed.
func (c *clock) set(now time.Time) bool {
	if now.Before(c.build) {
		return false
	}
	newest := c.newest.Load()
	return newest == 0 || now.UnixMilli() >= newest-clockSlack.Milliseconds()
}
