package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"acuse/store"
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
	return instant(n.Int64), n.Valid, nil
}

// Totals counts what waits; see store.Archive.
func (d *DB) Totals(ctx context.Context) (store.Totals, error) {
	d.mu.Lock()
	t := store.Totals{
		Quarantined: d.tally.quarantined, Newest: instant(d.tally.newest), Deliveries: d.tally.deliveries,
		ByDestination: make(map[string]store.LaneTotals, len(d.tally.lanes)),
	}
	for name, l := range d.tally.lanes {
		t.ByDestination[name] = store.LaneTotals{Queued: l.queued, Leased: l.leased, Dead: l.dead}
		t.Queued, t.Leased, t.Dead = t.Queued+l.queued, t.Leased+l.leased, t.Dead+l.dead
	}
	d.mu.Unlock()
	for name, l := range t.ByDestination {
		if l.Queued == 0 {
			continue
		}
		due, ok, err := d.NextDue(ctx, name)
		if err != nil {
			return store.Totals{}, err
		}
		if !ok {
			continue
		}
		l.OldestDue = due
		t.ByDestination[name] = l
		if t.OldestDue.IsZero() || due.Before(t.OldestDue) {
			t.OldestDue = due
		}
	}
	return t, nil
}
