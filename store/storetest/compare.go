package storetest

import (
	"slices"
	"time"

	"acuse/store"
)

// look compares one delivery, and when the lanes have work next.
func (p *pair) look() {
	p.delivery(p.someone())
	destination := p.word(modelDestinations)
	at, ok, err := p.s.NextDue(Background, destination)
	p.must(err)
	want, until := time.Time{}, time.Time{}
	for _, j := range p.m.jobs() {
		if j.State == store.Queued && !j.Waits && j.Destination == destination && (want.IsZero() || j.DueAt.Before(want)) {
			want = j.DueAt
		}
		if j.State == store.Leased && (until.IsZero() || j.until.Before(until)) {
			until = j.until
		}
	}
	p.equal("next due", []any{at, ok}, []any{want, !want.IsZero()})
	at, ok, err = p.s.NextDeadline(Background)
	p.must(err)
	p.equal("next deadline", []any{at, ok}, []any{until, !until.IsZero()})
	p.orders()
}

// orders compares who holds up others, and where one job stands.
func (p *pair) orders() {
	since := p.now.Add(-time.Duration(p.number("since", 20)) * time.Minute)
	heads, err := p.s.Heads(Background, since, 1000)
	p.must(err)
	p.equal("heads", heads, p.m.heads(since))
	d := p.m.deliveries[p.someone()]
	if d == nil {
		return
	}
	for _, j := range d.jobs {
		got, err := p.s.Line(Background, j.ID)
		want, ok := p.m.place(j)
		if !ok {
			p.agree("line of a job in none", err, store.ErrNotFound)
			continue
		}
		p.must(err)
		p.equal("line", got, want)
	}
}

// delivery compares one whole: its row, jobs, attempts and payload.
func (p *pair) delivery(id int64) {
	got, err := p.s.Delivery(Background, id)
	want := p.m.deliveries[id]
	if want == nil {
		p.agree("a delivery that is not there", err, store.ErrNotFound)
		return
	}
	p.must(err)
	p.row(got, want)
	attempts, err := p.s.Attempts(Background, id)
	p.must(err)
	var tries []store.Attempt
	for _, j := range want.jobs {
		for _, a := range j.tries {
			tries = append(tries, *a)
		}
	}
	slices.SortFunc(tries, func(a, b store.Attempt) int { return int(a.ID - b.ID) })
	for i := range attempts {
		attempts[i].Header, attempts[i].Body = nil, nil
	}
	p.equal("attempts", attempts, tries)
	body, err := p.s.Payload(Background, id)
	p.must(err)
	p.equal("body", string(body.Body), want.body)
}

// row compares a delivery with its jobs, as lists and the single view show it.
func (p *pair) row(got store.Delivery, want *modelDelivery) {
	type shown struct {
		id, duplicateOf, copyOf         int64
		source, event, kind, quarantine string
		state                           store.DeliveryState
		received, repeated              time.Time
		duplicates, differ, part        int
	}
	show := func(d store.Delivery, state store.DeliveryState) shown {
		return shown{d.ID, d.DuplicateOf, d.CopyOf, d.Source, d.EventID, d.Type, d.Quarantine, state, d.ReceivedAt, d.LastDuplicateAt, d.Duplicates, d.BodyDiffers, d.Part}
	}
	p.equal("delivery", show(got, got.State), show(want.Delivery, want.state()))
	p.equal("jobs of a delivery", len(got.Jobs), len(want.jobs))
	for i, j := range want.jobs {
		w := j.Job
		if w.State != store.Queued {
			w.DueAt = time.Time{}
		}
		if w.State == store.Leased {
			w.LeaseOwner, w.LeaseUntil = j.owner, j.until
		}
		if want.DuplicateOf != 0 {
			w.Note = got.Jobs[i].Note // says whose duplicate it is
		}
		p.equal("job", got.Jobs[i], w)
	}
}

// list compares a list by one filter, page by page.
func (p *pair) list() {
	f := store.DeliveryFilter{Limit: p.number("limit", 8) + 1}
	states := []store.DeliveryState{store.StateDead, store.StateLeased, store.StateQueued, store.StateCancelled, store.StateSuperseded, store.StateFiltered, store.StateDelivered, store.StateQuarantined}
	switch p.number("filter", 9) {
	case 1, 2:
		f.State = states[p.number("state", len(states)-1)]
	case 3:
		f.Source = p.word(modelSources)
	case 4:
		f.Destination = p.word(modelDestinations)
	case 5:
		f.Duplicates, f.Type = true, p.word([]string{"", "paid"})
	case 6:
		f.Resent = true
	case 7:
		f.Failing = true
	case 8:
		f.Answer = p.word([]string{"2xx", "5xx", "interrupted"})
	case 9:
		f.Query = p.eventID()
	}
	if p.chance(3) {
		f.Since, f.Until = p.now.Add(-day), p.now.Add(-time.Minute)
	}
	if p.chance(3) {
		f.Source = p.word(modelSources)
	}
	p.listed(f)
}

func (p *pair) listed(f store.DeliveryFilter) {
	var want, got []int64
	for _, id := range p.m.ids() {
		if p.m.deliveries[id].matches(f) {
			want = append(want, id)
		}
	}
	slices.Reverse(want)
	for pages := 0; ; pages++ {
		list, next, err := p.s.Deliveries(Background, f)
		p.must(err)
		for _, d := range list {
			p.row(d, p.m.deliveries[d.ID])
			got = append(got, d.ID)
		}
		if next == 0 || pages > 20_000 {
			break
		}
		f.Before = next
	}
	if f.Query != "" { // what an index finds stands on the first page, wherever it lies
		slices.Sort(got)
		slices.Reverse(got)
	}
	p.equal("listed", got, want)
}

// everything compares all there is, and asks the engine's own check.
func (p *pair) everything() {
	p.listed(store.DeliveryFilter{Limit: 500})
	for _, id := range p.m.ids() {
		p.delivery(id)
	}
	problems, err := p.s.Check(Background, true)
	p.must(err)
	p.equal("problems", len(problems), 0)
}
