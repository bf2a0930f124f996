package main

import (
	"context"
	"time"

	"acuse/store"
)

// turns is the store for those who may end a job that nobody is working on: whoever takes
// one out of its order makes the next one due, and its lane has to look. A lane's own
// settles, the pull API and the edge see to that themselves.
type turns struct {
	store.Store
	wake func()
}

// turning makes one that wakes every configured destination.
func (s *server) turning() turns {
	return turns{s.store, func() {
		if s.live.Load() != nil {
			s.queue.Wake(s.destinationNames())
		}
	}}
}

func (t turns) Cancel(ctx context.Context, delivery int64, destination string, by store.Actor, at time.Time) (int, error) {
	n, err := t.Store.Cancel(ctx, delivery, destination, by, at)
	if n > 0 {
		t.wake()
	}
	return n, err
}

func (t turns) Purge(ctx context.Context, r store.PurgeRule) (store.Purged, error) {
	p, err := t.Store.Purge(ctx, r)
	if p.Deliveries > 0 {
		t.wake()
	}
	return p, err
}

func (t turns) Erase(ctx context.Context, q store.Erasure) (store.Erased, error) {
	e, err := t.Store.Erase(ctx, q)
	if e.Cancelled > 0 && !q.DryRun {
		t.wake()
	}
	return e, err
}
