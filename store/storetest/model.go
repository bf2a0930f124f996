package storetest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"acuse/store"
)

// model is a store in memory, as plain as can be: what the engines are held against. It
// follows the words of package store, not the code of an engine.
type model struct {
	deliveries map[int64]*modelDelivery
	keys       map[modelKey]*modelClaim
	byID       map[int64]*modelJob
	lines      map[modelLine]*modelOrder
	next       struct{ delivery, job, token int64 }
}

type modelKey struct{ source, id string }

type modelClaim struct {
	delivery int64
	expires  time.Time
}

type modelDelivery struct {
	store.Delivery
	digest int64
	body   string
	jobs   []*modelJob
}

type modelJob struct {
	store.Job
	since                time.Time
	passthrough, revived bool
	owner                string
	until                time.Time
	tries                []*store.Attempt
	place                float64 // the delivery's number; one half above the highest given out when it went to the end
	latest               bool
}

func newModel() *model {
	m := &model{deliveries: map[int64]*modelDelivery{}, keys: map[modelKey]*modelClaim{}, byID: map[int64]*modelJob{}, lines: map[modelLine]*modelOrder{}}
	m.next.delivery, m.next.job, m.next.token = 1, 1, 1
	return m
}

// ids are the numbers of the deliveries, oldest first.
func (m *model) ids() (list []int64) {
	for id := range m.deliveries {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// jobs are all of them, by number.
func (m *model) jobs() (list []*modelJob) {
	for _, j := range m.byID {
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b *modelJob) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

func (m *model) addJob(d *modelDelivery, n store.NewJob, at time.Time) *modelJob {
	j := &modelJob{Job: store.Job{ID: m.next.job, Delivery: d.ID, Destination: n.Destination, Key: n.Key, State: n.State, Note: n.Note, DueAt: at, Order: n.Order, Strict: n.Strict && n.Order != ""}, since: at}
	if n.State != store.Queued {
		j.SettledAt = at
	}
	if n.State == store.Dead {
		j.Reason, j.LastClass = store.RefusedByApp, "rule"
	}
	m.next.job++
	d.jobs = append(d.jobs, j)
	m.byID[j.ID] = j
	if n.State == store.Queued {
		j.latest = n.Latest
		j.place = float64(d.ID)
		m.line(j, at)
	}
	return j
}

func (m *model) accept(a store.Arrival) (out []store.Outcome) {
	repeats := map[int]int64{}
	for i, e := range a.Events {
		k := modelKey{a.Source, e.ID}
		claim := m.keys[k]
		if e.Quarantine == "" && m.claimed(claim, e, a.ReceivedAt) {
			repeats[i] = claim.delivery
			out = append(out, store.Outcome{Kind: store.Duplicate, Delivery: claim.delivery})
			continue
		}
		d := &modelDelivery{digest: e.Digest, body: string(a.Body), Delivery: store.Delivery{DeliveryHead: store.DeliveryHead{
			ID: m.next.delivery, Source: a.Source, EventID: e.ID, Type: e.Type, Resource: e.Resource, Version: e.Version, Unit: e.Unit, ReceivedAt: a.ReceivedAt, Part: e.Part}, Quarantine: e.Quarantine}}
		m.next.delivery++
		m.deliveries[d.ID] = d
		o := store.Outcome{Kind: store.Accepted, Delivery: d.ID}
		if e.Quarantine != "" {
			o.Kind, d.EventID = store.Quarantined, ""
		} else {
			m.keys[k] = &modelClaim{d.ID, a.ReceivedAt.Add(e.Window)}
			for _, n := range e.Jobs {
				m.supersede(d, m.addJob(d, n, a.ReceivedAt), a.ReceivedAt)
			}
		}
		out = append(out, o)
	}
	for i := range a.Events {
		if first, ok := repeats[i]; ok {
			out[i].Revived = m.repeat(first, a.Events[i], a.ReceivedAt)
		}
	}
	return out
}

// claimed tells whether a claim still holds against an event.
func (m *model) claimed(c *modelClaim, e store.Event, at time.Time) bool {
	return c != nil && (c.expires.After(at) || e.WithRow && m.deliveries[c.delivery] != nil)
}

// repeat counts a duplicate and revives what died of exhausted attempts.
func (m *model) repeat(id int64, e store.Event, at time.Time) (revived bool) {
	d := m.deliveries[id]
	if d == nil {
		return false
	}
	d.Duplicates++
	if at.After(d.LastDuplicateAt) {
		d.LastDuplicateAt = at
	}
	if e.Digest != d.digest {
		d.BodyDiffers++
	}
	for _, j := range d.jobs {
		if e.Revive && j.State == store.Dead && j.Reason == store.Exhausted && !j.revived {
			m.requeue(j, at)
			j.revived, revived = true, true
		}
	}
	return revived
}

func (m *model) lease(q store.LeaseQuery) (out []store.Lease) {
	for len(out) < q.Max {
		var j *modelJob
		for _, c := range m.jobs() {
			if c.State == store.Queued && !c.Waits && c.Destination == q.Destination && !c.DueAt.After(q.Now) && (j == nil || c.DueAt.Before(j.DueAt)) {
				j = c
			}
		}
		switch {
		case j == nil:
			return out
		case q.Budget > 0 && j.Spent >= q.Budget:
			m.die(j, store.Exhausted, q.Now)
		case q.MaxAge > 0 && q.Now.Sub(j.since) > q.MaxAge:
			m.die(j, store.TooOld, q.Now)
		default:
			j.State, j.owner, j.until, j.LeaseToken = store.Leased, q.Owner, q.Now.Add(q.TTL), m.next.token
			m.next.token++
			j.Attempts, j.Spent = j.Attempts+1, j.Spent+1
			j.tries = append(j.tries, &store.Attempt{ID: j.LeaseToken, Job: j.ID, N: j.Attempts, StartedAt: q.Now, Resend: j.Resend, Owner: q.Owner, Result: store.Result{Outcome: store.Running}})
			out = append(out, store.Lease{Job: j.ID, Token: j.LeaseToken, Until: j.until, Attempt: j.Attempts, Spent: j.Spent, Key: j.Key, Resend: j.Resend, Passthrough: j.passthrough, Order: j.Order})
		}
	}
	return out
}

func (m *model) die(j *modelJob, why store.DeadReason, at time.Time) {
	j.State, j.Reason, j.SettledAt, j.LeaseToken = store.Dead, why, at, 0
	m.line(j, at)
}

// held is the job if the token is its current one.
func (m *model) held(id, token int64) *modelJob {
	j := m.byID[id]
	if j == nil || token == 0 || j.LeaseToken != token || (j.State != store.Leased && j.State != store.Queued) {
		return nil
	}
	return j
}

func (m *model) renew(id, token int64, until time.Time) error {
	j := m.held(id, token)
	if j == nil {
		return store.ErrLeaseLost
	}
	a := j.tries[len(j.tries)-1]
	a.Outcome = store.Running
	if j.State == store.Queued {
		a.Duration = 0
	}
	j.State, j.until = store.Leased, until
	return nil
}

func (m *model) settle(s store.Settlement) error {
	j := m.held(s.Job, s.Token)
	if j == nil {
		return store.ErrLeaseLost
	}
	j.State, j.LeaseToken, j.SettledAt, j.Reason = s.State, 0, s.At, 0
	switch s.State {
	case store.Queued:
		j.DueAt, j.SettledAt = s.Due, time.Time{}
	case store.Dead:
		j.Reason = s.Reason
	}
	j.LastStatus, j.LastClass, j.LastError, j.LastMicros = s.Result.Status, s.Result.Class, s.Result.Error, s.Result.Duration.Microseconds()
	j.tries[len(j.tries)-1].Result = s.Result
	m.line(j, s.At)
	return nil
}

// end ends leases; late keeps their tokens current.
func (m *model) end(which func(j *modelJob) bool, late bool, now time.Time) (n int) {
	for _, j := range m.jobs() {
		if j.State != store.Leased || !which(j) {
			continue
		}
		n++
		a := j.tries[len(j.tries)-1]
		a.Outcome, a.Duration = store.Interrupted, max(0, now.Sub(a.StartedAt))
		j.State, j.DueAt, j.LastStatus, j.LastClass, j.LastError = store.Queued, now, 0, "interrupted", ""
		if !late {
			j.LeaseToken = 0
		}
	}
	return n
}

// chosen are the jobs of a delivery that go to the destination, or all.
func (d *modelDelivery) chosen(destination string) (list []*modelJob) {
	for _, j := range d.jobs {
		if destination == "" || j.Destination == destination {
			list = append(list, j)
		}
	}
	return list
}

// resendable tells why a delivery's jobs cannot be resent.
func (m *model) resendable(id int64, destination string) ([]*modelJob, error) {
	d := m.deliveries[id]
	switch {
	case d == nil:
		return nil, store.ErrNotFound
	case d.Quarantine != "":
		return nil, store.ErrState
	case len(d.chosen(destination)) == 0:
		return nil, store.ErrNotFound
	}
	return d.chosen(destination), nil
}

func (m *model) resend(r store.Resend) (out store.Resent, err error) {
	jobs, err := m.resendable(r.Delivery, r.Destination)
	if err != nil {
		return out, err
	}
	waits := func(j *modelJob) bool {
		return j.State == store.Queued && j.Resend && j.Spent == 0 && (j.Waits || !j.DueAt.After(r.At))
	}
	out = store.Resent{Delivery: r.Delivery, AlreadyQueued: true}
	for _, j := range jobs {
		if j.State == store.Leased {
			return store.Resent{}, store.ErrRunning
		}
		out.Jobs = append(out.Jobs, j.ID)
		out.AlreadyQueued = out.AlreadyQueued && waits(j)
	}
	for _, j := range jobs {
		if !waits(j) {
			m.requeue(j, r.At)
			j.Resend, j.passthrough, j.revived = true, r.Passthrough, false
		}
	}
	return out, nil
}

func (m *model) resendAsNew(r store.Resend) (out store.Resent, err error) {
	jobs, err := m.resendable(r.Delivery, r.Destination)
	if err != nil {
		return out, err
	}
	old := m.deliveries[r.Delivery]
	base := old.EventID
	if first := m.deliveries[old.CopyOf]; first != nil {
		base = first.EventID
	}
	expires := r.At.Add(7 * day)
	if c := m.keys[modelKey{old.Source, base}]; c != nil && c.expires.After(expires) {
		expires = c.expires
	}
	id := ""
	for n := 2; id == "" || m.keys[modelKey{old.Source, id}] != nil; n++ {
		id = copyID(base, n)
	}
	d := &modelDelivery{Delivery: store.Delivery{DeliveryHead: old.DeliveryHead, CopyOf: old.ID}, digest: old.digest, body: old.body}
	d.ID, d.EventID, d.ReceivedAt = m.next.delivery, id, r.At
	m.next.delivery++
	m.deliveries[d.ID] = d
	m.keys[modelKey{d.Source, id}] = &modelClaim{d.ID, expires}
	out.Delivery = d.ID
	for _, j := range jobs {
		n := m.addJob(d, store.NewJob{Destination: j.Destination, Key: r.NewKeys(id, j.Destination), State: store.Queued, Order: j.Order, Strict: j.Strict}, r.At)
		n.Resend, n.passthrough = true, r.Passthrough
		out.Jobs = append(out.Jobs, n.ID)
	}
	return out, nil
}

func (m *model) cancel(id int64, destination string, at time.Time) (n int, err error) {
	d := m.deliveries[id]
	switch {
	case d == nil:
		return 0, store.ErrNotFound
	case len(d.chosen(destination)) == 0 && len(d.jobs) == 0:
		return 0, store.ErrState // quarantined, or without a job
	case len(d.chosen(destination)) == 0:
		return 0, store.ErrNotFound
	}
	for _, j := range d.chosen(destination) {
		if j.State == store.Queued || j.State == store.Dead {
			n++
			j.State, j.SettledAt, j.LeaseToken = store.Cancelled, at, 0
			m.line(j, at)
		}
	}
	if n == 0 {
		err = store.ErrState
	}
	return n, err
}

func (m *model) release(id int64, e store.Event, at time.Time) (out store.Outcome, err error) {
	d := m.deliveries[id]
	switch {
	case d == nil:
		return out, store.ErrNotFound
	case d.Quarantine == "":
		return out, store.ErrState
	}
	d.Quarantine, d.EventID, d.Type, d.Part = "", e.ID, e.Type, e.Part
	d.Resource, d.Version, d.Unit = e.Resource, e.Version, e.Unit
	out = store.Outcome{Kind: store.Accepted, Delivery: id}
	k := modelKey{d.Source, e.ID}
	if c := m.keys[k]; m.claimed(c, e, at) {
		e.Digest = d.digest
		out = store.Outcome{Kind: store.Duplicate, Delivery: c.delivery, Revived: m.repeat(c.delivery, e, at)}
		d.DuplicateOf = c.delivery
	} else {
		m.keys[k] = &modelClaim{id, at.Add(e.Window)}
	}
	for _, n := range e.Jobs {
		if out.Kind == store.Duplicate {
			n.State = store.Cancelled
		}
		m.supersede(d, m.addJob(d, n, at), at)
	}
	return out, nil
}

func (m *model) shift(now time.Time, by time.Duration) {
	near := func(t time.Time) bool { return t.Sub(now).Abs() <= store.Timeline }
	for _, j := range m.jobs() {
		if j.turn() && (j.State == store.Queued && near(j.DueAt) || j.State == store.Leased && near(j.until)) {
			j.TurnAt = j.TurnAt.Add(by)
		}
		switch {
		case j.Waits:
			if near(j.since) {
				j.since = j.since.Add(by)
			}
		case j.State == store.Queued && near(j.DueAt):
			j.DueAt, j.since = j.DueAt.Add(by), j.since.Add(by)
		case j.State == store.Leased && near(j.until):
			j.until, j.since = j.until.Add(by), j.since.Add(by)
		}
	}
}

// purge removes what may go by age and returns how many deliveries and keys that were.
func (m *model) purge(r store.PurgeRule) (deliveries, keys int) {
	expired := func(c *modelClaim) bool { return !r.KeepKeys && !c.expires.After(r.Now) }
	for _, id := range m.ids() {
		d := m.deliveries[id]
		if d.ReceivedAt.After(r.Now.Add(-r.Age)) && !d.ReceivedAt.After(r.Now) {
			break
		}
		if d.goes(r) {
			deliveries++
			delete(m.deliveries, id)
			for _, j := range d.jobs {
				delete(m.byID, j.ID)
				j.State = 0
				m.line(j, r.Now)
			}
		}
	}
	for k, c := range m.keys {
		if m.deliveries[c.delivery] == nil && expired(c) {
			keys++
			delete(m.keys, k)
		}
	}
	return deliveries, keys
}

func (d *modelDelivery) goes(r store.PurgeRule) bool {
	old := func(t time.Time, age time.Duration) bool { return !t.After(r.Now.Add(-age)) }
	if !old(d.ReceivedAt, r.Age) || d.Quarantine != "" && !old(d.ReceivedAt, r.DeadAge) {
		return false
	}
	dead := slices.ContainsFunc(d.jobs, func(j *modelJob) bool { return j.State == store.Dead })
	for _, j := range d.jobs {
		switch {
		case j.State == store.Queued || j.State == store.Leased:
			return false
		case j.State == store.Dead && !old(j.SettledAt, r.DeadAge), !dead && !old(j.SettledAt, r.Age):
			return false
		}
	}
	return true
}

// state is the worst of the delivery's jobs.
func (d *modelDelivery) state() store.DeliveryState {
	if d.Quarantine != "" {
		return store.StateQuarantined
	}
	if len(d.jobs) == 0 && d.DuplicateOf != 0 {
		return store.StateCancelled
	}
	if len(d.jobs) == 0 {
		return store.StateFiltered
	}
	order := []store.JobState{store.Dead, store.Leased, store.Queued, store.Cancelled, store.Superseded, store.Filtered, store.Delivered}
	names := []store.DeliveryState{store.StateDead, store.StateLeased, store.StateQueued, store.StateCancelled, store.StateSuperseded, store.StateFiltered, store.StateDelivered}
	worst := len(order) - 1
	for _, j := range d.jobs {
		worst = min(worst, slices.Index(order, j.State))
	}
	return names[worst]
}

// matches tells whether a filter lists the delivery.
func (d *modelDelivery) matches(f store.DeliveryFilter) bool {
	asks := f.Destination != "" || f.Resent || f.Failing || f.Answer != ""
	return (f.Source == "" || d.Source == f.Source) && (f.Type == "" || d.Type == f.Type) &&
		(f.State == "" || d.state() == f.State) && (!f.Duplicates || d.Duplicates > 0) &&
		(f.Query == "" || d.EventID == f.Query) &&
		(f.Since.IsZero() || !d.ReceivedAt.Before(f.Since)) && (f.Until.IsZero() || d.ReceivedAt.Before(f.Until)) &&
		(!asks || slices.ContainsFunc(d.jobs, func(j *modelJob) bool {
			return (f.Destination == "" || j.Destination == f.Destination) && (!f.Resent || j.Resend) &&
				(!f.Failing || j.State == store.Queued && j.Spent > 0) &&
				(f.Answer == "" || strings.HasSuffix(f.Answer, "xx") && j.LastStatus/100 == int(f.Answer[0]-'0') || j.LastClass == f.Answer)
		}))
}

func (m *model) totals() (t store.Totals) {
	t = store.Totals{Deliveries: m.next.delivery - 1}
	for _, d := range m.deliveries {
		if d.Quarantine != "" {
			t.Quarantined++
		}
		for _, j := range d.jobs {
			switch j.State {
			case store.Queued:
				if t.Queued++; !j.Waits && (t.OldestDue.IsZero() || j.DueAt.Before(t.OldestDue)) {
					t.OldestDue = j.DueAt
				}
			case store.Leased:
				t.Leased++
			case store.Dead:
				t.Dead++
			}
		}
	}
	return t
}
