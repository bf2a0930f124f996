package store

import (
	"context"
	"slices"
	"time"
)

// Outages frees what an outage of a destination held up.
type Outages interface {
	// EndOutage makes every queued job of the destination due at now that waits for a later
	// time because its last attempt met an outage (see Outage), and tells how many. What
	// waits for another reason keeps its time: an answer that said no, its turn in an order.
	// A job that a concurrent writer moved is left alone.
	EndOutage(ctx context.Context, destination string, now time.Time) (int, error)
}

// Outage says whether an attempt that ended so tells that its destination is down, rather
// than that this one job is not wanted: a connection that came to nothing, a timeout, and the
// statuses 429, 502, 503 and 504.
func Outage(status int, class string) bool {
	return slices.Contains(outageClasses, class) || slices.Contains(outageStatuses, status)
}

var (
	outageStatuses = []int{429, 502, 503, 504}
	outageClasses  = []string{
		"timeout", "hard_limit", "refused", "reset", "unreachable", "empty_reply", "connection", "tls", "not_http",
		"dns_not_found", "dns_timeout", "dns_failed",
	}
)
