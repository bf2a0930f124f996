package cli

import (
	"encoding/json"
	"strings"
	"time"

	"acuse/provider"
)

// facts prints what a person wants to know of a provider.
func (a *app) facts(p *provider.Provider) error {
	f := p.Facts()
	if a.json {
		return a.factsJSON(p, &f)
	}
	rows := [][]string{{p.Name, p.Title}, {a.w("facts.signs"), a.known(a.signs(&f))}, {a.w("facts.id"), a.eventID(&f)},
		{a.w("facts.retries"), a.known(a.retries(&f))}, {a.w("facts.window"), a.long(f.Window) + ", " + a.w("window."+string(f.WindowWhy))}}
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
	a.say("")
	a.say("%s", a.w("facts.connect"))
	for i, step := range steps {
		a.say("%2d. %s", i+1, strings.ReplaceAll(step, "{address}", a.w("facts.address")))
	}
}

func (a *app) known(s string) string {
	if s == "" {
		return a.w("facts.unknown")
	}
	return s
}

func (a *app) signs(f *provider.Facts) string {
	signs := strings.Join(f.Schemes, ", ")
	if len(f.Places) > 0 {
		signs += " (" + strings.Join(f.Places, ", ") + ")"
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
	return strings.Join(f.ID, ", ")
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
	switch {
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return a.n("days", int(d/(24*time.Hour)))
	case d >= time.Hour && d%time.Hour == 0:
		return a.number(d.Hours(), 0) + " h"
	case d >= time.Hour:
		return a.number(d.Hours(), 1) + " h"
	}
	return a.span(d)
}
