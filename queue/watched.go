package queue

import (
	"context"

	"acuse/store"
)

// Watched is the Jobs that the pull API should use: the sweep learns of the leases it
// gives, and what its workers settle is counted like the outcome of a lane. Owners
// of its leases must not begin with the node's name and a slash: those are ended at
// the next start.
func (q *Queue) Watched() store.Jobs { return watched{q.opt.Jobs, q} }

type watched struct {
	store.Jobs
	q *Queue
}

func (w watched) Lease(ctx context.Context, query store.LeaseQuery) ([]store.Lease, error) {
	if paused, err := w.q.paused(ctx, query.Destination); paused || err != nil {
		return nil, err
	}
	list, err := w.Jobs.Lease(ctx, query)
	if len(list) > 0 {
		w.q.leased()
	}
	return list, err
}

func (w watched) Settle(ctx context.Context, s store.Settlement) error {
	if err := w.Jobs.Settle(ctx, s); err != nil {
		return err
	}
	if j, err := w.Jobs.JobByID(context.WithoutCancel(ctx), s.Job); err == nil {
		w.q.met.attempt(j.Destination, s.State)
	}
	return nil
}
