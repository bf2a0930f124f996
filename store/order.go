package store

import (
	"context"
	"time"
)

// Orders tells how the orders of jobs stand; see Jobs.Lease for what an order is.
type Orders interface {
	// Line tells where a job stands in its order. ErrNotFound when it has none, or is not in
	// it any more.
	Line(ctx context.Context, job int64) (Line, error)
	// Heads lists the jobs whose turn came before since and which still hold up others, at
	// most limit, longest first. It looks at a bounded number of them.
	Heads(ctx context.Context, since time.Time, limit int) ([]Head, error)
}

// MaxAhead is how far a place in an order is counted.
const MaxAhead = 1000

// Line is where a job stands in its order.
type Line struct {
	Ahead int  // jobs before it; at most MaxAhead are counted
	Head  Head // the job whose turn it is: itself when Ahead is 0
}

// Head is a job whose turn it is in its order.
type Head struct {
	Job, Delivery int64
	Destination   string
	Order         string
	State         JobState  // Queued, Leased, or Dead when it is strict
	Since         time.Time // when its turn came
	DueAt         time.Time // of a queued one
	Behind        int       // jobs after it; at most MaxAhead are counted
}
