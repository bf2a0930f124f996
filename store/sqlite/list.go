package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"acuse/store"
)

// scanRows bounds how many candidates one page looks at when its filter has no index:
// a page may come back short, with a number to go on from.
const scanRows = 10_000

// sortRows is up to how many queued jobs of all a page of queued deliveries sorts
// rather than walks the archive.
const sortRows = 20_000

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

// query is a filter as SQL: where candidates come from, in order, and which of them match.
type query struct {
	arms  []arm  // together they list each candidate once
	where string // over delivery d; "" is all
	args  []any
	up    bool // oldest first
}

// arm is a SELECT of delivery numbers up to its WHERE, so that " AND …" may follow.
type arm struct {
	text   string
	column string // the number
	args   []any
}

// query chooses the index that narrows most: that of an ended state, of a flag, of the
// source, else the archive itself.
func (d *DB) query(f store.DeliveryFilter, up bool) *query {
	q := &query{up: up}
	q.choose(f, d.queued(f.Destination))
	q.narrow(f)
	return q
}

// queued is how many jobs are queued, of one destination or all.
func (d *DB) queued(destination string) (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, l := range d.tally.lanes {
		if destination == "" || name == destination {
			n += l.queued
		}
	}
	return n
}

func (q *query) choose(f store.DeliveryFilter, queued int64) {
	switch {
	case f.State == store.StateQuarantined:
		q.deliveries("INDEXED BY deliveries_hold WHERE hold <> 0 AND hold = 1")
	case f.State == store.StateDead:
		q.jobs("INDEXED BY jobs_ended WHERE state >= 4 AND state = 4")
	case f.State == store.StateCancelled:
		q.jobs("INDEXED BY jobs_ended WHERE state >= 4 AND state = 5")
		q.deliveries("INDEXED BY deliveries_hold WHERE hold <> 0 AND hold = 2 AND duplicate_of <> 0")
	case f.State == store.StateSuperseded:
		q.jobs("INDEXED BY jobs_ended WHERE state >= 4 AND state = 6")
	case f.State == store.StateFiltered:
		q.jobs("INDEXED BY jobs_ended WHERE state >= 4 AND state = 7")
		q.deliveries("INDEXED BY deliveries_hold WHERE hold <> 0 AND hold = 2 AND duplicate_of = 0")
	case f.State == store.StateLeased:
		q.jobs("INDEXED BY jobs_lease WHERE state = 2")
	case (f.State == store.StateQueued || f.Failing) && queued <= sortRows:
		if f.Destination == "" {
			q.jobs("INDEXED BY jobs_due WHERE state = 1")
		} else {
			q.jobs("INDEXED BY jobs_due WHERE state = 1 AND destination = (SELECT id FROM names WHERE name = ?)", f.Destination)
		}
	case f.Resent:
		q.jobs("INDEXED BY jobs_resent WHERE resend = 1")
	case f.Duplicates:
		q.deliveries("INDEXED BY deliveries_duplicate WHERE duplicates > 0")
	case f.Source != "":
		q.deliveries("INDEXED BY deliveries_source WHERE source = (SELECT id FROM names WHERE name = ?)", f.Source)
	default:
		q.deliveries("NOT INDEXED WHERE 1")
	}
}

func (q *query) deliveries(text string, args ...any) {
	q.arms = append(q.arms, arm{"SELECT id FROM deliveries " + text, "id", args})
}

func (q *query) jobs(text string, args ...any) {
	q.arms = append(q.arms, arm{"SELECT DISTINCT delivery AS id FROM jobs " + text, "delivery", args})
}

// narrow adds every condition of the filter.
func (q *query) narrow(f store.DeliveryFilter) {
	if f.Source != "" {
		q.and("d.source = (SELECT id FROM names WHERE name = ?)", f.Source)
	}
	if f.Type != "" {
		q.and("d.type = ?", f.Type)
	}
	if !f.Since.IsZero() {
		q.and("d.received_at >= ?", ms(f.Since))
	}
	if !f.Until.IsZero() {
		q.and("d.received_at < ?", ms(f.Until))
	}
	if f.Duplicates {
		q.and("d.duplicates > 0")
	}
	if f.State != "" {
		q.state(f.State)
	}
	q.job(f)
}

func (q *query) and(condition string, args ...any) {
	if q.where != "" {
		q.where += " AND "
	}
	q.where += condition
	q.args = append(q.args, args...)
}

