package storetest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"acuse/store"
)

// The length and the number of the histories. scripts/model asks for long ones.
var (
	modelSteps = flag.Int("model.steps", 300, "steps of a random history")
	modelSeeds = flag.Int("model.seeds", 5, "random histories")
)

// Model runs random histories against the engine and a model in memory, side by side:
// every answer must be the model's, and so must what is left.
func Model(t *testing.T, open Opener) {
	t.Parallel()
	if err := flag.Set("rapid.checks", fmt.Sprint(*modelSeeds)); err != nil {
		t.Fatal(err)
	}
	if err := flag.Set("rapid.nofailfile", "true"); err != nil { // its seed tells the history
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		p := &pair{T: r, open: open, m: newModel(), now: t0, dir: t.TempDir()}
		p.start()
		defer func() { _ = p.s.Close() }() // said before, if it is not closed by now
		for range *modelSteps {
			p.step()
		}
		p.everything()
	})
}

// pair is an engine and its model.
type pair struct {
	*rapid.T
	open            Opener
	dir             string
	s               store.Store
	m               *model
	now             time.Time
	leased          []store.Lease // the latest ones handed out, lost ones too
	events, crashes int
	steps           int // so far, the one under way too
}

func (p *pair) start() {
	s, err := p.open(p.dir)
	if err != nil {
		p.Fatal(err)
	}
	p.s = s
}

// The words of a history. Few, so that they meet.
var (
	modelSources      = []string{"s", "t"}
	modelDestinations = []string{"app", "crm", "log"}
	modelOwners       = []string{"n1/a/http", "n1/b/http", "pull/x"}
)

// act is one kind of step. The first is the least one: a failing history is cut down to
// it where it can be.
var acts = []struct {
	name   string
	weight int
	do     func(p *pair)
}{
	{"look", 24, (*pair).look}, {"accept", 56, (*pair).accept}, {"lease", 48, (*pair).lease}, {"settle", 56, (*pair).settle}, {"wait", 24, (*pair).wait},
	{"renew", 16, (*pair).renew}, {"expire", 20, (*pair).expire}, {"end", 4, (*pair).end}, {"resend", 16, (*pair).resend}, {"as new", 4, (*pair).asNew},
	{"cancel", 8, (*pair).cancel}, {"release", 12, (*pair).release}, {"list", 16, (*pair).list}, {"purge", 8, (*pair).purge}, {"shift", 4, (*pair).shift},
	{"reopen", 1, (*pair).reopen}, {"crash", 2, (*pair).crash}, {"edge", 4, (*pair).edge},
}

var lots = func() (list []int) {
	for i, a := range acts {
		for range a.weight {
			list = append(list, i)
		}
	}
	return list
}()

func (p *pair) step() {
	act := acts[rapid.SampledFrom(lots).Draw(p.T, "act")]
	p.Logf("%s", act.name)
	p.steps++
	act.do(p)
	p.equal("totals", p.counted(), p.m.totals())
}

func (p *pair) counted() store.Totals {
	t, err := p.s.Totals(Background)
	p.must(err)
	t.ByDestination, t.Newest = nil, time.Time{}
	return t
}

func (p *pair) must(err error) {
	if err != nil {
		p.Fatalf("step %d: %+v", p.steps, err)
	}
}

// equal holds what the engine said against what the model says.
func (p *pair) equal(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		p.Fatalf("step %d: %s:\n got %+v\nwant %+v", p.steps, what, got, want)
	}
}

// agree holds errors against each other.
func (p *pair) agree(what string, got, want error) {
	if !errors.Is(got, want) {
		p.Fatalf("step %d: %s: got %v, want %v", p.steps, what, got, want)
	}
}

func (p *pair) number(what string, most int) int { return rapid.IntRange(0, most).Draw(p.T, what) }
func (p *pair) chance(of int) bool               { return p.number("chance", of-1) == of-1 }
func (p *pair) word(list []string) string        { return rapid.SampledFrom(list).Draw(p.T, "word") }

