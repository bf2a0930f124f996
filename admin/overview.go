package admin

import (
	"net/http"
	"time"

	"acuse/store"
)

// card is one thing that needs a person, with its one action.
type card struct {
	Role, Icon  string
	Title, Text string
	Href, Do    string
}

type firstStep struct {
	Text, Detail, Href string
	Done               bool
}

type overviewView struct {
	Role         string
	Icon         string
	Sentence     string
	Sub          string
	Cards        []card
	Rows         []row
	Steps        []firstStep
	Empty        bool
	Sources      []sourceView
	Destinations []destinationView
}

// todayLimit bounds how many of today's deliveries are looked at for the sentence.
const todayLimit = 500

func (a *Admin) overview(w http.ResponseWriter, r *http.Request) error {
	ctx, l, now := r.Context(), a.localeOf(r), a.opt.Now()
	t, err := a.opt.Archive.Totals(ctx)
	if err != nil {
		return err
	}
	v := overviewView{Empty: t.Deliveries == 0}
	if v.Sources, err = a.sourceViews(ctx, l); err != nil {
		return err
	}
	v.Destinations = a.destinationViews(l, t)
	if v.Cards, err = a.cards(r, l, t, v); err != nil {
		return err
	}
	if v.Empty {
		v.Steps = a.firstSteps(l)
	}
	list, _, err := a.opt.Archive.Deliveries(ctx, store.DeliveryFilter{Limit: 10})
	if err != nil {
		return err
	}
	budgets := a.budgets()
	for i := range list {
		v.Rows = append(v.Rows, a.row(l, &list[i], budgets, now))
	}
	if err := a.sentence(r, l, t, &v); err != nil {
		return err
	}
	return a.show(w, r, http.StatusOK, "overview", frame{Title: l.T("nav.overview"), Nav: "/", Help: "help.overview", Live: true, Body: v})
}

// sentence says in words how it stands, the worst thing first.
func (a *Admin) sentence(r *http.Request, l *locale, t store.Totals, v *overviewView) error {
	h := a.opt.Health()
	switch {
	case !h.Writable:
		v.Role, v.Icon, v.Sentence = "bad", "alert", l.T("over.down")
		return nil
	case t.Dead > 0:
		v.Role, v.Icon, v.Sentence = "bad", "x-octagon", l.N("over.dead", t.Dead)
	case t.Quarantined > 0:
		v.Role, v.Icon, v.Sentence = "wait", "shield-alert", l.N("over.quarantined", t.Quarantined)
	case v.Empty:
		v.Role, v.Icon, v.Sentence = "info", "inbox", l.T("over.empty")
		return nil
	}
	local := a.opt.Now().In(a.opt.Zone)
	midnight := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, a.opt.Zone)
	today, next, err := a.opt.Archive.Deliveries(r.Context(), store.DeliveryFilter{Since: midnight.UTC(), Limit: todayLimit})
	if err != nil {
		return err
	}
	n, open := int64(len(today)), int64(0)
	for i := range today {
		if s := today[i].State; s == store.StateQueued || s == store.StateLeased {
			open++
		}
	}
	count := l.N("over.today", n)
	if next != 0 {
		count = l.T("over.today_more", todayLimit)
	}
	switch {
	case v.Sentence != "":
		v.Sub = count
	case t.Queued+t.Leased > 0:
		v.Role, v.Icon, v.Sentence, v.Sub = "info", "list", l.N("over.waiting", t.Queued+t.Leased), count
	case n == 0:
		v.Role, v.Icon, v.Sentence = "ok", "check", l.T("over.quiet")
	default:
		v.Role, v.Icon, v.Sentence = "ok", "check", l.T("over.well", count)
	}
	return nil
}

// cards are what needs a person: each says what, and the one thing to do.
func (a *Admin) cards(r *http.Request, l *locale, t store.Totals, v overviewView) ([]card, error) {
	var out []card
	h := a.opt.Health()
	if !h.Writable {
		out = append(out, card{"bad", "alert", l.T("card.storage"), l.T("err.503.why"), "/settings/storage", l.T("card.storage_do")})
	}
	if t.Dead > 0 {
		out = append(out, card{"bad", "x-octagon", l.N("card.dead", t.Dead), l.T("card.dead_text"), "/dead", l.T("card.dead_do")})
	}
	if t.Quarantined > 0 {
		out = append(out, card{"wait", "shield-alert", l.N("card.quarantined", t.Quarantined), l.T("card.quarantined_text"), "/deliveries?state=quarantined", l.T("card.quarantined_do")})
	}
	for _, d := range v.Destinations {
		if d.Gone {
			out = append(out, card{"bad", "alert", l.T("card.gone", d.Name), l.N("card.gone_text", d.Lane.Queued+d.Lane.Leased+d.Lane.Dead), "/destinations", l.T("card.gone_do")})
		}
	}
	for _, s := range v.Sources {
		if s.Unsigned {
			out = append(out, card{"wait", "shield-alert", l.T("card.unsigned", s.Name), l.T("card.unsigned_text"), "/sources", l.T("card.unsigned_do")})
		}
	}
	if a.opt.Notices == nil {
		return out, nil
	}
	list, err := a.opt.Notices.NoticeList(r.Context(), a.opt.Now())
	if err != nil {
		return nil, err
	}
	for _, n := range list {
		if n.Error != "" && n.Ended.IsZero() {
			out = append(out, card{"bad", "alert", l.T("card.alert"), visible(n.Error, false), "/settings/about", l.T("card.alert_do")})
			break
		}
	}
	return out, nil
}

// firstSteps are the way to the first delivery, with ticks.
func (a *Admin) firstSteps(l *locale) []firstStep {
	src, dst := a.opt.Sources(), a.opt.Destinations()
	address := ""
	if len(src) > 0 {
		address = maskURL(src[0].Address)
	}
	steps := []firstStep{
		{Text: l.T("step.account"), Done: true},
		{Text: l.T("step.source"), Detail: l.T("step.source_how"), Done: len(src) > 0, Href: "/sources"},
		{Text: l.T("step.destination"), Detail: l.T("step.destination_how"), Done: len(dst) > 0, Href: "/destinations"},
		{Text: l.T("step.paste"), Detail: address, Href: "/sources"},
		{Text: l.T("step.test"), Detail: "acuse test NAME"},
	}
	if len(src) > 0 {
		steps[4].Detail = "acuse test " + src[0].Name
	}
	return steps
}
