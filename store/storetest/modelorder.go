package storetest

import (
	"slices"
	"time"

	"acuse/store"
)

// modelLine names an order.
type modelLine struct{ destination, order string }

// modelOrder is an order: who has the turn, and who waits, in their order.
type modelOrder struct {
	turn  *modelJob
	waits []*modelJob
}

func (j *modelJob) turn() bool { return !j.TurnAt.IsZero() }

// line puts a job where its state says: into its order, or out of it. The next one has the
// turn when it has become free.
func (m *model) line(j *modelJob, at time.Time) {
	if j.Order == "" {
		return
	}
	k := modelLine{j.Destination, j.Order}
	o := m.lines[k]
	if o == nil {
		o = &modelOrder{}
		m.lines[k] = o
	}
	in := o.turn == j || slices.Contains(o.waits, j)
	switch {
	case j.State == store.Leased, j.State == store.Dead && j.Strict && in:
		return
	case j.State != store.Queued:
		o.remove(j)
	case !in:
		n := slices.IndexFunc(o.waits, func(w *modelJob) bool { return w.place > j.place })
		if n < 0 {
			n = len(o.waits)
		}
		o.waits = slices.Insert(o.waits, n, j)
		j.Waits, j.DueAt = true, time.Time{}
	}
	if o.turn == nil && len(o.waits) > 0 {
		o.turn, o.waits = o.waits[0], o.waits[1:]
		o.turn.Waits, o.turn.DueAt, o.turn.TurnAt = false, at, at
	}
}

func (o *modelOrder) remove(j *modelJob) {
	if o.turn == j {
		o.turn = nil
	}
	o.waits = slices.DeleteFunc(o.waits, func(w *modelJob) bool { return w == j })
	j.Waits, j.TurnAt = false, time.Time{}
}

// requeue queues a job again, with a fresh budget, at the end of its order.
func (m *model) requeue(j *modelJob, at time.Time) {
	j.State, j.DueAt, j.since, j.Spent, j.SettledAt, j.Reason, j.LeaseToken, j.SupersededBy = store.Queued, at, at, 0, time.Time{}, 0, 0, 0
	if j.Order == "" {
		return
	}
	if o := m.lines[modelLine{j.Destination, j.Order}]; o != nil {
		o.remove(j)
	}
	j.place, j.Moved = float64(m.next.delivery)-0.5, true
	m.line(j, at)
}

// supersede ends the queued jobs of lower versions of what became the job.
func (m *model) supersede(d *modelDelivery, n *modelJob, at time.Time) {
	if !n.latest || d.Resource == "" {
		return
	}
	for _, j := range m.jobs() {
		o := m.deliveries[j.Delivery]
		same := o.Source == d.Source && o.Resource == d.Resource && o.Type == d.Type && o.Unit == d.Unit
		if j.State == store.Queued && j.latest && j.Destination == n.Destination && j.Delivery < n.Delivery && same && store.Newer(d.Unit, d.Version, o.Version) {
			j.State, j.SettledAt, j.LeaseToken, j.SupersededBy = store.Superseded, at, 0, n.Delivery
			m.line(j, at)
		}
	}
}

// place is where the model says that a job stands.
func (m *model) place(j *modelJob) (out store.Line, ok bool) {
	o := m.lines[modelLine{j.Destination, j.Order}]
	if j.Order == "" || o == nil || o.turn != j && !slices.Contains(o.waits, j) {
		return out, false
	}
	out.Head = o.head()
	if o.turn != j {
		out.Ahead = slices.Index(o.waits, j)
		if o.turn.place < j.place {
			out.Ahead++
		}
		out.Ahead = max(out.Ahead, 1)
	}
	return out, true
}

func (o *modelOrder) head() store.Head {
	j := o.turn
	h := store.Head{Job: j.ID, Delivery: j.Delivery, Destination: j.Destination, Order: j.Order, State: j.State, Since: j.TurnAt, Behind: len(o.waits)}
	if j.State == store.Queued {
		h.DueAt = j.DueAt
	}
	return h
}

// heads are those that hold up others, longest first.
func (m *model) heads(since time.Time) (list []store.Head) {
	for _, j := range m.jobs() {
		o := m.lines[modelLine{j.Destination, j.Order}]
		if o != nil && o.turn == j && len(o.waits) > 0 && !j.TurnAt.After(since) {
			list = append(list, o.head())
		}
	}
	slices.SortStableFunc(list, func(a, b store.Head) int { return a.Since.Compare(b.Since) })
	return list
}