// someone is a delivery's number: mostly one that is there.
func (p *pair) someone() int64 {
	if ids := p.m.ids(); len(ids) > 0 && !p.chance(20) {
		return ids[len(ids)-1-p.number("delivery", min(len(ids), 12)-1)]
	}
	return int64(p.number("any delivery", int(p.m.next.delivery)))
}

// eventID is one of the latest, or a new one.
func (p *pair) eventID() string {
	if p.events == 0 || !p.chance(4) {
		p.events++
		return fmt.Sprint("evt_", p.events)
	}
	return fmt.Sprint("evt_", p.events-p.number("event", min(p.events, 10)-1))
}

func copyID(base string, n int) string { return fmt.Sprintf("%s~%d", base, n) }

func (p *pair) event(source string) store.Event {
	e := store.Event{ID: p.eventID(), Type: p.word([]string{"paid", "failed"}), Part: -1, Digest: int64(p.number("digest", 1)),
		Window: []time.Duration{time.Hour, time.Minute, 40 * day}[p.number("window", 2)], WithRow: p.chance(2), Revive: p.chance(2),
		Resource: p.word([]string{"", "r1", "r2"}), Version: p.word([]string{"", "1", "2", "3", "10"}), Unit: p.word([]string{"int", "s", "string"})}
	for _, d := range modelDestinations[:p.number("destinations", len(modelDestinations))] {
		j := store.NewJob{Destination: d, Key: source + ":" + e.ID + ":" + d, State: store.Queued}
		if p.chance(12) {
			j.State, j.Note = store.Filtered, "rule"
		} else if p.chance(20) {
			j.State, j.Note = store.Dead, "rule that failed"
		}
		if d != "log" { // some of a lane's jobs have an order, some none
			j.Order, j.Strict = p.word([]string{"", "o1", "o2"}), d == "crm"
		}
		j.Latest = d != "crm" && !p.chance(3)
		e.Jobs = append(e.Jobs, j)
	}
	return e
}

func (p *pair) accept() {
	a := store.Arrival{Source: p.word(modelSources), Provider: "stripe", ReceivedAt: p.now.Add(-time.Duration(p.number("late", 2)) * time.Second),
		Method: "POST", Target: "/in", Header: []byte("{}"), Body: []byte(fmt.Sprintf("body %0*d", 100*p.number("size", 90)+1, p.events))}
	for i := range p.number("items", 3) + 1 {
		e := p.event(a.Source)
		if e.Part = -1; p.chance(15) {
			e.ID, e.Quarantine, e.Jobs = "", "no id", nil
		}
		if i > 0 {
			e.Part = i
		}
		a.Events = append(a.Events, e)
	}
	if p.chance(25) {
		bad := a
		bad.Events = slices.Clone(a.Events)
		bad.Events[len(bad.Events)-1].Jobs = []store.NewJob{{Destination: "app", Key: "k", State: store.Queued}, {Destination: "app", Key: "k", State: store.Queued}}
		if bad.Events[len(bad.Events)-1].Quarantine == "" && !p.repeats(bad) {
			_, err := p.s.Accept(Background, bad)
			p.agree("a request that cannot be kept", err, store.ErrRefused)
		}
	}
	out, err := p.s.Accept(Background, a)
	p.must(err)
	p.equal("outcomes", out, p.m.accept(a))
}

// repeats tells that the last event of a request may be a duplicate, whose jobs nobody
// looks at.
func (p *pair) repeats(a store.Arrival) bool {
	last := a.Events[len(a.Events)-1]
	return p.m.keys[modelKey{a.Source, last.ID}] != nil ||
		slices.ContainsFunc(a.Events[:len(a.Events)-1], func(e store.Event) bool { return e.ID == last.ID })
}

