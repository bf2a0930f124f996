package sqlite

import (
	"acuse/store"
	"acuse/store/engine"
)

// count reads the tally from the file.
func (w *writer) count(t *engine.Tally) error {
	*t = engine.Tally{}
	for state, text := range map[store.JobState]string{
		store.Queued: "SELECT destination, count(*) FROM jobs INDEXED BY jobs_due WHERE state = 1 GROUP BY destination",
		store.Leased: "SELECT destination, count(*) FROM jobs INDEXED BY jobs_lease WHERE state = 2 GROUP BY destination",
		store.Dead:   "SELECT destination, count(*) FROM jobs INDEXED BY jobs_dead WHERE state = 4 GROUP BY destination",
	} {
		if err := w.query(text, func(r []val) error {
			t.Move(engine.Move{Destination: w.byID[r[0].(int64)], To: state, N: r[1].(int64)})
			return nil
		}); err != nil {
			return err
		}
	}
	quarantined, err := w.number("SELECT count(*) FROM deliveries INDEXED BY deliveries_hold WHERE hold <> 0 AND hold = 1")
	if err != nil {
		return err
	}
	t.Move(engine.Move{N: quarantined})
	t.Deliveries = w.numbers.delivery - 1
	t.Newest, err = w.number("SELECT received_at FROM deliveries ORDER BY id DESC LIMIT 1")
	return err
}

// moved remembers a job's change of state for the tally.
func (w *writer) moved(destination int64, from, to store.JobState) {
	w.pending.moves = append(w.pending.moves, engine.Move{Destination: w.byID[destination], From: from, To: to, N: 1})
}

// quarantined remembers n more deliveries in quarantine for the tally.
func (w *writer) quarantined(n int64) {
	w.pending.moves = append(w.pending.moves, engine.Move{N: n})
}
