package cli

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"acuse/config"
	"acuse/provider"
)

// facts prints what a person wants to know of a provider.
func (a *app) facts(p *provider.Provider) error {
	f := p.Facts()
	if a.json {
		return a.factsJSON(p, &f)
	}
	rows := [][]string{{p.Name, p.TitleIn(a.lang)}, {a.w("facts.signs"), a.known(a.signs(&f))}, {a.w("facts.id"), a.eventID(&f)}}
	if f.Batch {
		rows = append(rows, []string{a.w("facts.batch"), a.w(map[bool]string{true: "facts.whole", false: "facts.split"}[f.Whole])})
	}
	rows = append(rows, []string{a.w("facts.retries"), a.known(a.retries(&f))}, []string{a.w("facts.window"), a.long(f.Window) + ", " + a.w("window."+string(f.WindowWhy))})
	list := func(key string, items []string) {
		for i, item := range items {
			rows = append(rows, []string{map[bool]string{true: a.w(key)}[i == 0], item})
		}
	}
	weak := make([]string, len(f.Weaknesses))
	for i, w := range f.Weaknesses {
		weak[i] = a.w("weak." + string(w))
	}
	if len(weak) == 0 {
		weak = []string{a.w("facts.nothing")}
	}
	list("facts.weak", weak)
	if types := p.Types(); len(types) > 0 {
		list("facts.samples", []string{strings.Join(types, ", ")})
	}
	proof := a.w("confidence." + f.Confidence)
	if f.Vectors > 0 {
		proof = a.n("vectors", f.Vectors) + ", " + proof
	}
	list("facts.proof", []string{proof})
	list("facts.docs", p.Docs())
	a.columns(rows, nil)
	a.connect(p)
	return nil
}

// connect prints the steps at the provider.
func (a *app) connect(p *provider.Provider) {
	c := p.Connect()
	if c == nil {
		return
	}
	steps := c.EN
	if a.lang == "es" {
		steps = c.ES
	}
	address := a.addressFor(p.Name)
	a.say("")
	a.say("%s", a.w("facts.connect"))
	for i, step := range steps {
		a.say("%2d. %s", i+1, strings.ReplaceAll(step, "{address}", address))
	}
}

// addressFor is our address for a provider as far as the configuration says: that of the
// first source of it, else of one that would be named like it.
func (a *app) addressFor(name string) string {
	c, _, err := config.Load(a.configFile, a.environ())
	if err != nil {
		return a.w("facts.address")
	}
	source := name
	for _, s := range slices.Sorted(maps.Keys(c.Sources)) {
		if c.Sources[s].Provider == name {
			source = s
			break
		}
	}
	return cmp.Or(c.SourceURL(source), a.w("facts.address"))
}

func (a *app) known(s string) string {
	if s == "" {
		return a.w("facts.unknown")
	}
	return s
}

func (a *app) signs(f *provider.Facts) string {
	var schemes, places []string
	for _, s := range f.Schemes {
		if word, ok := a.words["scheme."+s]; ok {
			s = word
		}
		schemes = append(schemes, s)
	}
	for _, p := range f.Places {
		places = append(places, a.place(p))
	}
	signs := strings.Join(schemes, ", ")
	if len(places) > 0 {
		signs += " (" + strings.Join(places, ", ") + ")"
	}
	if f.Tolerance > 0 {
		signs += ", " + a.f("facts.tolerance", a.long(f.Tolerance))
	}
	return signs
}

func (a *app) eventID(f *provider.Facts) string {
	if len(f.ID) == 0 {
		return a.w("facts.no_id")
	}
	ids := make([]string, len(f.ID))
	for i, id := range f.ID {
		ids[i] = a.template(id)
	}
	return strings.Join(ids, "; "+a.w("facts.else")+" ")
}

// template says in words what a template of one value names; others stand as they are.
func (a *app) template(t string) string {
	inside, ok := strings.CutPrefix(t, "{")
	inside, closed := strings.CutSuffix(inside, "}")
	switch {
	case !ok || !closed || strings.ContainsAny(inside, "{}"):
		return t
	case inside == "body|sha256":
		return a.w("place.digest")
	case strings.Contains(inside, "|"):
		return t
	}
	return a.place(inside)
}

// place says in words where a value stands: "header:X-Token", "json:data.id".
func (a *app) place(at string) string {
	source, name, ok := strings.Cut(at, ":")
	if _, known := a.words["place."+source]; known && ok && !strings.Contains(name, "|") {
		return a.f("place."+source, name)
	}
	return at
}

func (a *app) retries(f *provider.Facts) string {
	var parts []string
	if f.Attempts == 1 {
		return a.w("facts.no_retry")
	}
	if f.Horizon > 0 {
		parts = append(parts, a.long(f.Horizon))
	}
	if f.Attempts > 0 {
		parts = append(parts, a.n("attempts", int(f.Attempts)))
	}
	if f.Resend > 0 {
		parts = append(parts, a.f("facts.resend", a.long(f.Resend)))
	}
	return strings.Join(parts, ", ")
}

func (a *app) factsJSON(p *provider.Provider, f *provider.Facts) error {
	seconds := func(d time.Duration) int64 { return int64(d / time.Second) }
	out := map[string]any{"name": p.Name, "title": p.Title, "schemes": f.Schemes, "places": f.Places, "id": f.ID,
		"tolerance_seconds": seconds(f.Tolerance), "attempts": f.Attempts, "horizon_seconds": seconds(f.Horizon), "resend_seconds": seconds(f.Resend),
		"dedup_window_seconds": seconds(f.Window), "dedup_window_reason": f.WindowWhy, "weaknesses": append([]provider.Weakness{}, f.Weaknesses...),
		"confidence": f.Confidence, "vectors": f.Vectors, "samples": append([]string{}, p.Types()...), "docs": p.Docs()}
	if c := p.Connect(); c != nil {
		out["connect"] = map[string][]string{"en": c.EN, "es": c.ES}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return err
	}
	a.line(b)
	return nil
}

// long is a duration in the unit that suits it.
func (a *app) long(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day && d%day == 0:
		return a.n("days", int(d/day))
	case d >= 3*day:
		return a.number(d.Hours()/24, 1) + " " + a.w("days.part")
	case d >= time.Hour && d%time.Hour == 0:
		return a.number(d.Hours(), 0) + " h"
	case d >= time.Hour:
		return a.number(d.Hours(), 1) + " h"
	}
	return a.span(d)
}
