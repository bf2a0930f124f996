package store

import (
	"context"
	"time"
)

// Clock is what follows the wall clock when it is set.
type Clock interface {
	// Shift moves what waits by d, in one transaction: due times and ages of queued jobs,
	// deadlines of leases. Called when the wall clock leapt by d against the monotonic one,
	// so that waits stay as long as they were.
	Shift(ctx context.Context, d time.Duration) error
}
