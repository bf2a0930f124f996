package sqlite

import (
	"context"
	"time"

	"acuse/store"
)

// Shift moves what waits; see store.Clock. One transaction, whatever its size: a part
// alone would wait for the wrong time.
func (d *DB) Shift(ctx context.Context, now time.Time, by time.Duration) error {
	from, to := ms(now.Add(-store.Timeline)), ms(now.Add(store.Timeline))
	err := d.do(ctx, func(w *writer) error {
		if _, err := w.exec(shiftDue, by.Milliseconds(), from, to); err != nil {
			return err
		}
		if _, err := w.exec(shiftWaiting, by.Milliseconds(), from, to); err != nil {
			return err
		}
		_, err := w.exec(shiftDeadlines, by.Milliseconds(), from, to)
		return err
	})
	return wrap(err, "shift by %v", by)
}

const (
	shiftDue       = "UPDATE OR FAIL jobs SET due_at = due_at + ?1, since = since + ?1, order_since = order_since + ?1 * (order_turn = 1) WHERE state = 1 AND due_at BETWEEN ?2 AND ?3"
	shiftDeadlines = "UPDATE OR FAIL jobs SET lease_until = lease_until + ?1, since = since + ?1, order_since = order_since + ?1 * (order_turn = 1) WHERE state = 2 AND lease_until BETWEEN ?2 AND ?3"
	shiftWaiting   = "UPDATE OR FAIL jobs INDEXED BY jobs_line SET since = since + ?1 WHERE order_turn <> 0 AND order_turn = 2 AND since BETWEEN ?2 AND ?3"
)
