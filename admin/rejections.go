package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"acuse/access"
	"acuse/provider"
	"acuse/store"
)

type rejectionRow struct {
	ID     int64
	At     time.Time
	First  time.Time
	Source string
	From   string
	Reason string
	Count  int
	Status int
	Size   int64
	Signed bool
}

type rejectionsView struct {
	Rows    []rejectionRow
	Source  string
	Sources []string
	Older   string
	First   string // address of the first page, when this is another
	Count   string
	Recheck string // address of the form; empty: not for this person
	Clock   string // several sources show the same gap
}

// why puts a refusal into words. Nothing is claimed that was not shown: what the doctor
// found, else the reason alone.
func (l *locale) why(r *store.Rejection, s Source) string {
	d := provider.ParseDetail(r.Detail)
	text, clock := l.cause(r, s, d), false
	if text == "" {
		text, clock = l.reason(r, s, d), strings.HasPrefix(r.Reason, "timestamp_")
	}
	switch n, err := strconv.ParseInt(d["agree"], 10, 64); {
	case err == nil && n > 1:
		return text + " " + l.N("why.agree", n)
	case clock:
		return text + " " + l.T("why.check_clock")
	}
	return text
}

// cause is what the doctor showed; empty: nothing, or no more than the reason says.
func (l *locale) cause(r *store.Rejection, s Source, d map[string]string) string {
	shown := func(name string) string { return visible(d[name], false) }
	switch provider.Cause(d["cause"]) {
	case provider.OtherSecret:
		text := l.T("why.other_secret")
		if d["skew"] != "" {
			text = l.T("why.other_secret_late")
		}
		return text + " " + l.T("why.secret_of", shown("source"))
	case provider.TestSecret:
		if d["how"] == "live" {
			return l.T("why.live_secret", shown("source"))
		}
		return l.T("why.test_secret", shown("source"))
	case provider.SecretText:
		return l.T("why.secret_text") + l.how(d["how"])
	case provider.BodyChanged:
		return l.T("why.body_changed") + l.how(d["how"])
	case provider.OtherURL:
		if d["how"] == "rewritten" {
			return l.T("why.rewritten", shown("url"))
		}
		return l.T("why.other_url", shown("url"))
	case provider.OtherProvider:
		names := strings.ReplaceAll(shown("provider"), ",", ", ")
		if d["shown"] == "headers" {
			return l.T("why.other_provider_headers", names)
		}
		return l.T("why.other_provider", names)
	case provider.HeaderMissing:
		header, is := strings.CutPrefix(d["missing"], "header:")
		if is && d["present"] != "" {
			return l.T("why.header_lost", visible(header, false), strings.ReplaceAll(shown("present"), ",", ", "))
		}
	}
	return ""
}

// how says which way a secret or a body differs, after a space; empty: no words for it.
func (l *locale) how(word string) string {
	if _, ok := l.words["why.how."+word]; !ok {
		return ""
	}
	return " " + l.T("why.how."+word)
}

// reason is the machine word in words.
func (l *locale) reason(r *store.Rejection, s Source, d map[string]string) string {
	switch r.Reason {
	case "timestamp_expired", "timestamp_future":
		skew, err := time.ParseDuration(d["skew"])
		if err != nil {
			return l.T("why." + r.Reason)
		}
		allowed := s.Tolerance
		if t, err := time.ParseDuration(d["allowed"]); err == nil {
			allowed = t
		}
		if allowed <= 0 {
			return l.T("why."+r.Reason+"_by", l.span(skew.Abs().Round(time.Second)))
		}
		return l.T("why."+r.Reason+"_of", l.span(skew.Abs().Round(time.Second)), l.span(allowed))
	case "too_large", "body_too_large":
		if s.MaxBody > 0 && r.Size > 0 {
			return l.T("why.too_large_of", l.size(int64(r.Size)), l.size(s.MaxBody))
		}
		return l.T("why.too_large")
	case "missing_header", "malformed_header":
		if header, ok := strings.CutPrefix(d["at"], "header:"); ok {
			return l.T("why."+r.Reason+"_named", visible(header, false))
		}
	}
	if _, ok := l.words["why."+r.Reason]; ok {
		return l.T("why." + r.Reason)
	}
	return l.T("why.other", visible(r.Reason, false))
}

