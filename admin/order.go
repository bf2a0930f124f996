package admin

import (
	"context"
	"errors"
	"strconv"
	"time"

	"acuse/store"
)

// orderView is where a job stands in its order.
type orderView struct {
	Value string
	Moved bool
	Where string // in words; empty: through
	Head  int64  // delivery that has the turn, when it is another one; 0 is none
	Does  string // what that one does
}

// lineOf tells where a job stands; ok is false when it is in no order, or through.
func (a *Admin) lineOf(ctx context.Context, j *store.Job) (line store.Line, ok bool, err error) {
	if j.Order == "" || a.opt.Orders == nil || !j.Waits && j.TurnAt.IsZero() {
		return line, false, nil
	}
	line, err = a.opt.Orders.Line(ctx, j.ID)
	if errors.Is(err, store.ErrNotFound) { // it was through meanwhile
		return line, false, nil
	}
	return line, err == nil, err
}

func (a *Admin) orderView(ctx context.Context, l *locale, j *store.Job, now time.Time) (*orderView, error) {
	if j.Order == "" {
		return nil, nil
	}
	v := &orderView{Value: visible(j.Order, false), Moved: j.Moved}
	line, ok, err := a.lineOf(ctx, j)
	if err != nil || !ok {
		return v, err
	}
	since := l.at(line.Head.Since, now, "15:04:05")
	switch {
	case line.Ahead == 0 && j.State == store.Dead:
		v.Where = l.N("order.blocks", int64(line.Head.Behind))
	case line.Ahead == 0:
		v.Where = l.T("order.turn", since)
	case line.Ahead >= store.MaxAhead:
		v.Where, v.Head = l.T("order.many", l.num(store.MaxAhead)), line.Head.Delivery
	default:
		v.Where, v.Head = l.N("order.ahead", int64(line.Ahead)), line.Head.Delivery
	}
	if v.Head == 0 {
		return v, nil
	}
	word := "order.held"
	if line.Head.State == store.Dead {
		word = "order.blocked"
	}
	v.Does = l.T(word, since)
	return v, nil
}

// ruleView is the rule that decided over a job.
type ruleView struct {
	Rule string
	Why  string
}

// ruleView reads a job's note; nil when it has none.
func (l *locale) ruleView(j *store.Job) *ruleView {
	if j.Note == "" {
		return nil
	}
	n := store.ParseNote(j.Note)
	v := &ruleView{Rule: visible(n.Rule, false)}
	switch {
	case n.Failed != "":
		v.Why = l.T("rule.failed", n.Key, n.Line, n.Column, l.T("rule.word."+n.Failed))
	case n.Key == "filter" && n.Source:
		v.Why = l.T("rule.source")
	case n.Key == "filter":
		v.Why = l.T("rule.destination")
	}
	return v
}

// superseded names the delivery that replaced a job: "#10483".
func superseded(j *store.Job) string {
	if j.SupersededBy == 0 {
		return ""
	}
	return "#" + strconv.FormatInt(j.SupersededBy, 10)
}

// heldView is a job that has held up others of its order for a while.
type heldView struct {
	store.Head
	Value, Behind string
}

// What the page of the destinations tells of: as long as the alert waits, a few of each.
const (
	heldUp    = 15 * time.Minute
	heldShown = 5
)

// addHeld adds to each destination the jobs that have held up others the longest.
func (a *Admin) addHeld(ctx context.Context, l *locale, views []destinationView) error {
	if a.opt.Orders == nil {
		return nil
	}
	list, err := a.opt.Orders.Heads(ctx, a.opt.Now().Add(-heldUp), store.MaxAhead)
	if err != nil {
		return err
	}
	for _, h := range list {
		for i := range views {
			if v := &views[i]; v.Name == h.Destination && len(v.Held) < heldShown {
				v.Held = append(v.Held, heldView{h, visible(h.Order, false), l.N("order.behind", int64(h.Behind))})
			}
		}
	}
	return nil
}
