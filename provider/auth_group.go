package provider

import (
	"fmt"
	"net/http"
)

// groupPlan is kind any or all.
type groupPlan struct {
	all bool
	of  []plan
}

func parseGroup(path string, f *authFile) (plan, error) {
	if len(f.Of) == 0 {
		return nil, at(join(path, "of"), "kind %s needs at least one auth", f.Kind)
	}
	g := groupPlan{all: f.Kind == "all"}
	for i := range f.Of {
		sub := fmt.Sprintf("%s[%d]", join(path, "of"), i)
		if f.Of[i].Kind == "none" {
			return nil, at(sub, "kind none inside %s would let everything in", f.Kind)
		}
		if f.Of[i].Kind == "callback" && f.Kind == "any" {
			return nil, at(sub, "kind callback inside any: without an API key it would let everything in")
		}
		p, err := parseAuth(sub, &f.Of[i])
		if err != nil {
			return nil, err
		}
		g.of = append(g.of, p)
	}
	return g, nil
}

func (g groupPlan) each(f func(*placeholder)) {
	for _, p := range g.of {
		p.each(f)
	}
}

func (g groupPlan) bind(b *binding) (check, error) {
	var of []check
	for _, p := range g.of {
		if !g.all && len(g.of) > 1 && !usable(p, b.settings) {
			continue // the source is set up for another alternative
		}
		c, err := p.bind(b)
		if err != nil {
			return nil, err
		}
		of = append(of, c)
	}
	if g.all {
		return allOf(of), nil
	}
	return anyOf(of), nil
}

// anyOf passes when one of its checks does. Its refusal is that of the check that got
// furthest.
type anyOf []check

func (a anyOf) verify(in *input) verdict {
	best := verdict{refusal: &Refusal{Reason: MissingHeader}}
	rank := -1
	for _, c := range a {
		v := c.verify(in)
		if v.refusal == nil {
			return v
		}
		if r := progress(v.refusal.Reason); r > rank {
			best, rank = v, r
		}
	}
	return best
}

// progress orders reasons by how far a request got.
func progress(r Reason) int {
	switch r {
	case MissingHeader:
		return 0
	case MalformedHeader, MalformedBody:
		return 1
	case KeyUntrusted:
		return 3
	case ClaimMismatch:
		return 4
	case TimestampExpired, TimestampFuture:
		return 5
	case unjudged: // the one that could not be asked might have passed
		return 6
	}
	return 2
}

func (a anyOf) early(h http.Header) *Refusal {
	var last *Refusal
	for _, c := range a {
		if last = c.early(h); last == nil {
			return nil
		}
	}
	return last
}

func (a anyOf) present(in *input) bool {
	for _, c := range a {
		if c.present(in) {
			return true
		}
	}
	return false
}

func (a anyOf) marks(f func(*placeholder)) {
	for _, c := range a {
		c.marks(f)
	}
}

func (a anyOf) canSign() bool {
	for _, c := range a {
		if c.canSign() {
			return true
		}
	}
	return false
}

// sign signs as the alternatives did whose place the request fills; with none, as the
// first that can.
func (a anyOf) sign(s *signing) error {
	var there []check
	for _, c := range a {
		if c.canSign() && c.present(s.in) {
			there = append(there, c)
		}
	}
	signed, err := false, errCannotSign
	for _, c := range there {
		if e := c.sign(s); e != nil {
			err = e
		} else {
			signed = true
		}
	}
	if signed {
		return nil
	}
	for _, c := range a {
		if c.canSign() {
			if err = c.sign(s); err == nil {
				return nil
			}
		}
	}
	return err
}

// allOf passes when every one of its checks does.
type allOf []check

func (a allOf) verify(in *input) verdict {
	var out verdict
	for i, c := range a {
		v := c.verify(in)
		if v.refusal != nil {
			return v
		}
		if i == 0 {
			out = v
		}
		out.whole = out.whole || v.whole
		out.unproven = out.unproven && v.unproven
		out.slot = max(out.slot, v.slot)
		if out.hidden == nil {
			out.hidden = v.hidden
		}
	}
	return out
}

func (a allOf) early(h http.Header) *Refusal {
	for _, c := range a {
		if r := c.early(h); r != nil {
			return r
		}
	}
	return nil
}

func (a allOf) present(in *input) bool {
	for _, c := range a {
		if !c.present(in) {
			return false
		}
	}
	return true
}

func (a allOf) marks(f func(*placeholder)) { anyOf(a).marks(f) }

func (a allOf) canSign() bool {
	for _, c := range a {
		if !c.canSign() {
			return false
		}
	}
	return true
}

func (a allOf) sign(s *signing) error {
	for _, c := range a {
		if err := c.sign(s); err != nil {
			return err
		}
	}
	return nil
}

// whenPlan makes a check count only when fields of the JSON body have certain values.
type whenPlan struct {
	plan
	fields fields
}

func (w whenPlan) bind(b *binding) (check, error) {
	c, err := w.plan.bind(b)
	return when{c, w.fields}, err
}

type when struct {
	check
	fields fields
}

func (w when) verify(in *input) verdict {
	if !w.fields.hold(in) {
		return refuse(MissingHeader, w.fields.name(), false)
	}
	return w.check.verify(in)
}

func (w when) early(http.Header) *Refusal { return nil } // the body decides

func (w when) present(in *input) bool { return w.fields.hold(in) && w.check.present(in) }
