package web

import "time"

// bucket is a token bucket. The zero bucket with a rate starts full.
type bucket struct {
	perSecond float64
	burst     float64

	spent float64   // tokens missing from a full bucket, as of at
	at    time.Time // zero: full
}

// take takes a token, or says how long until there is one.
func (b *bucket) take(now time.Time) (wait time.Duration, ok bool) {
	b.refill(now)
	if b.spent+1 > b.burst {
		return time.Duration((b.spent + 1 - b.burst) / b.perSecond * float64(time.Second)), false
	}
	b.spent++
	return 0, true
}

// empty tells whether the next take would fail, and for how long.
func (b *bucket) empty(now time.Time) (wait time.Duration, empty bool) {
	b.refill(now)
	if b.spent+1 <= b.burst {
		return 0, false
	}
	return time.Duration((b.spent + 1 - b.burst) / b.perSecond * float64(time.Second)), true
}

func (b *bucket) refill(now time.Time) {
	if d := now.Sub(b.at).Seconds(); d > 0 {
		b.spent = max(0, b.spent-d*b.perSecond)
		b.at = now
	}
}