func (p *pair) lease() {
	q := store.LeaseQuery{Destination: p.word(modelDestinations), Owner: p.word(modelOwners), Max: p.number("max", 4) + 1,
		TTL: time.Duration(p.number("ttl", 60)+1) * time.Second, Now: p.now, Budget: 4 * p.number("budget", 1)}
	if p.chance(10) {
		q.MaxAge = time.Hour
	}
	got, err := p.s.Lease(Background, q)
	p.must(err)
	want := p.m.lease(q)
	p.equal("leased", len(got), len(want))
	for i, l := range got {
		d := p.m.deliveries[l.Delivery.ID]
		if d == nil || string(l.Payload.Body) != d.body || l.Delivery.EventID != d.EventID || l.Payload.Part != d.Part {
			p.Fatalf("the lease of job %d brings delivery %+v", l.Job, l.Delivery)
		}
		p.leased = append(p.leased, l)
		l.Delivery, l.Payload, l.Destination = store.DeliveryHead{}, store.Payload{}, ""
		p.equal("lease", l, want[i])
	}
	p.leased = p.leased[max(0, len(p.leased)-20):]
}

// held is one of the latest leases, mostly one that is alive.
func (p *pair) held() (l store.Lease, ok bool) {
	if len(p.leased) == 0 {
		return l, false
	}
	l = p.leased[p.number("lease", len(p.leased)-1)]
	if p.chance(20) {
		l.Token += int64(p.number("token", 2) - 1)
	}
	return l, true
}

func (p *pair) settle() {
	l, ok := p.held()
	if !ok {
		return
	}
	s := outcome(l, []store.JobState{store.Delivered, store.Queued, store.Dead}[p.number("state", 2)], p.now)
	if s.State == store.Queued {
		s.Due = p.now.Add(time.Duration(p.number("due", 100)) * time.Second)
	}
	if s.State == store.Dead {
		s.Reason = store.DeadReason(p.number("reason", 1) + 1)
	}
	p.agree(fmt.Sprintf("settle job %d with token %d", l.Job, l.Token), p.s.Settle(Background, s), p.m.settle(s))
}

func (p *pair) renew() {
	if l, ok := p.held(); ok {
		until := p.now.Add(time.Duration(p.number("until", 100)) * time.Second)
		p.agree("renew", p.s.Renew(Background, l.Job, l.Token, until), p.m.renew(l.Job, l.Token, until))
	}
}

func (p *pair) wait() {
	p.now = p.now.Add([]time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour, day}[p.number("wait", 4)])
	if p.chance(10) {
		p.now = p.now.Add(10 * day)
	}
}

// edge sends a key's event again at the very moment when the key runs out, or a millisecond
// before: chance alone would hardly meet it.
func (p *pair) edge() {
	var near []modelKey
	for k, c := range p.m.keys {
		if left := c.expires.Sub(p.now); left > 0 && left <= time.Hour {
			near = append(near, k)
		}
	}
	if len(near) == 0 {
		return
	}
	slices.SortFunc(near, func(a, b modelKey) int { return strings.Compare(a.source+" "+a.id, b.source+" "+b.id) })
	k := near[p.number("key", len(near)-1)]
	p.now = p.m.keys[k].expires.Add(-time.Duration(p.number("before", 1)) * time.Millisecond)
	e := p.event(k.source)
	e.ID, e.Jobs = k.id, nil
	a := store.Arrival{Source: k.source, Provider: "stripe", ReceivedAt: p.now, Method: "POST", Target: "/in", Header: []byte("{}"), Body: []byte("again"), Events: []store.Event{e}}
	out, err := p.s.Accept(Background, a)
	p.must(err)
	p.equal("outcomes at the edge", out, p.m.accept(a))
}

func (p *pair) expire() {
	got, err := p.s.Expire(Background, p.now)
	p.must(err)
	sum := 0
	for _, n := range got {
		sum += n
	}
	p.equal("expired", sum, p.m.end(func(j *modelJob) bool { return j.until.Before(p.now) }, true, p.now))
}

