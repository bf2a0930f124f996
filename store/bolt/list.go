package bolt

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"acuse/store"
	"acuse/store/engine"
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
	err = d.view(ctx, func(x *tx) error {
		ids, n, err := d.query(x, f, f.After != 0).page(ctx, x)
		if err != nil {
			return err
		}
		next = n
		list, err = x.deliveries(ids)
		return err
	})
	return list, next, wrap(err, "list deliveries")
}

// Neighbours are the matching numbers beside id; see store.Archive.
func (d *DB) Neighbours(ctx context.Context, id int64, f store.DeliveryFilter) (older, newer int64, err error) {
	err = d.view(ctx, func(x *tx) error {
		f.Before, f.After = id, 0
		if older, err = d.query(x, f, false).first(ctx, x); err != nil {
			return err
		}
		f.Before, f.After = 0, id
		newer, err = d.query(x, f, true).first(ctx, x)
		return err
	})
	return older, newer, wrap(err, "neighbours of delivery %d", id)
}

// page returns up to f.Limit numbers, newest first, and where to go on: 0 at the end.
func (q *query) page(ctx context.Context, x *tx) (ids []int64, next int64, err error) {
	lo, hi := q.bounds(x)
	hits, err := q.hits(x)
	if err != nil {
		return nil, 0, err
	}
	limit, first := q.f.Limit, q.f.Before == 0 && q.f.After == 0
	if q.f.Query != "" {
		q = q.with(q.f.Query, false)
	}
	floor, ids, err := q.scan(ctx, x, lo, hi, limit+1)
	if err != nil {
		return nil, 0, err
	}
	if len(ids) > limit {
		ids = ids[:limit]
		floor = ids[limit-1]
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
func (q *query) bounds(x *tx) (lo, hi int64) {
	lo, hi = q.f.After, q.f.Before
	if q.up || hi == 0 {
		hi = 1 << 62
	}
	if !q.up {
		lo = 0
	}
	// Numbers rise with time unless the clock went wrong: the newest thousand before
	// Until, and the oldest thousand since Since, hold the bounds.
	if !q.f.Until.IsZero() {
		highest, n := int64(0), 0
		for k := range x.between(tReceived, nil, nil, num(engine.Milli(q.f.Until)), true) {
			if highest, n = max(highest, numAt(k, 8)), n+1; n == 1000 {
				break
			}
		}
		hi = min(hi, highest+1)
	}
	if !q.f.Since.IsZero() {
		lowest, n := int64(1<<62), 0
		for k := range x.between(tReceived, nil, num(engine.Milli(q.f.Since)), nil, false) {
			if lowest, n = min(lowest, numAt(k, 8)), n+1; n == 1000 {
				break
			}
		}
		lo = max(lo, lowest-1)
	}
	return lo, hi
}

// scan looks at up to scanRows candidates strictly between lo and hi, and returns up to
// limit that match. floor is the last one looked at when there may be more, else 0.
func (q *query) scan(ctx context.Context, x *tx, lo, hi int64, limit int) (floor int64, ids []int64, err error) {
	if lo+1 >= hi {
		return 0, nil, nil
	}
	looked, all := 0, q.all()
	for id := range q.candidates(x, lo, hi) {
		ok := all
		if !all {
			if ok, err = q.matches(x, id); err != nil {
				return 0, nil, err
			}
		}
		if ok {
			if ids = append(ids, id); len(ids) == limit {
				return floor, ids, nil
			}
		}
		if looked++; looked == scanRows && !all {
			return id, ids, nil
		}
		if looked%512 == 0 {
			if err := ctx.Err(); err != nil {
				return 0, nil, err
			}
		}
	}
	return 0, ids, nil
}

// first looks for the first match, however far it is within ten scans.
func (q *query) first(ctx context.Context, x *tx) (int64, error) {
	lo, hi := q.bounds(x)
	if q.f.Query != "" {
		q = q.with(q.f.Query, true)
	}
	for range 10 {
		floor, ids, err := q.scan(ctx, x, lo, hi, 1)
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
func (q *query) hits(x *tx) (ids []int64, err error) {
	if q.f.Query == "" {
		return nil, nil
	}
	q = q.with(q.f.Query, true)
	var found []int64
	add := func(id int64) {
		if id != 0 && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	add(number(q.f.Query))
	events := []string{q.f.Query}
	if parts := strings.Split(q.f.Query, ":"); len(parts) == 3 {
		if id, err := url.PathUnescape(parts[1]); err == nil {
			events = append(events, id)
		}
	}
	for k := range x.keys(tNames, nil, false) {
		for _, event := range events {
			holder, _, err := x.holder(smallAt(k, 0), event)
			if err != nil {
				return nil, err
			}
			add(holder)
		}
	}
	for i := 0; i < len(found); i++ {
		d, ok, err := x.delivery(found[i])
		if err != nil {
			return nil, err
		}
		if ok {
			add(d.earlier)
		}
	}
	for _, id := range found {
		ok, err := q.matches(x, id)
		if err != nil {
			return nil, err
		}
		if ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
