package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"acuse/store"
)

// pageSize is the rows of a list's page.
const pageSize = 100

// query is what the address bar says about a list of deliveries.
type query struct {
	filter store.DeliveryFilter
	raw    url.Values // without the keys of paging
	span   string     // 1h, 24h, 7d
	view   string     // ready view that it equals
	bad    string     // name of a field that is not understood
}

var spans = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

var answers = []string{"2xx", "3xx", "4xx", "5xx", "timeout", "refused"}

// readQuery reads a filter; a field that is not understood is named and left out.
func (a *Admin) readQuery(v url.Values) query {
	q := query{raw: url.Values{}}
	f := &q.filter
	f.Limit = pageSize
	for k, vs := range v {
		s := strings.TrimSpace(vs[0])
		if s == "" {
			continue
		}
		ok := true
		switch k {
		case "q":
			f.Query = s
		case "source":
			f.Source = s
		case "type":
			f.Type = s
		case "destination":
			f.Destination = s
		case "state":
			f.State, ok = store.DeliveryState(s), slices.Contains(deliveryStates, store.DeliveryState(s))
		case "answer":
			f.Answer, ok = s, slices.Contains(answers, s)
		case "duplicates":
			f.Duplicates = s == "1"
		case "resent":
			f.Resent = s == "1"
		case "failing":
			f.Failing = s == "1"
		case "span":
			var d time.Duration
			if d, ok = spans[s]; ok {
				q.span = s
				if f.Since.IsZero() {
					f.Since = a.opt.Now().Add(-d)
				}
			}
		case "since":
			f.Since, ok = a.readTime(s)
		case "until":
			f.Until, ok = a.readTime(s)
		case "before":
			f.Before, _ = readID(s)
			continue
		case "after":
			f.After, _ = readID(s)
			continue
		default:
			continue
		}
		if !ok {
			q.bad = k
			if k == "state" {
				f.State = ""
			}
			if k == "answer" {
				f.Answer = ""
			}
			continue
		}
		q.raw.Set(k, s)
	}
	q.view = viewOf(q.raw)
	return q
}

// readTime takes RFC 3339 or what a datetime-local field sends, in the pages' zone.
func (a *Admin) readTime(s string) (time.Time, bool) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UTC(), true
	}
	for _, form := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.ParseInLocation(form, s, a.opt.Zone); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

func readID(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n > 0
}

// views are the ready ones, each a filter.
var views = []struct{ Name, Query string }{
	{"all", ""}, {"failing", "failing=1"}, {"dead", "state=dead"}, {"waiting", "state=queued"}, {"resent", "resent=1"},
}

func viewOf(v url.Values) string {
	enc := v.Encode()
	for _, w := range views {
		if w.Query == enc {
			return w.Name
		}
	}
	return ""
}

// row is a delivery in a list.
type row struct {
	ID         int64
	Chip       chip
	Received   time.Time
	Source     string
	Type       string
	EventID    string
	Attempts   string
	Next       time.Time // zero: none waits
	Overdue    bool      // Next has come
	Answer     string
	Bad        bool // the last answer was a failure
	Duplicates int
	DupAt      time.Time
	DupFresh   bool // within 24 h
	Test       bool
}

func (a *Admin) row(l *locale, d *store.Delivery, budgets map[string]int, now time.Time) row {
	r := row{ID: d.ID, Chip: l.deliveryChip(d, now), Received: d.ReceivedAt, Source: d.Source, Type: visible(d.Type, false),
		EventID: visible(d.EventID, false), Duplicates: d.Duplicates, DupAt: d.LastDuplicateAt, Test: d.Test}
	r.DupFresh = d.Duplicates > 0 && now.Sub(d.LastDuplicateAt) < 24*time.Hour
	r.Next = nextAttempt(d.Jobs)
	r.Overdue = !r.Next.IsZero() && !r.Next.After(now)
	worst := worstJob(d.Jobs)
	if worst == nil {
		return r
	}
	r.Attempts = l.budget(worst.Spent, budgets[worst.Destination])
	if worst.Attempts == 0 {
		r.Attempts = "–"
	}
	r.Answer = l.answer(worst.LastStatus, worst.LastClass, time.Duration(worst.LastMicros)*time.Microsecond)
	r.Bad = worst.LastClass != "" || worst.LastStatus >= 300
	return r
}

var badness = map[store.JobState]int{store.Dead: 7, store.Leased: 6, store.Queued: 5, store.Cancelled: 4, store.Superseded: 3, store.Filtered: 2, store.Delivered: 1}

// worstJob is the one whose state the delivery shows.
func worstJob(jobs []store.Job) *store.Job {
	var worst *store.Job
	for i := range jobs {
		if worst == nil || badness[jobs[i].State] > badness[worst.State] {
			worst = &jobs[i]
		}
	}
	return worst
}

func (a *Admin) budgets() map[string]int {
	m := map[string]int{}
	for _, d := range a.opt.Destinations() {
		m[d.Name] = d.Budget
	}
	return m
}

type deliveriesView struct {
	Rows         []row
	Count        string
	Views        []viewLink
	Form         filterForm
	Older, Newer string // addresses; empty: none
	Filtered     bool
	Active       int // filters in use
	Bad          string
	Back         string // of the pages opened from here
	Select       bool
	Error        bool
	AnySource    bool
}

type viewLink struct {
	Label, Href string
	Current     bool
}

