package sqlite

import (
	"acuse/store"
)

// tally counts what waits, so that no scrape has to. It is read from the file at start
// and follows every commit.
type tally struct {
	lanes       map[string]*lane
	quarantined int64
	deliveries  int64 // highest number given out
	newest      int64 // received_at of the newest delivery
}

type lane struct{ queued, leased, dead int64 }

// move is one job's change of state; 0 is "did not exist". An empty destination moves
// quarantined deliveries by n.
type move struct {
	destination string
	from, to    store.JobState
	n           int64
}

func (t *tally) load(w *writer) error {
	t.lanes = map[string]*lane{}
	for state, text := range map[store.JobState]string{
		store.Queued: "SELECT destination, count(*) FROM jobs INDEXED BY jobs_due WHERE state = 1 GROUP BY destination",
		store.Leased: "SELECT destination, count(*) FROM jobs INDEXED BY jobs_lease WHERE state = 2 GROUP BY destination",
		store.Dead:   "SELECT destination, count(*) FROM jobs INDEXED BY jobs_dead WHERE state = 4 GROUP BY destination",
	} {
		if err := w.query(text, func(r []val) error {
			t.move(move{w.byID[r[0].(int64)], 0, state, r[1].(int64)})
			return nil
		}); err != nil {
			return err
		}
	}
	var err error
	if t.quarantined, err = w.number("SELECT count(*) FROM deliveries INDEXED BY deliveries_hold WHERE hold <> 0 AND hold = 1"); err != nil {
		return err
	}
	t.deliveries = w.numbers.delivery - 1
	t.newest, err = w.number("SELECT received_at FROM deliveries ORDER BY id DESC LIMIT 1")
	return err
}

func (t *tally) move(m move) {
	if m.destination == "" {
		t.quarantined += m.n
		return
	}
	l := t.lanes[m.destination]
	if l == nil {
		l = &lane{}
		t.lanes[m.destination] = l
	}
	l.add(m.from, -m.n)
	l.add(m.to, m.n)
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

// moved remembers a job's change of state for the tally.
func (w *writer) moved(destination int64, from, to store.JobState) {
	w.pending.moves = append(w.pending.moves, move{w.byID[destination], from, to, 1})
}
