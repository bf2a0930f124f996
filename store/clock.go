package store

import (
	"context"
	"time"
)

// Timeline is how far from now a waiting time belongs to the clock that now comes from. A
// machine without a battery starts in 1970: what an earlier run wrote lies outside.
const Timeline = 365 * 24 * time.Hour

// Clock is what follows the wall clock when it is set.
type Clock interface {
	// Shift moves what waits by d, in one transaction: due times of queued jobs and
	// deadlines of leases that lie within Timeline of now, the time before the step, and
	// with them the ages of these jobs. Called when the wall clock leapt by d against the
	// monotonic one, so that waits stay as long as they were.
	Shift(ctx context.Context, now time.Time, d time.Duration) error
}
