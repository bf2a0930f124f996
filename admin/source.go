package admin

import (
	"cmp"
	"html/template"
	"net/http"
	"strings"
	"time"

	"acuse/access"
	"acuse/provider"
	"acuse/store"
)

// sourcePage is one source: how to connect it, what its provider is like, a test.
type sourcePage struct {
	sourceView
	Steps   []template.HTML
	Facts   []sourceFact
	Weak    []string // what the provider's contract leaves open; empty: nothing known
	Docs    []string
	Types   []option
	MayTest bool
	Capture *captureView // nil: nothing to capture
	Run     *testView    // the test that the address names
}

// testView is a test event with its steps in words.
type testView struct {
	Type   string
	Steps  []stepView
	Done   bool
	Failed string
}

type stepView struct {
	Word, Text, Took string
	OK               bool
}

func (l *locale) testView(r *testRun) *testView {
	if r == nil {
		return nil
	}
	v := &testView{Type: r.Type, Done: r.Done}
	for _, s := range r.Steps {
		v.Steps = append(v.Steps, stepView{l.known("test.step.", s.Step), visible(l.says(s.Says), false), l.span(time.Duration(s.Ms) * time.Millisecond), s.OK})
	}
	if r.Failed != nil {
		v.Failed = visible(l.testError(r.Failed), false)
	}
	return v
}

// sourceFact is one line of what is known; Why explains it.
type sourceFact struct {
	Label, Value, Why string
	Mono              bool
}

func (a *Admin) source(w http.ResponseWriter, r *http.Request) error {
	l := a.localeOf(r)
	v, err := a.sourcePage(r, l)
	if err != nil {
		return err
	}
	return a.show(w, r, http.StatusOK, "source", frame{Title: v.Name, Nav: "/sources", Help: "help.source", Body: v})
}

func (a *Admin) sourcePage(r *http.Request, l *locale) (*sourcePage, error) {
	list, err := a.sourceViews(r.Context(), l)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Name == r.PathValue("name") {
			v := &sourcePage{sourceView: s, Run: l.testView(a.tests.get(s.Name, r.URL.Query().Get("test")))}
			v.about(l)
			v.MayTest = a.opt.Test != nil && visitOf(r.Context()).grant.May(access.Admin) && len(v.Types) > 0
			v.Capture, err = a.captureOf(r, &v.Source)
			return v, err
		}
	}
	return nil, store.ErrNotFound
}

func (v *sourcePage) about(l *locale) {
	if v.Source.Window > 0 {
		v.Facts = append(v.Facts, sourceFact{Label: l.T("fact.window"), Value: v.sourceView.Window, Why: l.known("window.", string(v.WindowWhy))})
	}
	about := v.About
	if about == nil {
		return
	}
	f := &about.Facts
	if c := about.Connect; c != nil {
		steps := c.EN
		if l.code == "es" {
			steps = c.ES
		}
		for _, s := range steps {
			v.Steps = append(v.Steps, stepHTML(s, v.sourceView.Address))
		}
	}
	signs := sourceFact{Label: l.T("fact.signs"), Value: strings.Join(f.Schemes, ", "), Why: strings.Join(f.Places, ", ")}
	if f.Tolerance > 0 {
		signs.Value += ", " + l.T("fact.tolerance", l.span(f.Tolerance))
	}
	id := sourceFact{Label: l.T("fact.id"), Value: strings.Join(f.ID, ", "), Mono: true}
	if len(f.ID) == 0 {
		id = sourceFact{Label: l.T("fact.id"), Value: l.T("fact.no_id")}
	}
	proof := sourceFact{Label: l.T("fact.proof"), Value: l.known("confidence.", cmp.Or(f.Confidence, "own"))}
	if f.Vectors > 0 {
		proof.Value, proof.Why = l.N("fact.vectors", int64(f.Vectors)), proof.Value
	}
	v.Facts = append([]sourceFact{signs, id, {Label: l.T("fact.retries"), Value: l.retries(f)}}, append(v.Facts, proof)...)
	for _, w := range f.Weaknesses {
		v.Weak = append(v.Weak, l.known("weak.", string(w)))
	}
	for _, d := range about.Docs {
		if d = webLink(d); d != "" { // a user's own file may hold anything
			v.Docs = append(v.Docs, d)
		}
	}
	for _, t := range about.Types {
		v.Types = append(v.Types, option{t, t, v.Run != nil && v.Run.Type == t})
	}
}

// known is the text of a word of a small set, or nothing where there is none.
func (l *locale) known(prefix, word string) string {
	if _, ok := l.words[prefix+word]; !ok {
		return ""
	}
	return l.T(prefix + word)
}

func (l *locale) retries(f *provider.Facts) string {
	if f.Attempts == 1 {
		return l.T("fact.no_retry")
	}
	var parts []string
	if f.Horizon > 0 {
		parts = append(parts, l.span(f.Horizon))
	}
	if f.Attempts > 0 {
		parts = append(parts, l.N("fact.attempts", f.Attempts))
	}
	if f.Resend > 0 {
		parts = append(parts, l.T("fact.resend", l.span(f.Resend)))
	}
	if len(parts) == 0 {
		return l.T("fact.unknown")
	}
	return strings.Join(parts, ", ")
}

// stepHTML writes a step: {address} becomes the source's, what stands in backticks code.
func stepHTML(step, address string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(step, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + strings.ReplaceAll(part, "{address}", template.HTMLEscapeString(address)) + "</code>"
		} else {
			part = strings.ReplaceAll(part, "{address}", "<code>"+template.HTMLEscapeString(address)+"</code>")
		}
		b.WriteString(part)
	}
	return template.HTML(b.String()) // every part is escaped
}
