package web

import (
	"context"
	"fmt"
	"sync"
	"time"

	"acuse/store"
)

// shelf is a store of jobs in memory, of one destination each.
type shelf struct {
	mu      sync.Mutex
	jobs    map[int64]*store.Job
	kept    map[int64]store.Payload
	settled []store.Settlement
	renewed time.Time
	err     error
	store.Jobs
}

func newShelf() *shelf { return &shelf{jobs: map[int64]*store.Job{}, kept: map[int64]store.Payload{}} }

func (s *shelf) add(id int64, destination string, due time.Time, p store.Payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[id] = &store.Job{ID: id, Delivery: 10_000 + id, Destination: destination, Key: fmt.Sprintf("s:e%d:%s", id, destination), State: store.Queued, DueAt: due}
	s.kept[id] = p
}

func (s *shelf) Lease(_ context.Context, q store.LeaseQuery) (out []store.Lease, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	for id := int64(1); id <= int64(len(s.jobs)) && len(out) < q.Max; id++ {
		j := s.jobs[id]
		if j.Destination != q.Destination || j.State != store.Queued || j.DueAt.After(q.Now) {
			continue
		}
		j.State, j.LeaseOwner, j.LeaseUntil = store.Leased, q.Owner, q.Now.Add(q.TTL)
		j.LeaseToken, j.Attempts, j.Spent = j.LeaseToken+1, j.Attempts+1, j.Spent+1
		out = append(out, store.Lease{Job: id, Token: j.LeaseToken, Until: j.LeaseUntil, Destination: j.Destination, Key: j.Key, Attempt: j.Attempts, Spent: j.Spent,
			Delivery: store.DeliveryHead{ID: j.Delivery, Source: "s", EventID: fmt.Sprintf("e%d", id), Type: "t"}, Payload: s.kept[id]})
	}
	return out, nil
}

func (s *shelf) Renew(_ context.Context, job, token int64, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[job]; j.State != store.Leased || j.LeaseToken != token {
		return store.ErrLeaseLost
	}
	s.renewed = until
	return nil
}

func (s *shelf) Settle(_ context.Context, x store.Settlement) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[x.Job]
	if j.State != store.Leased || j.LeaseToken != x.Token {
		return store.ErrLeaseLost
	}
	j.State, j.DueAt = x.State, x.Due
	s.settled = append(s.settled, x)
	return nil
}

func (s *shelf) NextDue(_ context.Context, destination string) (due time.Time, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.Destination == destination && j.State == store.Queued && (!ok || j.DueAt.Before(due)) {
			due, ok = j.DueAt, true
		}
	}
	return due, ok, nil
}

func (s *shelf) JobByID(_ context.Context, job int64) (store.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[job]; j != nil {
		return *j, nil
	}
	return store.Job{}, fmt.Errorf("job: %w", store.ErrNotFound)
}
