package sqlite

import (
	"slices"
	"strconv"
	"strings"

	"acuse/store"
	"acuse/store/engine"
)

// sortRows is up to how many queued jobs of all a page of queued deliveries sorts
// rather than walks the archive.
const sortRows = 20_000

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
func (d *DB) queued(destination string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tally.Queued(destination)
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
	for _, w := range engine.Worst {
		number := strconv.Itoa(int(w.Job))
		if w.State != s {
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
