package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"acuse/store"
)

// The rules.
const (
	Dead       = "dead"       // by destination: dead letters wait for a person
	Quarantine = "quarantine" // deliveries without identity wait for a person
	Storage    = "storage"    // nothing can be written: the edge answers 503
	Disk       = "disk"       // by percent: the volume is filled to it
	Clock      = "clock"      // the wall clock lies before what is stored already
	Backup     = "backup"     // a planned backup was not made
	Order      = "order"      // by destination: a job has held up others of its order for a while
	Removed    = "removed"    // by destination: jobs wait for a name that is not configured
)

const (
	reminder = 24 * time.Hour
	// calm is how long a matter must be over before its end is told.
	calm = time.Minute
	// again is how soon after its end a matter may be told anew; one that comes and
	// goes within it is not.
	again = 10 * time.Minute
	// A failed sending is tried again after firstRetry, doubling up to lastRetry.
	firstRetry, lastRetry = 30 * time.Second, time.Hour
)

// heldUp is how long a job may hold up others of its order before a person is told; heads
// is how many such jobs are counted.
const (
	heldUp = 15 * time.Minute
	heads  = 1000
)

// key is what a notice is known by.
type key struct{ rule, subject string }

// finding is a matter as the store shows it now.
type finding struct {
	count  int64
	status int
	class  string
	reason store.DeadReason
	since  time.Time // zero: not known
}

// matter is a notice and what memory adds to it.
type matter struct {
	store.Notice
	finding finding
	written bool      // the stored notice is this one
	tries   int       // failed sendings of the message that is due
	notYet  time.Time // no sending before
	quiet   bool      // back within again of its end: told only once notYet has passed
}

// load reads what was told before.
func (a *Alerter) load(ctx context.Context) bool {
	list, err := a.opt.Notices.NoticeList(ctx, a.opt.Now())
	if err != nil {
		a.opt.Log.Error("alerts: read notices", "err", err)
		return false
	}
	for _, n := range list {
		a.matters[key{n.Rule, n.Subject}] = &matter{Notice: n, written: true}
	}
	return true
}

// round compares what is with what was told, and tells the difference.
func (a *Alerter) round(ctx context.Context) {
	now := a.opt.Now()
	found, looked := a.look(ctx)
	for k, f := range found {
		a.open(k, f, now)
	}
	for k, m := range a.matters {
		if _, still := found[k]; !still && looked[k.rule] && m.Ended.IsZero() {
			m.Ended, m.tries, m.written = now, 0, false
			if m.SentAt.IsZero() && m.quiet {
				m.SentEnd = true // it came and went before it was time to tell
			}
		}
	}
	a.calmDisk(found, now)
	a.write(ctx)
	for _, k := range a.order() {
		a.tell(ctx, a.matters[k], now)
	}
	a.write(ctx)
	for k, m := range a.matters {
		if m.SentEnd && m.written && now.Sub(m.Ended) > again {
			delete(a.matters, k)
		}
	}
}

// look reads the present state; looked names the rules that could be judged.
func (a *Alerter) look(ctx context.Context) (found map[key]finding, looked map[string]bool) {
	found, looked = map[key]finding{}, map[string]bool{Storage: true}
	if !a.opt.Health().Writable {
		found[key{Storage, ""}] = finding{count: 1}
	}
	if looked[Disk] = a.opt.Disk != nil; looked[Disk] {
		for _, subject := range filled(a.opt.Disk()) {
			found[key{Disk, subject}] = finding{count: 1}
		}
	}
	if looked[Clock] = a.opt.ClockSet != nil; looked[Clock] && !a.opt.ClockSet() {
		found[key{Clock, ""}] = finding{count: 1}
	}
	if looked[Backup] = a.opt.BackupLate != nil; looked[Backup] {
		if since, ok := a.opt.BackupLate(ctx); ok {
			found[key{Backup, ""}] = finding{count: 1, since: since}
		}
	}
	groups, err := a.opt.Archive.DeadGroups(ctx)
	if looked[Dead] = err == nil; err != nil {
		a.opt.Log.Error("alerts: count dead letters", "err", err)
	}
	// The largest group names the cause; the earliest death of all is the start.
	slices.SortStableFunc(groups, func(x, y store.DeadGroup) int { return cmp.Compare(y.Jobs, x.Jobs) })
	for _, g := range groups {
		k := key{Dead, g.Destination}
		f, ok := found[k]
		if !ok {
			f = finding{status: g.Status, class: g.Class, reason: g.Reason, since: g.First}
		}
		if g.First.Before(f.since) {
			f.since = g.First
		}
		f.count += g.Jobs
		found[k] = f
	}
	a.lookAtOrders(ctx, found, looked)
	totals, err := a.opt.Archive.Totals(ctx)
	if err != nil {
		a.opt.Log.Error("alerts: count", "err", err)
		return found, looked
	}
	looked[Quarantine] = true
	if totals.Quarantined > 0 {
		found[key{Quarantine, ""}] = finding{count: totals.Quarantined}
	}
	if a.opt.Destinations != nil {
		looked[Removed] = true
		names := a.opt.Destinations()
		for name, lane := range totals.ByDestination {
			if n := lane.Queued + lane.Leased; n > 0 && !slices.Contains(names, name) {
				found[key{Removed, name}] = finding{count: n}
			}
		}
	}
	return found, looked
}