type filterForm struct {
	Q, Source, Type, State, Destination, Answer, Span, Since, Until string
	Duplicates, Resent, Failing                                     bool
	Sources, Destinations                                           []string
	States                                                          []option
	Answers                                                         []option
	Spans                                                           []option
}

type option struct {
	Value, Label string
	Selected     bool
}

func (a *Admin) deliveries(w http.ResponseWriter, r *http.Request) error {
	l, q := a.localeOf(r), a.readQuery(r.URL.Query())
	v := deliveriesView{Bad: q.bad, Active: len(q.raw), Filtered: len(q.raw) > 0}
	v.Form = a.filterForm(l, q)
	v.Views = a.viewLinks(l, q)
	v.Back = "/deliveries"
	if enc := r.URL.RawQuery; enc != "" {
		v.Back += "?" + enc
	}
	list, next, err := a.list(r.Context(), q.filter)
	if err != nil {
		if r.Context().Err() != nil || errors.Is(err, store.ErrClosed) {
			return err
		}
		a.opt.Log.Error("list deliveries", "err", err)
		v.Error = true // the list says so in its place; the page stands
	}
	if err == nil && len(list) == 0 && next == 0 && q.filter.After != 0 {
		a.redirect(w, r, "/deliveries?"+q.raw.Encode()) // nothing is newer: the first page
		return nil
	}
	now, budgets := a.opt.Now(), a.budgets()
	for i := range list {
		v.Rows = append(v.Rows, a.row(l, &list[i], budgets, now))
	}
	v.Older, v.Newer = pager("/deliveries", q, list, next)
	v.Count = l.count(len(list), next != 0 || q.filter.Before != 0 || q.filter.After != 0)
	v.Select = visitOf(r.Context()).grant.May("resend") && len(list) > 0
	return a.show(w, r, http.StatusOK, "deliveries", frame{Title: l.T("nav.deliveries"), Nav: "/deliveries", Help: "help.deliveries",
		Live: q.filter.Before == 0 && q.filter.After == 0, Body: v})
}

// count is the number of rows shown; more says that there are others.
func (l *locale) count(n int, more bool) string {
	if more {
		return l.N("list.more", int64(n))
	}
	return l.N("list.count", int64(n))
}

// listFor is how long a page looks for rows that few match before it shows what it
// has and offers to go on.
const listFor = 300 * time.Millisecond

// list fills a page: the archive bounds how far one call looks, so with a filter that
// few match several calls make one page.
func (a *Admin) list(ctx context.Context, f store.DeliveryFilter) (list []store.Delivery, next int64, err error) {
	limit, start := f.Limit, time.Now()
	for {
		some, next, err := a.opt.Archive.Deliveries(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		if f.After != 0 {
			list = append(some, list...)
			f.After = next
		} else {
			list = append(list, some...)
			f.Before = next
		}
		f.Limit = limit - len(list)
		if next == 0 || f.Limit <= 0 || time.Since(start) > listFor {
			return list, next, nil
		}
	}
}

// pager makes the addresses of the pages beside this one.
func pager(path string, q query, list []store.Delivery, next int64) (older, newer string) {
	to := func(key string, id int64) string {
		v := url.Values{}
		for k, vs := range q.raw {
			v[k] = vs
		}
		v.Set(key, strconv.FormatInt(id, 10))
		return path + "?" + v.Encode()
	}
	upward := q.filter.After != 0
	switch {
	case upward && len(list) > 0:
		older = to("before", list[len(list)-1].ID)
	case !upward && next != 0:
		older = to("before", next)
	}
	switch {
	case upward && next != 0:
		newer = to("after", next)
	case !upward && q.filter.Before != 0 && len(list) > 0:
		newer = to("after", list[0].ID)
	}
	return older, newer
}

func (a *Admin) viewLinks(l *locale, q query) []viewLink {
	out := make([]viewLink, 0, len(views))
	for _, v := range views {
		href := "/deliveries"
		if v.Query != "" {
			href += "?" + v.Query
		}
		out = append(out, viewLink{Label: l.T("view." + v.Name), Href: href, Current: q.view == v.Name})
	}
	return out
}

func (a *Admin) filterForm(l *locale, q query) filterForm {
	f := q.filter
	form := filterForm{Q: f.Query, Source: f.Source, Type: f.Type, State: string(f.State), Destination: f.Destination,
		Answer: f.Answer, Span: q.span, Duplicates: f.Duplicates, Resent: f.Resent, Failing: f.Failing,
		Since: a.localTime(q.raw.Get("since")), Until: a.localTime(q.raw.Get("until"))}
	for _, s := range a.opt.Sources() {
		form.Sources = append(form.Sources, s.Name)
	}
	for _, d := range a.opt.Destinations() {
		form.Destinations = append(form.Destinations, d.Name)
	}
	for _, s := range deliveryStates {
		form.States = append(form.States, option{string(s), l.T("state." + string(s)), s == f.State})
	}
	for _, s := range answers {
		form.Answers = append(form.Answers, option{s, l.T("answer." + s), s == f.Answer})
	}
	for _, s := range []string{"1h", "24h", "7d"} {
		form.Spans = append(form.Spans, option{s, l.T("span." + s), s == q.span})
	}
	return form
}

// localTime is an instant in the form of a datetime-local field.
func (a *Admin) localTime(s string) string {
	t, ok := a.readTime(s)
	if !ok {
		return ""
	}
	return t.In(a.opt.Zone).Format("2006-01-02T15:04")
}
