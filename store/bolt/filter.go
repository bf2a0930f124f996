package bolt

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"acuse/store"
	"acuse/store/engine"
)

// sortRows is up to how many queued jobs of all a page of queued deliveries sorts
// rather than walks the archive.
const sortRows = 20_000

// query is a filter: where candidates come from, in order, and which of them match.
type query struct {
	f      store.DeliveryFilter
	up     bool // oldest first
	source int64
	arms   []arm
	text   string // also asked for: number, event id, type, resource, or key
	key    bool   // look into the jobs for it as well
}

// arm lists the deliveries strictly between lo and hi, each once, in the query's order.
type arm func(x *tx, lo, hi int64, back bool) iter.Seq[int64]

// query chooses the index that narrows most: that of an ended state, of a flag, of the
// source, else the archive itself.
func (d *DB) query(x *tx, f store.DeliveryFilter, up bool) *query {
	q := &query{f: f, up: up}
	if f.Source != "" {
		q.source = x.named(f.Source)
	}
	d.mu.Lock()
	queued := d.tally.Queued(f.Destination)
	d.mu.Unlock()
	q.choose(x, queued)
	return q
}

func (q *query) choose(x *tx, queued int64) {
	add := func(a ...arm) { q.arms = append(q.arms, a...) }
	switch f := q.f; {
	case f.State == store.StateQuarantined:
		add(under(tHold, []byte{holdQuarantined}))
	case f.State == store.StateDead:
		add(under(tEnded, []byte{byte(store.Dead)}))
	case f.State == store.StateCancelled:
		add(under(tEnded, []byte{byte(store.Cancelled)}), under(tHold, []byte{holdJobless}))
	case f.State == store.StateSuperseded:
		add(under(tEnded, []byte{byte(store.Superseded)}))
	case f.State == store.StateFiltered:
		add(under(tEnded, []byte{byte(store.Filtered)}), under(tHold, []byte{holdJobless}))
	case f.State == store.StateLeased:
		add(sorted(tLeases, nil))
	case (f.State == store.StateQueued || f.Failing) && queued <= sortRows:
		if f.Destination == "" {
			add(sorted(tDue, nil))
		} else {
			add(sorted(tDue, small(x.named(f.Destination))))
		}
	case f.Resent:
		add(under(tResent, nil))
	case f.Duplicates:
		add(under(tRepeated, nil))
	case f.Source != "":
		add(under(tSources, small(q.source)))
	default:
		add(under(tDeliveries, nil))
	}
}

// under lists the deliveries whose number follows a prefix.
func under(t table, prefix []byte) arm {
	return func(x *tx, lo, hi int64, back bool) iter.Seq[int64] {
		return func(yield func(int64) bool) {
			before := int64(0)
			for k := range x.between(t, prefix, num(lo+1), num(hi), back) {
				id := numAt(k, len(prefix))
				if id != before && !yield(id) {
					return
				}
				before = id
			}
		}
	}
}

// sorted lists the deliveries of jobs that are not in their order: the live leases, or
// at most sortRows queued ones.
func sorted(t table, prefix []byte) arm {
	return func(x *tx, lo, hi int64, back bool) iter.Seq[int64] {
		var ids []int64
		for k := range x.keys(t, prefix, false) {
			if j, err := x.job(last(k)); err == nil && j.delivery > lo && j.delivery < hi {
				ids = append(ids, j.delivery)
			}
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		if back {
			slices.Reverse(ids)
		}
		return slices.Values(ids)
	}
}

// candidates lists what a page looks at, in order: scanRows of each arm at most.
func (q *query) candidates(x *tx, lo, hi int64) iter.Seq[int64] {
	if len(q.arms) == 1 {
		return q.arms[0](x, lo, hi, !q.up)
	}
	var ids []int64
	for _, a := range q.arms {
		n := 0
		for id := range a(x, lo, hi, !q.up) {
			ids = append(ids, id)
			if n++; n == scanRows {
				break
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if !q.up {
		slices.Reverse(ids)
	}
	return slices.Values(ids)
}

// all tells that every candidate matches.
func (q *query) all() bool {
	f := q.f
	f.Before, f.After, f.Limit, f.Query = 0, 0, 0, ""
	return f == store.DeliveryFilter{} && q.text == ""
}

// matches reads a delivery, and its jobs only if need be.
func (q *query) matches(x *tx, id int64) (bool, error) {
	d, ok, err := x.delivery(id)
	if err != nil || !ok {
		return false, err
	}
	f := &q.f
	switch {
	case f.Source != "" && d.source != q.source,
		f.Type != "" && d.kind != f.Type,
		!f.Since.IsZero() && d.receivedAt < engine.Milli(f.Since),
		!f.Until.IsZero() && d.receivedAt >= engine.Milli(f.Until),
		f.Duplicates && d.duplicates == 0:
		return false, nil
	}
	said := q.text == "" || d.id == number(q.text) || d.eventID == q.text || d.kind == q.text || d.resource == q.text
	if !said && !q.key || said && f.State == "" && !q.asksJobs() {
		return said, nil
	}
	out, err := x.full(&d)
	if err != nil {
		return false, err
	}
	said = said || slices.ContainsFunc(out.Jobs, func(j store.Job) bool { return j.Key == q.text })
	return said && (f.State == "" || out.State == f.State) && q.job(out.Jobs), nil
}

func (q *query) asksJobs() bool {
	return q.f.Destination != "" || q.f.Resent || q.f.Failing || q.f.Answer != ""
}

// job asks for one job that meets all the conditions on jobs at once.
func (q *query) job(jobs []store.Job) bool {
	f := &q.f
	return !q.asksJobs() || slices.ContainsFunc(jobs, func(j store.Job) bool {
		return (f.Destination == "" || j.Destination == f.Destination) &&
			(!f.Resent || j.Resend) &&
			(!f.Failing || j.State == store.Queued && j.Spent > 0) &&
			answered(&j, f.Answer)
	})
}

// answered tells whether the last answer of a job is of the kind.
func answered(j *store.Job, kind string) bool {
	switch kind {
	case "":
		return true
	case "2xx", "3xx", "4xx", "5xx":
		low := int(kind[0]-'0') * 100
		return j.LastStatus >= low && j.LastStatus < low+100
	}
	return j.LastClass == kind
}

// with asks also for a text. A key that names its event is left to hits: looking into
// the jobs of every candidate is dear.
func (q query) with(text string, key bool) *query {
	q.text, q.key = text, key || strings.HasPrefix(text, "ak_")
	return &q
}

// number reads "10482" or "#10482"; 0 for anything else.
func number(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(s, "#"), 10, 64)
	return n
}