func (p *pair) end() {
	prefix := p.word([]string{"n1/a", "n1/", "pull/"})
	n, err := p.s.EndLeases(Background, prefix, p.now)
	p.must(err)
	p.equal("ended", n, p.m.end(func(j *modelJob) bool { return strings.HasPrefix(j.owner, prefix) }, false, p.now))
}

func (p *pair) asked() store.Resend {
	return store.Resend{Delivery: p.someone(), Destination: p.word(append([]string{""}, modelDestinations...)), Passthrough: p.chance(3), By: ana, At: p.now,
		NewKeys: func(id, d string) string { return "new:" + id + ":" + d }}
}

func (p *pair) resend() {
	r := p.asked()
	got, err := p.s.Resend(Background, r)
	want, wantErr := p.m.resend(r)
	p.agree("resend", err, wantErr)
	p.equal("resent", got, want)
}

func (p *pair) asNew() {
	r := p.asked()
	r.AsNew = true
	got, err := p.s.Resend(Background, r)
	want, wantErr := p.m.resendAsNew(r)
	p.agree("resend as new", err, wantErr)
	p.equal("resent as new", got, want)
}

func (p *pair) cancel() {
	id, destination := p.someone(), p.word(append([]string{""}, modelDestinations...))
	got, err := p.s.Cancel(Background, id, destination, ana, p.now)
	want, wantErr := p.m.cancel(id, destination, p.now)
	p.agree("cancel", err, wantErr)
	p.equal("cancelled", got, want)
}

func (p *pair) release() {
	id := p.someone()
	for _, other := range p.m.ids() {
		if p.m.deliveries[other].Quarantine != "" && p.chance(2) {
			id = other
			break
		}
	}
	e := p.event("released")
	got, err := p.s.Release(Background, id, e, ana, p.now)
	want, wantErr := p.m.release(id, e, p.now)
	p.agree("release", err, wantErr)
	p.equal("released", got, want)
}

func (p *pair) shift() {
	by := time.Duration(p.number("by", 200)-100) * time.Minute
	p.must(p.s.Shift(Background, p.now, by))
	p.m.shift(p.now, by)
}

func (p *pair) purge() {
	r := store.PurgeRule{Now: p.now, Age: time.Duration(p.number("age", 40)+1) * 12 * time.Hour, KeepKeys: p.chance(4), Work: 20 + p.number("work", 500)}
	r.DeadAge = r.Age + time.Duration(p.number("dead age", 10))*day
	deliveries, keys := 0, 0
	for {
		got, err := p.s.Purge(Background, r)
		p.must(err)
		deliveries, keys, r.After = deliveries+got.Deliveries, keys+got.Keys, got.Next
		if !got.More {
			break
		}
	}
	wantDeliveries, wantKeys := p.m.purge(r)
	p.equal("purged", [2]int{deliveries, keys}, [2]int{wantDeliveries, wantKeys})
}

func (p *pair) reopen() {
	p.must(p.s.Close())
	p.start()
	p.everything()
}

// crash goes on with a copy of the files as they are while the store is open: what a
// killed process leaves behind.
func (p *pair) crash() {
	old := p.dir
	p.crashes++
	p.dir = filepath.Join(filepath.Dir(old), fmt.Sprintf("%s-%d", strings.Split(filepath.Base(old), "-")[0], p.crashes))
	p.must(os.Mkdir(p.dir, 0o700))
	files, err := filepath.Glob(filepath.Join(old, "acuse.*"))
	p.must(err)
	for _, name := range files {
		switch base := filepath.Base(name); base {
		case "acuse.lock", "acuse.db-shm":
		case "acuse.reserve":
			p.must(os.Rename(name, filepath.Join(p.dir, base)))
		default:
			b, err := os.ReadFile(name)
			p.must(err)
			p.must(os.WriteFile(filepath.Join(p.dir, base), b, 0o600))
		}
	}
	p.must(p.s.Close())
	p.must(os.RemoveAll(old))
	p.start()
	p.everything()
}
