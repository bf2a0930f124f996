package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"slices"
	"strings"

	"acuse/store"
)

// scanRows bounds how many candidates one page looks at when its filter has no index:
// a page may come back short, with a number to go on from.
const scanRows = 10_000

// Deliveries lists; see store.Archive.
func (d *DB) Deliveries(ctx context.Context, f store.DeliveryFilter) (list []store.Delivery, next int64, err error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	f.Limit = min(f.Limit, 500)
	q := d.query(f, f.After != 0)
	err = d.view(ctx, func(tx *sql.Tx) error {
		ids, n, err := q.page(ctx, tx, f)
		if err != nil {
			return err
		}
		next = n
		list, err = deliveries(ctx, tx, ids)
		return err
	})
	return list, next, wrap(err, "list deliveries")
}

// Neighbours are the matching numbers beside id; see store.Archive.
func (d *DB) Neighbours(ctx context.Context, id int64, f store.DeliveryFilter) (older, newer int64, err error) {
	f.Limit = 1
	err = d.view(ctx, func(tx *sql.Tx) error {
		f.Before, f.After = id, 0
		if older, err = d.query(f, false).first(ctx, tx, f); err != nil {
			return err
		}
		f.Before, f.After = 0, id
		newer, err = d.query(f, true).first(ctx, tx, f)
		return err
	})
	return older, newer, wrap(err, "neighbours of delivery %d", id)
}

// page returns up to f.Limit numbers, newest first, and where to go on: 0 at the end.
func (q *query) page(ctx context.Context, tx *sql.Tx, f store.DeliveryFilter) (ids []int64, next int64, err error) {
	lo, hi, err := q.bounds(ctx, tx, f)
	if err != nil {
		return nil, 0, err
	}
	first := f.Before == 0 && f.After == 0
	hits, err := q.hits(ctx, tx, f)
	if err != nil {
		return nil, 0, err
	}
	if f.Query != "" {
		q = q.text(f.Query, false)
	}
	floor, ids, err := q.scan(ctx, tx, lo, hi, f.Limit+1)
	if err != nil {
		return nil, 0, err
	}
	more := len(ids) > f.Limit
	if more {
		ids = ids[:f.Limit]
		floor = ids[f.Limit-1]
	}
	// What an index finds is on the first page, wherever it lies, and on no other.
	ids = slices.DeleteFunc(ids, func(id int64) bool { return slices.Contains(hits, id) })
	if first {
		ids = append(ids, hits...)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, floor, nil
}

// bounds is the open range of numbers the page is about.
func (q *query) bounds(ctx context.Context, tx *sql.Tx, f store.DeliveryFilter) (lo, hi int64, err error) {
	lo, hi = f.After, f.Before
	if q.up || hi == 0 {
		hi = 1 << 62
	}
	if !q.up {
		lo = 0
	}
	// Numbers rise with time unless the clock went wrong: the newest thousand before
	// Until, and the oldest thousand since Since, hold the bounds.
	if !f.Until.IsZero() {
		var n int64
		err = tx.QueryRowContext(ctx, selectLastBefore, ms(f.Until)).Scan(&n)
		hi = min(hi, n+1)
	}
	if err == nil && !f.Since.IsZero() {
		var n int64
		err = tx.QueryRowContext(ctx, selectFirstSince, ms(f.Since)).Scan(&n)
		lo = max(lo, n-1)
	}
	return lo, hi, err
}

const (
	selectLastBefore = "SELECT ifnull(max(id), 0) FROM (SELECT id FROM deliveries INDEXED BY deliveries_received WHERE received_at < ? ORDER BY received_at DESC LIMIT 1000)"
	selectFirstSince = "SELECT ifnull(min(id), 1 << 62) FROM (SELECT id FROM deliveries INDEXED BY deliveries_received WHERE received_at >= ? ORDER BY received_at LIMIT 1000)"
)

// scan looks at up to scanRows candidates strictly between lo and hi. floor is the last
// one looked at when there are more, else 0.
func (q *query) scan(ctx context.Context, tx *sql.Tx, lo, hi int64, limit int) (floor int64, ids []int64, err error) {
	if lo+1 >= hi {
		return 0, nil, nil
	}
	if q.where != "" {
		s := q.floorSQL(lo, hi)
		if err := tx.QueryRowContext(ctx, s.text, s.args...).Scan(&floor); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return 0, nil, err
		}
	}
	s := q.pageSQL(lo, hi, limit)
	ids, err = ints(ctx, tx, s.text, s.args...)
	return floor, ids, err
}

// ints reads a column of numbers.
func ints(ctx context.Context, tx *sql.Tx, text string, args ...any) (list []int64, err error) {
	err = each(ctx, tx, text, func(s scanner) error {
		var n int64
		err := s.Scan(&n)
		list = append(list, n)
		return err
	}, args...)
	return list, err
}

// first looks for the first match, however far it is within ten scans.
func (q *query) first(ctx context.Context, tx *sql.Tx, f store.DeliveryFilter) (int64, error) {
	lo, hi, err := q.bounds(ctx, tx, f)
	if f.Query != "" {
		q = q.text(f.Query, true)
	}
	for range 10 {
		if err != nil {
			return 0, err
		}
		floor, ids, err := q.scan(ctx, tx, lo, hi, 1)
		if err != nil || len(ids) > 0 {
			return append(ids, 0)[0], err
		}
		if floor == 0 {
			return 0, nil
		}
		if q.up {
			lo = floor
		} else {
			hi = floor
		}
	}
	return 0, nil
}

// hits are the numbers that indexes find for f.Query and that match the rest of f: a
// number, an event id (and the earlier deliveries with the same one), an idempotency key.
func (q *query) hits(ctx context.Context, tx *sql.Tx, f store.DeliveryFilter) (ids []int64, err error) {
	if f.Query == "" {
		return nil, nil
	}
	q = q.text(f.Query, true)
	events := []string{f.Query}
	if parts := strings.Split(f.Query, ":"); len(parts) == 3 {
		if id, err := url.PathUnescape(parts[1]); err == nil {
			events = append(events, id)
		}
	}
	args := append([]any{number(f.Query), events[0], events[len(events)-1]}, q.args...)
	return ints(ctx, tx, selectHits+q.where, args...)
}

const selectHits = `WITH RECURSIVE hit(id) AS (
	SELECT ?1
	UNION SELECT k.delivery FROM names n CROSS JOIN dedup k ON k.source = n.id AND k.event_id IN (?2, ?3)
	UNION SELECT d.earlier FROM hit CROSS JOIN deliveries d ON d.id = hit.id WHERE d.earlier <> 0
) SELECT d.id FROM hit CROSS JOIN deliveries d ON d.id = hit.id WHERE `
