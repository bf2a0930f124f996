package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// delivery prints one delivery whole.
func (a *app) delivery(d *delivery, budgets map[string]int) {
	head := [][]string{{"#" + strconv.FormatInt(d.ID, 10), a.state(d.State)}}
	add := func(key, value string) {
		if value != "" {
			head = append(head, []string{a.w("show." + key), value})
		}
	}
	add("source", clean(d.Source)+a.provider(d))
	add("event", clean(d.EventID))
	add("type", clean(d.Type))
	add("resource", clean(d.Resource))
	add("received", a.when(&d.ReceivedAt)+", "+a.size(d.Size))
	if d.SecretSlot != nil {
		add("signature", a.f("show.secret", *d.SecretSlot))
	}
	if d.Duplicates > 0 {
		text := a.n("duplicates", d.Duplicates) + ", " + a.f("show.last", a.when(d.LastDup))
		if d.BodyDiffers > 0 {
			text += ", " + a.n("differs", d.BodyDiffers)
		}
		add("repeats", text)
	}
	if d.Quarantine != nil {
		add("quarantine", clean(*d.Quarantine))
	}
	if d.Test {
		add("test", a.w("show.is_test"))
	}
	if d.PayloadGone {
		add("body", a.w("show.gone"))
	}
	a.columns(head, func(r, col int, cell string) string {
		if r == 0 && col == 1 {
			return a.painted(d.State, cell)
		}
		return cell
	})
	for i := range d.Jobs {
		a.job(d, &d.Jobs[i], budgets)
	}
	if len(d.Headers) > 0 {
		a.say("")
		for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
			for _, v := range d.Headers[name] {
				a.say("%s: %s", clean(name), clean(v))
			}
		}
	}
}

func (a *app) provider(d *delivery) string {
	if d.Provider == "" || d.Provider == d.Source {
		return ""
	}
	return " (" + clean(d.Provider) + ")"
}

func (a *app) job(d *delivery, j *job, budgets map[string]int) {
	a.say("")
	line := clean(j.Destination) + "  " + a.painted(j.State, a.state(j.State)) + "  " + a.n("attempts", j.Attempts)
	if most := budgets[j.Destination]; most > 0 && j.Attempts > 0 {
		line = clean(j.Destination) + "  " + a.painted(j.State, a.state(j.State)) + "  " + a.tries(j, budgets)
	}
	if a.waits(j) {
		line += "  " + a.f("next", a.when(j.DueAt))
	}
	a.say("%s", line)
	a.say("  %s  %s", a.w("show.key"), clean(j.IdempotencyKey))
	a.decided(d, j)
	var rows [][]string
	for i := range d.Attempts {
		at := &d.Attempts[i]
		if at.Job != j.ID {
			continue
		}
		result := []string{}
		if at.Status != nil {
			result = append(result, strconv.Itoa(*at.Status))
		}
		if at.Error != nil {
			result = append(result, clean(*at.Error))
		}
		if len(result) == 0 {
			result = append(result, a.outcome(at.Outcome))
		}
		rows = append(rows, []string{"  " + strconv.Itoa(at.N), a.when(at.StartedAt), a.lasted(at.DurationUS), strings.Join(result, ", ")})
	}
	a.columns(rows, nil)
}

// decided says what the rules of the configuration did with a job.
func (a *app) decided(d *delivery, j *job) {
	if j.Rule != nil {
		a.say("  %s  %s", a.w("show.rule"), clean(*j.Rule))
	}
	if j.RuleError != nil {
		a.say("  %s", a.f("show.rule_error", clean(*j.RuleError)))
	}
	if j.SupersededBy != nil {
		a.say("  %s", a.f("show.superseded", *j.SupersededBy))
	}
	if j.Order == nil {
		return
	}
	line := clean(*j.Order)
	if j.Moved {
		line += ", " + a.w("show.moved")
	}
	for _, o := range d.Orders {
		switch {
		case o.Job != j.ID:
		case o.Ahead == 0:
			line += ", " + a.f("show.turn", a.when(&o.Since))
		default:
			line += ", " + a.n("ahead", o.Ahead) + ", " + a.f("show.held", o.Head, a.state(o.State), a.when(&o.Since))
		}
	}
	a.say("  %s  %s", a.w("show.order"), line)
}

func (a *app) outcome(s string) string {
	if w, ok := a.words["outcome."+s]; ok {
		return w
	}
	return clean(s)
}
