package engine

import (
	"time"

	"acuse/store"
)

// Tally counts what waits, so that no scrape has to. It is read from the file at start
// and follows every commit. Its owner guards it.
type Tally struct {
	lanes       map[string]*lane
	quarantined int64
	Deliveries  int64 // highest number given out
	Newest      int64 // received_at of the newest delivery, unix milliseconds
}

type lane struct{ queued, leased, dead int64 }

// Move is a change of state of N jobs; 0 is "did not exist". An empty destination moves
// quarantined deliveries by N.
type Move struct {
	Destination string
	From, To    store.JobState
	N           int64
}

// Move counts a change.
func (t *Tally) Move(m Move) {
	if m.Destination == "" {
		t.quarantined += m.N
		return
	}
	if t.lanes == nil {
		t.lanes = map[string]*lane{}
	}
	l := t.lanes[m.Destination]
	if l == nil {
		l = &lane{}
		t.lanes[m.Destination] = l
	}
	l.add(m.From, -m.N)
	l.add(m.To, m.N)
}

func (l *lane) add(s store.JobState, n int64) {
	switch s {
	case store.Queued:
		l.queued += n
	case store.Leased:
		l.leased += n
	case store.Dead:
		l.dead += n
	}
}

// Queued is how many jobs are queued, of one destination or all.
func (t *Tally) Queued(destination string) (n int64) {
	for name, l := range t.lanes {
		if destination == "" || name == destination {
			n += l.queued
		}
	}
	return n
}

// Totals are the counts without the due times.
func (t *Tally) Totals() store.Totals {
	out := store.Totals{
		Quarantined: t.quarantined, Newest: Instant(t.Newest), Deliveries: t.Deliveries,
		ByDestination: make(map[string]store.LaneTotals, len(t.lanes)),
	}
	for name, l := range t.lanes {
		out.ByDestination[name] = store.LaneTotals{Queued: l.queued, Leased: l.leased, Dead: l.dead}
		out.Queued, out.Leased, out.Dead = out.Queued+l.queued, out.Leased+l.leased, out.Dead+l.dead
	}
	return out
}

// AddDue asks due for the earliest due time of each lane that has a queued job.
func AddDue(t *store.Totals, due func(destination string) (time.Time, bool, error)) error {
	for name, l := range t.ByDestination {
		if l.Queued == 0 {
			continue
		}
		at, ok, err := due(name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		l.OldestDue = at
		t.ByDestination[name] = l
		if t.OldestDue.IsZero() || at.Before(t.OldestDue) {
			t.OldestDue = at
		}
	}
	return nil
}
