package bolt

import (
	"context"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// Shift moves what waits; see store.Clock. One transaction, whatever its size: a part
// alone would wait for the wrong time.
func (d *DB) Shift(ctx context.Context, now time.Time, by time.Duration) error {
	from, to := engine.Milli(now.Add(-store.Timeline)), engine.Milli(now.Add(store.Timeline))
	return wrap(d.do(ctx, func(w *writer) error {
		var waiting []int64
		for _, i := range []struct {
			t  table
			at int // where the instant stands in the key
		}{{tDue, 4}, {tLeases, 0}} {
			for k := range w.keys(i.t, nil, false) {
				if n := numAt(k, i.at); from <= n && n <= to {
					waiting = append(waiting, last(k))
				}
			}
		}
		for k := range w.keys(tLine, nil, false) {
			j, err := w.jobOf(0, last(k))
			if err != nil {
				return err
			}
			if j.turn == engine.Waits && from <= j.since && j.since <= to {
				waiting = append(waiting, j.id)
			}
		}
		for _, id := range waiting {
			if err := w.shift(id, by.Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	}), "shift by %v", by)
}

func (w *writer) shift(id, by int64) error {
	old, err := w.jobOf(0, id)
	if err != nil {
		return err
	}
	j := old
	j.since += by
	switch {
	case j.turn == engine.Waits:
	case j.state == store.Leased:
		j.until += by
	default:
		j.due += by
	}
	if j.turn == engine.Turn {
		j.turnAt += by
	}
	return w.change(&old, &j)
}
