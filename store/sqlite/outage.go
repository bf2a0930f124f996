package sqlite

import (
	"context"
	"database/sql"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// postponed is a queued job that is due later.
type postponed struct {
	id, due int64
	status  int
	class   string
}

// maxFreed bounds the jobs that one look and one transaction of EndOutage handle.
const maxFreed = 500

// EndOutage makes due what waits because of an outage; see store.Outages. It looks on a
// reader's connection, so that the writer only writes what is to be changed.
func (d *DB) EndOutage(ctx context.Context, destination string, now time.Time) (int, error) {
	total, from := 0, postponed{due: ms(now)}
	for {
		list, err := d.postponed(ctx, destination, from)
		if err != nil {
			return total, wrap(err, "end outage of %s", destination)
		}
		n, err := d.free(ctx, list, ms(now))
		if total += n; err != nil {
			return total, wrap(err, "end outage of %s", destination)
		}
		if len(list) < maxFreed {
			return total, nil
		}
		from = list[len(list)-1]
	}
}

const selectPostponed = `SELECT id, due_at, last_status, last_class FROM jobs INDEXED BY jobs_due
	WHERE state = 1 AND destination = (SELECT id FROM names WHERE name = ?) AND (due_at, id) > (?, ?) AND due_at < ? ORDER BY due_at, id LIMIT ?`

// postponed lists jobs due after from, earliest first.
func (d *DB) postponed(ctx context.Context, destination string, from postponed) (list []postponed, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, selectPostponed, func(s scanner) error {
			var p postponed
			err := s.Scan(&p.id, &p.due, &p.status, &p.class)
			list = append(list, p)
			return err
		}, destination, from.due, from.id, int64(engine.Never), maxFreed)
	})
	return list, err
}

// free makes those due that met an outage and stand as they were read.
func (d *DB) free(ctx context.Context, list []postponed, now int64) (n int, err error) {
	held := list[:0:0]
	for _, p := range list {
		if store.Outage(p.status, p.class) && p.due > now {
			held = append(held, p)
		}
	}
	if len(held) == 0 {
		return 0, nil
	}
	err = d.do(ctx, func(w *writer) error {
		n = 0
		for _, p := range held {
			changed, err := w.exec("UPDATE OR FAIL jobs SET due_at = ? WHERE id = ? AND state = 1 AND due_at = ?", now, p.id, p.due)
			if err != nil {
				return err
			}
			n += int(changed)
		}
		return nil
	})
	return n, err
}
