package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"acuse/access"
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
}

// why puts a refusal into words. Which secret signed a request cannot be known, so
// nothing is claimed that was not shown.
func (l *locale) why(r *store.Rejection, s Source) string {
	d := details(r.Detail)
	switch r.Reason {
	case "timestamp_expired", "timestamp_future":
		skew, err := time.ParseDuration(d["skew"])
		if err != nil {
			return l.T("why." + r.Reason)
		}
		allowed := s.Tolerance
		if t, err := time.ParseDuration(d["tolerance"]); err == nil {
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
		if d["header"] != "" {
			return l.T("why."+r.Reason+"_named", visible(d["header"], false))
		}
	case "signature_mismatch":
		if d["cause"] == "other_secret" || d["cause"] == "body_changed" {
			return l.T("why." + d["cause"])
		}
	}
	if _, ok := l.words["why."+r.Reason]; ok {
		return l.T("why." + r.Reason)
	}
	return l.T("why.other", visible(r.Reason, false))
}

// details reads "skew=840s header:Stripe-Signature".
func details(s string) map[string]string {
	m := map[string]string{}
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' || r == ';' }) {
		k, v, ok := strings.Cut(f, "=")
		if !ok {
			k, v, ok = strings.Cut(f, ":")
		}
		if ok {
			m[k] = v
		}
	}
	return m
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

type rejectionView struct {
	R       rejectionRow
	Code    string
	Detail  string
	Method  string
	Target  string
	Headers []headerLine
	Body    *bodyView
	NoBody  bool
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
		Target: visible(m.target(rej.Target), false), Headers: headerLines(m.headersOf(h)), NoBody: rej.Body == nil}
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
