package sqlite

import (
	"context"
	"time"
)

// Shift moves what waits; see store.Clock. One transaction, whatever its size: a part
// alone would wait for the wrong time.
func (d *DB) Shift(ctx context.Context, by time.Duration) error {
	n := by.Milliseconds()
	err := d.do(ctx, func(w *writer) error {
		if _, err := w.exec(shiftDue, n); err != nil {
			return err
		}
		_, err := w.exec(shiftDeadlines, n)
		return err
	})
	return wrap(err, "shift by %v", by)
}

const (
	shiftDue       = "UPDATE OR FAIL jobs SET due_at = due_at + ?1, since = since + ?1 WHERE state = 1"
	shiftDeadlines = "UPDATE OR FAIL jobs SET lease_until = lease_until + ? WHERE state = 2"
)
