package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// NextDue is the earliest due time of a lane; see store.Jobs.
func (d *DB) NextDue(ctx context.Context, destination string) (time.Time, bool, error) {
	return d.earliest(ctx, d.hot.nextDue, destination)
}

// NextDeadline is the earliest deadline of all leases; see store.Jobs.
func (d *DB) NextDeadline(ctx context.Context) (time.Time, bool, error) {
	return d.earliest(ctx, d.hot.nextDeadline)
}

const (
	selectNextDue      = "SELECT min(due_at) FROM jobs INDEXED BY jobs_due WHERE state = 1 AND destination = (SELECT id FROM names WHERE name = ?)"
	selectNextDeadline = "SELECT min(lease_until) FROM jobs INDEXED BY jobs_lease WHERE state = 2"
)

func (d *DB) earliest(ctx context.Context, stmt *sql.Stmt, args ...any) (time.Time, bool, error) {
	var n sql.NullInt64
	if err := stmt.QueryRowContext(ctx, args...).Scan(&n); err != nil {
		return time.Time{}, false, fmt.Errorf("next due: %w", d.closed(err))
	}
	if !n.Valid || n.Int64 == engine.Never {
		return time.Time{}, false, nil
	}
	return instant(n.Int64), true, nil
}

// Totals counts what waits; see store.Archive.
func (d *DB) Totals(ctx context.Context) (store.Totals, error) {
	d.mu.Lock()
	t := d.tally.Totals()
	d.mu.Unlock()
	err := engine.AddDue(&t, func(destination string) (time.Time, bool, error) { return d.NextDue(ctx, destination) })
	if err != nil {
		return store.Totals{}, err
	}
	return t, nil
}
