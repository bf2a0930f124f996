package admin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"acuse/access"
	"acuse/store"
)

// headerLine is one header as shown.
type headerLine struct {
	Name, Value string
	Hidden      bool
}

// attemptView is one try of a job, opened on demand.
type attemptView struct {
	N                       int
	Chip                    chip
	Started                 time.Time
	Took                    string
	Answer, Error, Hint     string
	Maybe, Resend           bool
	Owner                   string
	Connect, TLS, FirstByte string
	Headers                 []headerLine
	Body                    string
	BodySize                int64
	HasBody                 bool
	Output                  bool // Body is what a command printed
	Open                    bool
}

// jobView is one destination of a delivery.
type jobView struct {
	ID          int64
	Destination string
	Kind        string
	Address     string
	Gone        bool // not configured any more
	Chip        chip
	Budget      string
	Key         string
	Reason      string
	Note        string // of a job that no rule stopped
	Rule        *ruleView
	Order       *orderView
	By          int64 // delivery that superseded it
	Due         time.Time
	LeaseUntil  time.Time
	Owner       string
	Error       string
	Hint        string
	Attempts    []attemptView
	Older       int // attempts that are not shown
}

type deliveryView struct {
	D            *store.Delivery
	Chip         chip
	Type         string
	EventID      string
	Resource     string
	Source       Source
	Steps        []step
	Jobs         []jobView
	Body         *bodyView
	BodyGone     bool
	Method       string
	Target       string
	Headers      []headerLine
	Curl         string
	Trail        []trailLine
	Older, Newer string
	Back         string
	Result       *flash
	CanCancel    bool
	CanRelease   bool
	CanResend    bool
	Quarantine   string
	Pending      bool // something may change by itself
}

type trailLine struct {
	At        time.Time
	Who, What string
	Reason    string
}

// attemptsShown bounds the page of a job that was tried for weeks.
const attemptsShown = 50

func (a *Admin) delivery(w http.ResponseWriter, r *http.Request) error {
	ctx, l := r.Context(), a.localeOf(r)
	id, ok := readID(r.PathValue("id"))
	if !ok {
		return store.ErrNotFound
	}
	d, err := a.opt.Archive.Delivery(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		p := problemView{Status: http.StatusNotFound, What: l.T("delivery.missing", strconv.FormatInt(id, 10)), Search: true}
		return a.show(w, r, p.Status, "error", frame{Title: p.What, Nav: "/deliveries", Body: p})
	}
	if err != nil {
		return err
	}
	attempts, err := a.opt.Archive.Attempts(ctx, id)
	if err != nil {
		return err
	}
	trail, err := a.opt.Archive.Trail(ctx, id)
	if err != nil {
		return err
	}
	now := a.opt.Now()
	v := deliveryView{D: &d, Chip: l.deliveryChip(&d, now), Type: visible(d.Type, false), EventID: visible(d.EventID, false),
		Resource: visible(d.Resource, false), Source: a.sourceOf(&d), Quarantine: visible(d.Quarantine, false)}
	if v.Jobs, err = a.jobViews(ctx, l, &d, attempts, now); err != nil {
		return err
	}
	v.Steps = a.steps(l, &d, v.Source, attempts, trail, now)
	v.Trail = l.trail(trail)
	v.Result = l.result(&d, r.URL.Query().Get("resent"), now)
	v.CanCancel = slices.ContainsFunc(d.Jobs, func(j store.Job) bool { return j.State == store.Queued || j.State == store.Dead })
	v.CanRelease = d.State == store.StateQuarantined && a.opt.Release != nil
	v.CanResend = len(d.Jobs) > 0 && d.State != store.StateQuarantined && !d.PayloadGone
	v.Pending = slices.ContainsFunc(d.Jobs, func(j store.Job) bool { return j.State == store.Queued || j.State == store.Leased })
	if err := a.addPayload(r, l, &v); err != nil {
		return err
	}
	if err := a.addNeighbours(r, &v); err != nil {
		return err
	}
	title := "#" + strconv.FormatInt(d.ID, 10)
	if v.Type != "" {
		title += " " + short(d.Type, 60)
	}
	return a.show(w, r, http.StatusOK, "delivery", frame{Title: title, Nav: "/deliveries", Help: "help.delivery", Live: v.Pending, Body: v})
}

// sourceOf is the source as configured, or as much as the row says of one that is
// not configured any more.
func (a *Admin) sourceOf(d *store.Delivery) Source {
	for _, s := range a.opt.Sources() {
		if s.Name == d.Source {
			return s
		}
	}
	return Source{Name: d.Source, Provider: d.Provider}
}