// lookAtOrders finds the destinations where a job has had its turn for too long.
func (a *Alerter) lookAtOrders(ctx context.Context, found map[key]finding, looked map[string]bool) {
	if a.opt.Orders == nil {
		return
	}
	list, err := a.opt.Orders.Heads(ctx, a.opt.Now().Add(-heldUp), heads)
	if looked[Order] = err == nil; err != nil {
		a.opt.Log.Error("alerts: look at orders", "err", err)
	}
	for _, h := range list { // longest first
		k := key{Order, h.Destination}
		f, ok := found[k]
		if !ok {
			f.since = h.Since
		}
		f.count++
		found[k] = f
	}
}

// open notes that the matter k is there at the instant now.
func (a *Alerter) open(k key, f finding, now time.Time) {
	m := a.matters[k]
	switch {
	case m == nil || m.SentEnd:
		ended := m
		since := f.since
		if since.IsZero() || since.After(now) {
			since = now
		}
		m = &matter{Notice: store.Notice{Rule: k.rule, Subject: k.subject, Since: since}}
		if ended != nil && now.Sub(ended.Ended) < again {
			m.notYet, m.quiet = ended.Ended.Add(again), true
		}
		a.matters[k] = m
	case !m.Ended.IsZero():
		m.Ended, m.written = time.Time{}, false // back before its end was told
	}
	m.finding = f
	if text := a.text(m); m.Count != f.count || m.Text != text {
		m.Count, m.Text, m.written = f.count, text, false
	}
}

// tell sends the message that is due, if any.
func (a *Alerter) tell(ctx context.Context, m *matter, now time.Time) {
	over := !m.Ended.IsZero()
	switch {
	case m.SentEnd || now.Before(m.notYet):
		return
	case over && now.Sub(m.Ended) < calm:
		return
	case !over && !m.SentAt.IsZero() && now.Sub(m.SentAt) < reminder:
		return
	}
	if len(a.channels) > 0 {
		if err := a.send(ctx, a.message(m, now)); err != nil {
			m.Error, m.written = err.Error(), false
			m.notYet = now.Add(min(firstRetry<<min(m.tries, 20), lastRetry))
			m.tries++
			return
		}
	}
	if over {
		m.SentEnd = true
	} else {
		m.SentAt = now
	}
	m.Error, m.tries, m.notYet, m.quiet, m.written = "", 0, time.Time{}, false, false
}

// send gives text to every channel. A person is told when one of them took it.
func (a *Alerter) send(ctx context.Context, text string) error {
	var failures []error
	for _, c := range a.channels {
		err := c.send(ctx, text)
		outcome := "sent"
		if err != nil {
			outcome = "failed"
			failures = append(failures, err)
			a.opt.Log.Error("alerts: send", "err", err)
		}
		a.opt.Metrics.GetOrCreateCounter(fmt.Sprintf("acuse_alerts_total{channel=%q,outcome=%q}", c.name, outcome)).Inc()
	}
	if len(failures) < len(a.channels) {
		return nil
	}
	return errors.Join(failures...)
}

// write stores the notices that changed. While the storage fails they stay in
// memory: its failure has to be told all the same.
func (a *Alerter) write(ctx context.Context) {
	for _, m := range a.matters {
		if m.written {
			continue
		}
		if err := a.opt.Notices.PutNotice(ctx, m.Notice); err != nil {
			a.opt.Log.Error("alerts: write notice", "rule", m.Rule, "subject", m.Subject, "err", err)
			return
		}
		m.written = true
	}
}

// order is the matters by rule and subject.
func (a *Alerter) order() []key {
	keys := make([]key, 0, len(a.matters))
	for k := range a.matters {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y key) int {
		return slices.Compare([]string{x.rule, x.subject}, []string{y.rule, y.subject})
	})
	return keys
}
