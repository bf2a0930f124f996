package keep

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"acuse/store"
)

const (
	// leap is how far wall and monotonic clock may part before it counts as a step.
	leap = 30 * time.Second
	// watch is how often they are compared.
	watch = time.Second
	// mistrust is how long after a forward step no dedup key is removed.
	mistrust = time.Hour
)

// ClockOptions of NewClock. Shifter is needed.
type ClockOptions struct {
	Shifter store.Clock
	Stepped func(by time.Duration) // told after each shift; may be nil
	Wall    func() time.Time       // default time.Now
	Mono    func() time.Duration   // since some instant, never set back; default: of the process
	Log     *slog.Logger
}

// Clock tells the time by which waits are written and judged. It follows the wall clock,
// but when that is set by more than half a minute it goes on as before until what waits
// in the store has been shifted by as much: no wait is cut short or drawn out.
type Clock struct {
	opt ClockOptions

	mu      sync.Mutex
	wall    time.Time     // what the clock told
	mono    time.Duration // at this instant
	trusted time.Duration // monotonic: keys may go from then on
}

// NewClock starts from the wall clock.
func NewClock(o ClockOptions) *Clock {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Mono == nil {
		start := time.Now()
		o.Mono = func() time.Duration { return time.Since(start) }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Clock{opt: o, wall: o.Wall().Round(0), mono: o.Mono()}
}

// Now is the time in UTC.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now(c.opt.Mono())
}

func (c *Clock) now(mono time.Duration) time.Time { return c.wall.Add(mono - c.mono).UTC() }

// KeysMayGo is false for an hour after the wall clock leapt forward: a key that seems to
// have expired may be a minute old.
func (c *Clock) KeysMayGo() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opt.Mono() >= c.trusted
}

// Run compares the clocks until ctx ends.
func (c *Clock) Run(ctx context.Context) {
	t := time.NewTicker(watch)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			c.Look(ctx)
		}
	}
}

// Look compares the clocks once: it follows a small difference, and shifts what waits by
// a large one. While the store cannot be written the time goes on as before.
func (c *Clock) Look(ctx context.Context) {
	c.mu.Lock()
	mono := c.opt.Mono()
	wall := c.opt.Wall().Round(0).UTC()
	by := wall.Sub(c.now(mono))
	if by.Abs() <= leap {
		c.wall, c.mono = wall, mono
		c.mu.Unlock()
		return
	}
	before := c.now(mono)
	if by > 0 {
		c.trusted = mono + mistrust // before anything else: a purge may be under way
	}
	c.mu.Unlock()
	if err := c.opt.Shifter.Shift(ctx, before, by); err != nil {
		if ctx.Err() == nil {
			c.opt.Log.Error("the clock was set; what waits could not be shifted yet", "by", by, "err", err)
		}
		return
	}
	c.mu.Lock()
	c.wall, c.mono = c.now(mono).Add(by), mono
	c.mu.Unlock()
	c.opt.Log.Warn("the clock was set: what waits was shifted by as much", "by", by.Round(time.Second))
	if c.opt.Stepped != nil {
		c.opt.Stepped(by)
	}
}
