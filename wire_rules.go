package main

import (
	"maps"
	"slices"

	"acuse/config"
	"acuse/rule"
	"acuse/web"
)

// rules are the compiled rules of a configuration, by the name of their source or
// destination.
type rules struct {
	sources      map[string]*web.Filter
	destinations map[string]web.Destination // Filter, Order and LatestOnly only
}

// compileRules compiles them. All problems are reported at once.
func compileRules(cfg *config.Config) (rules, config.Problems) {
	c := ruleCompiler{cfg: cfg}
	out := rules{map[string]*web.Filter{}, map[string]web.Destination{}}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sources)) {
		out.sources[name] = c.filter("sources."+name+".filter", cfg.Sources[name].Filter)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Destinations)) {
		d, at := cfg.Destinations[name], "destinations."+name
		w := web.Destination{Filter: c.filter(at+".filter", d.Filter), LatestOnly: d.LatestOnly}
		switch d.OrderBy {
		case "":
		case "resource":
			w.Order = &web.Order{Strict: d.Strict}
		default:
			w.Order = &web.Order{By: c.compile(at+".order_by", d.OrderBy), Strict: d.Strict}
		}
		out.destinations[name] = w
	}
	return out, c.problems
}

type ruleCompiler struct {
	cfg      *config.Config
	problems config.Problems
}

func (c *ruleCompiler) filter(at string, f *config.Filter) *web.Filter {
	if f == nil {
		return nil
	}
	return &web.Filter{Rule: c.compile(at, f.When), Park: f.OnError == "park"}
}

func (c *ruleCompiler) compile(at, text string) *rule.Rule {
	r, err := rule.Compile(text, rule.EventNames)
	if err != nil {
		c.problems = append(c.problems, c.cfg.Problem(at, "%v", err))
	}
	return r
}