func (a *Admin) addPayload(r *http.Request, l *locale, v *deliveryView) error {
	p, err := a.opt.Archive.Payload(r.Context(), v.D.ID)
	if errors.Is(err, store.ErrPayloadGone) || errors.Is(err, store.ErrNotFound) {
		v.BodyGone = true
		return nil
	}
	if err != nil {
		return err
	}
	m := maskOf(v.Source)
	h, err := store.DecodeHeader(p.Header)
	if err != nil {
		return err
	}
	v.Method, v.Target = visible(p.Method, false), visible(m.target(p.Target), false)
	v.Headers = headerLines(m.headersOf(h))
	if !visitOf(r.Context()).grant.May(access.Body) {
		return nil
	}
	body := l.viewBody(p.Body, r.URL.Query().Get("body"))
	base := r.URL.Query()
	for _, form := range []string{"tree", "raw", "hex"} {
		base.Set("body", form)
		body.Forms = append(body.Forms, viewLink{Label: l.T("body." + form), Href: r.URL.Path[len(a.base):] + "?" + base.Encode() + "#event", Current: body.Form == form})
	}
	v.Body = &body
	v.Curl = curl(p, h, m, v.D, a.destinationURL(v.D))
	return nil
}

func headerLines(h http.Header) []headerLine {
	names := make([]string, 0, len(h))
	for k := range h {
		names = append(names, k)
	}
	slices.Sort(names)
	var out []headerLine
	for _, k := range names {
		for _, val := range h[k] {
			out = append(out, headerLine{Name: visible(k, false), Value: visible(val, false), Hidden: val == hidden})
		}
	}
	return out
}

// addNeighbours links the rows beside this one within the list it was opened from.
func (a *Admin) addNeighbours(r *http.Request, v *deliveryView) error {
	v.Back = "/deliveries"
	values := r.URL.Query()
	if from, err := url.Parse(safePath(values.Get("from"))); err == nil && from.Path == "/deliveries" {
		v.Back = from.RequestURI()
		values = from.Query()
	}
	q := a.readQuery(values)
	older, newer, err := a.opt.Archive.Neighbours(r.Context(), v.D.ID, q.filter)
	if err != nil {
		return err
	}
	v.Older, v.Newer = a.beside(older, v.Back), a.beside(newer, v.Back)
	return nil
}

func (a *Admin) beside(id int64, back string) string {
	if id == 0 {
		return ""
	}
	to := "/deliveries/" + strconv.FormatInt(id, 10)
	if back != "/deliveries" {
		to += "?from=" + url.QueryEscape(back)
	}
	return to
}

func (a *Admin) jobViews(ctx context.Context, l *locale, d *store.Delivery, attempts []store.Attempt, now time.Time) ([]jobView, error) {
	known := map[string]Destination{}
	for _, dst := range a.opt.Destinations() {
		known[dst.Name] = dst
	}
	var out []jobView
	for i := range d.Jobs {
		j := &d.Jobs[i]
		dst, ok := known[j.Destination]
		v := jobView{ID: j.ID, Destination: j.Destination, Kind: dst.Kind, Address: cmp.Or(maskURL(dst.URL), visible(dst.Program, false)), Gone: !ok, Key: visible(j.Key, false),
			Chip: l.chipOf(stateWords[j.State], j.DueAt, now), Budget: l.budget(j.Spent, dst.Budget), Rule: l.ruleView(j), By: j.SupersededBy}
		if j.State == store.Cancelled { // its note says whose duplicate it is
			v.Rule, v.Note = nil, visible(j.Note, false)
		}
		var err error
		if v.Order, err = a.orderView(ctx, l, j, now); err != nil {
			return nil, err
		}
		switch j.State {
		case store.Queued:
			v.Due = j.DueAt
		case store.Leased:
			v.LeaseUntil, v.Owner = j.LeaseUntil, visible(j.LeaseOwner, false)
		case store.Dead:
			v.Reason = l.T("reason." + reasonWords[j.Reason])
		}
		if j.State != store.Delivered {
			v.Hint = l.hint(j.LastStatus, j.LastClass, hostOf(dst.URL))
		}
		addAttempts(l, &v, j, attempts, hostOf(dst.URL), now)
		out = append(out, v)
	}
	return out, nil
}

// hostOf is host and port of an address, for a hint: no user, no password.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

func addAttempts(l *locale, v *jobView, j *store.Job, attempts []store.Attempt, host string, now time.Time) {
	var mine []*store.Attempt
	for i := range attempts {
		if attempts[i].Job == j.ID {
			mine = append(mine, &attempts[i])
		}
	}
	slices.Reverse(mine) // newest first, as every list
	if len(mine) > attemptsShown {
		v.Older, mine = len(mine)-attemptsShown, mine[:attemptsShown]
	}
	for i, at := range mine {
		view := l.attemptView(at, host, i == 0 && at.Outcome == store.Failed, now)
		if v.Kind == "exec" {
			l.asOutput(&view, at)
		}
		v.Attempts = append(v.Attempts, view)
	}
}