func (a *Admin) rejectionRow(l *locale, r *store.Rejection) rejectionRow {
	s := a.sourceOf(&store.Delivery{DeliveryHead: store.DeliveryHead{Source: r.Source}})
	return rejectionRow{ID: r.ID, At: r.At, First: r.FirstAt, Source: visible(r.Source, false), From: visible(r.Remote, false),
		Reason: l.why(r, s), Count: r.Count, Status: r.Status, Size: int64(r.Size), Signed: r.Signed}
}

func (a *Admin) rejections(w http.ResponseWriter, r *http.Request) error {
	l, q := a.localeOf(r), r.URL.Query()
	before, _ := readID(q.Get("before"))
	v := rejectionsView{Source: q.Get("source")}
	list, err := a.opt.Rejections.RejectionList(r.Context(), v.Source, before, pageSize)
	if err != nil {
		return err
	}
	for i := range list {
		v.Rows = append(v.Rows, a.rejectionRow(l, &list[i]))
	}
	v.Clock = l.clock(list, a.opt.Now())
	v.Recheck = a.recheckAt(r, v.Source)
	for _, s := range a.opt.Sources() {
		v.Sources = append(v.Sources, s.Name)
	}
	base := "/rejections?"
	if v.Source != "" {
		base += "source=" + url.QueryEscape(v.Source) + "&"
	}
	if len(list) == pageSize {
		v.Older = base + "before=" + strconv.FormatInt(list[len(list)-1].ID, 10)
	}
	if before != 0 {
		v.First = strings.TrimRight(base, "?&")
	}
	v.Count = l.count(len(list), v.Older != "" || before != 0)
	return a.show(w, r, http.StatusOK, "rejections", frame{Title: l.T("nav.rejections"), Nav: "/rejections", Help: "help.rejections", Body: v})
}

// clock is a hint for the whole page, where sources agreed on a gap within the last hour.
func (l *locale) clock(list []store.Rejection, now time.Time) string {
	for i := range list {
		d := provider.ParseDetail(list[i].Detail)
		n, err := strconv.ParseInt(d["agree"], 10, 64)
		skew, err2 := time.ParseDuration(d["skew"])
		if err != nil || err2 != nil || n < 2 || now.Sub(list[i].At) > time.Hour {
			continue
		}
		if skew < 0 {
			return l.N("rejections.clock_behind", n, l.span(-skew))
		}
		return l.N("rejections.clock_ahead", n, l.span(skew))
	}
	return ""
}

// recheckAt is where a person may check what is kept of a source again.
func (a *Admin) recheckAt(r *http.Request, source string) string {
	if a.opt.Recheck == nil || !visitOf(r.Context()).grant.May(access.Resend) {
		return ""
	}
	return "/rejections/recheck?source=" + url.QueryEscape(source)
}

type rejectionView struct {
	R       rejectionRow
	Code    string
	Detail  string
	Method  string
	Target  string
	Headers []headerLine
	Body    *bodyView
	NoBody  bool
	Recheck string
}

func (a *Admin) rejection(w http.ResponseWriter, r *http.Request) error {
	l := a.localeOf(r)
	id, ok := readID(r.PathValue("id"))
	if !ok {
		return store.ErrNotFound
	}
	rej, err := a.opt.Rejections.RejectionByID(r.Context(), id)
	if err != nil {
		return err
	}
	m := maskOf(a.sourceOf(&store.Delivery{DeliveryHead: store.DeliveryHead{Source: rej.Source}}))
	h, err := store.DecodeHeader(rej.Header)
	if err != nil {
		return err
	}
	v := rejectionView{R: a.rejectionRow(l, &rej), Code: visible(rej.Reason, false), Detail: visible(rej.Detail, false), Method: visible(rej.Method, false),
		Target: visible(m.target(rej.Target), false), Headers: headerLines(m.headersOf(h)), NoBody: rej.Body == nil, Recheck: a.recheckAt(r, rej.Source)}
	if rej.Body != nil && visitOf(r.Context()).grant.May(access.Body) {
		body := l.viewBody(rej.Body, r.URL.Query().Get("body"))
		for _, form := range []string{"tree", "raw", "hex"} {
			body.Forms = append(body.Forms, viewLink{Label: l.T("body." + form), Href: "/rejections/" + strconv.FormatInt(id, 10) + "?body=" + form + "#event", Current: body.Form == form})
		}
		v.Body = &body
	}
	title := l.T("rejection.title", strconv.FormatInt(id, 10))
	return a.show(w, r, http.StatusOK, "rejection", frame{Title: title, Nav: "/rejections", Help: "help.rejections", Body: v})
}

// sortedNames are the keys of a map in order.
func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