// state asks that the worst of the delivery's jobs is in state s.
func (q *query) state(s store.DeliveryState) {
	if s == store.StateQuarantined {
		q.and("d.hold = 1")
		return
	}
	q.and("d.hold <> 1")
	var worse []string
	for _, w := range worst {
		number := strconv.Itoa(int(w.job))
		if w.state != s {
			worse = append(worse, number)
			continue
		}
		if len(worse) > 0 {
			q.and("NOT EXISTS (SELECT 1 FROM jobs j WHERE j.delivery = d.id AND j.state IN (" + strings.Join(worse, ", ") + "))")
		}
		has := "EXISTS (SELECT 1 FROM jobs j WHERE j.delivery = d.id AND j.state = " + number + ")"
		switch s {
		case store.StateCancelled:
			has = "(" + has + " OR (d.hold = 2 AND d.duplicate_of <> 0))"
		case store.StateFiltered:
			has = "(" + has + " OR (d.hold = 2 AND d.duplicate_of = 0))"
		}
		q.and(has)
		return
	}
	q.and("0") // no such state
}

// job asks for one job that meets all the conditions on jobs at once.
func (q *query) job(f store.DeliveryFilter) {
	text := ""
	var args []any
	add := func(condition string, a ...any) {
		text += " AND " + condition
		args = append(args, a...)
	}
	if f.Destination != "" {
		add("j.destination = (SELECT id FROM names WHERE name = ?)", f.Destination)
	}
	if f.Resent {
		add("j.resend = 1")
	}
	if f.Failing {
		add("j.state = 1 AND j.spent > 0")
	}
	switch f.Answer {
	case "":
	case "2xx", "3xx", "4xx", "5xx":
		low := int64(f.Answer[0]-'0') * 100
		add("j.last_status >= ? AND j.last_status < ?", low, low+100)
	default:
		add("j.last_class = ?", f.Answer)
	}
	if text != "" {
		q.and("EXISTS (SELECT 1 FROM jobs j WHERE j.delivery = d.id"+text+")", args...)
	}
}

// text adds that the delivery has s as its number, event id, type, resource or
// idempotency key. A key that names its event is left to hits: looking into the jobs
// of every candidate is dear.
func (q query) text(s string, key bool) *query {
	either := "(d.id = ? OR d.event_id = ? OR d.type = ? OR d.resource = ?"
	args := []any{number(s), s, s, s}
	if key || strings.HasPrefix(s, "ak_") {
		either += " OR EXISTS (SELECT 1 FROM jobs j WHERE j.delivery = d.id AND j.key = ?)"
		args = append(args, s)
	}
	q.args = slices.Clip(q.args)
	q.and(either+")", args...)
	return &q
}

// number reads "10482" or "#10482"; 0 for anything else.
func number(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(s, "#"), 10, 64)
	return n
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

// statement is SQL with what it is given.
type statement struct {
	text string
	args []any
}

// candidates lists what the page looks at, in order.
func (q *query) candidates(lo, hi int64) (s statement) {
	for i, a := range q.arms {
		if i > 0 {
			s.text += " UNION "
		}
		s.text += a.text + " AND " + a.column + " > ? AND " + a.column + " < ?"
		s.args = append(append(s.args, a.args...), lo, hi)
	}
	s.text += " ORDER BY id"
	if !q.up {
		s.text += " DESC"
	}
	return s
}

// floorSQL finds the last candidate that one scan looks at, if there are more.
func (q *query) floorSQL(lo, hi int64) statement {
	s := q.candidates(lo, hi)
	s.text += " LIMIT 1 OFFSET " + strconv.Itoa(scanRows-1)
	return s
}

// pageSQL finds the first matches among the candidates of one scan. The inner LIMIT
// keeps SQLite from reordering: rows come in the candidates' order.
func (q *query) pageSQL(lo, hi int64, limit int) statement {
	s := q.candidates(lo, hi)
	if q.where != "" {
		s.text = "SELECT d.id FROM (" + s.text + " LIMIT " + strconv.Itoa(scanRows) + ") c CROSS JOIN deliveries d ON d.id = c.id WHERE " + q.where
		s.args = append(s.args, q.args...)
	}
	s.text += " LIMIT " + strconv.Itoa(limit)
	return s
}

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