var outcomeLooks = map[store.AttemptOutcome]chip{
	store.Running: {Role: "info", Icon: "loader"}, store.Succeeded: {Role: "ok", Icon: "check"},
	store.Failed: {Role: "bad", Icon: "x"}, store.Interrupted: {Role: "wait", Icon: "zap-off"},
}

func (l *locale) attemptView(at *store.Attempt, host string, open bool, now time.Time) attemptView {
	c := outcomeLooks[at.Outcome]
	c.Word = l.T("outcome." + outcomeWords[at.Outcome])
	v := attemptView{N: at.N, Chip: c, Started: at.StartedAt, Resend: at.Resend, Maybe: at.Maybe, Open: open,
		Answer: l.class(at.Status, at.Class), Error: visible(at.Error, false), Owner: visible(at.Owner, false)}
	if at.Worker != "" {
		v.Owner = visible(at.Worker, false)
	}
	if at.Duration > 0 {
		v.Took = l.span(at.Duration)
	}
	if at.Outcome == store.Failed {
		v.Hint = l.hint(at.Status, at.Class, host)
	}
	for _, x := range []struct {
		d  time.Duration
		to *string
	}{{at.Connect, &v.Connect}, {at.TLS, &v.TLS}, {at.FirstByte, &v.FirstByte}} {
		if x.d > 0 {
			*x.to = l.span(x.d)
		}
	}
	if h, err := store.DecodeHeader(at.Header); err == nil {
		v.Headers = headerLines(mask{}.headersOf(h))
	}
	v.HasBody, v.BodySize = len(at.Body) > 0, int64(len(at.Body))
	v.Body = visible(string(at.Body[:min(len(at.Body), 4<<10)]), true)
	return v
}

// asOutput turns the answer of an app into what a command left: its exit code and all
// that is kept of its output, since the end of it tells most.
func (l *locale) asOutput(v *attemptView, at *store.Attempt) {
	v.Output, v.Body = true, visible(string(at.Body), true)
	if at.Outcome == store.Succeeded {
		v.Answer = l.T("class.exit", 0)
	}
}

// result says what became of a resend that this page was opened after: the state of
// the job, so a made-up address shows nothing that is not so.
func (l *locale) result(d *store.Delivery, job string, now time.Time) *flash {
	id, ok := readID(job)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(d.Jobs, func(j store.Job) bool { return j.ID == id })
	if i < 0 {
		return nil
	}
	j := &d.Jobs[i]
	answer := l.answer(j.LastStatus, j.LastClass, time.Duration(j.LastMicros)*time.Microsecond)
	switch {
	case j.State == store.Delivered:
		return &flash{"ok", l.T("resend.delivered", j.Destination, j.Attempts, answer)}
	case j.State == store.Dead:
		return &flash{"bad", l.T("resend.dead", j.Destination, j.Attempts, answer)}
	case j.State == store.Queued && j.Spent > 0:
		return &flash{"wait", l.T("resend.failed", j.Destination, j.Attempts, answer, l.at(j.DueAt, now, "15:04:05"))}
	case j.State == store.Queued, j.State == store.Leased:
		return &flash{"info", l.T("resend.queued", j.Destination)}
	}
	return nil
}

// trail is what people did, in words.
func (l *locale) trail(list []store.AuditEntry) []trailLine {
	out := make([]trailLine, 0, len(list))
	for _, e := range list {
		out = append(out, trailLine{At: e.At, Who: who(l, e.By), What: l.act(e), Reason: visible(e.Reason, false)})
	}
	return out
}

func who(l *locale, by store.Actor) string {
	if by.Name == access.Owner.Name && by.From == "" {
		return l.T("who.socket")
	}
	return visible(by.Name, false)
}

func (l *locale) act(e store.AuditEntry) string {
	if _, ok := l.words["act."+e.Act]; ok {
		return l.T("act."+e.Act, visible(e.Subject, false))
	}
	return visible(e.Act, false)
}

// destinationURL is the address of the delivery's first http destination, masked.
func (a *Admin) destinationURL(d *store.Delivery) string {
	for _, dst := range a.opt.Destinations() {
		for i := range d.Jobs {
			if d.Jobs[i].Destination == dst.Name && dst.URL != "" {
				return maskURL(dst.URL)
			}
		}
	}
	return ""
}
