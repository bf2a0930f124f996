package sqlite

import (
	"context"
	"database/sql"

	"acuse/store"
)

const selectDeadGroups = `SELECT n.name, g.reason, g.last_status, g.last_class, g.jobs, g.first, g.last FROM (
	SELECT destination, reason, last_status, last_class, count(*) AS jobs, min(settled_at) AS first, max(settled_at) AS last
	FROM jobs INDEXED BY jobs_dead WHERE state = 4 GROUP BY destination, reason, last_status, last_class) g
	JOIN names n ON n.id = g.destination ORDER BY g.last DESC`

// DeadGroups groups the dead letters; see store.Archive.
func (d *DB) DeadGroups(ctx context.Context) (list []store.DeadGroup, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, selectDeadGroups, func(s scanner) error {
			var g store.DeadGroup
			var first, last int64
			err := s.Scan(&g.Destination, &g.Reason, &g.Status, &g.Class, &g.Jobs, &first, &last)
			g.First, g.Last = instant(first), instant(last)
			list = append(list, g)
			return err
		})
	})
	return list, wrap(err, "dead letters")
}
