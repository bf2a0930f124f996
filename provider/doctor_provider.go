package provider

import (
	"net/http"
	"slices"
	"strings"
)

// maxNamed is how many providers a diagnosis names: several speak the same scheme.
const maxNamed = 6

// otherProvider looks for entries of the catalogue that take the request with the same
// secret; where nothing of this provider is there, for those whose headers it has.
func (d *doctor) otherProvider(refusal *Refusal) Diagnosis {
	if d.others.Catalogue == nil {
		return Diagnosis{}
	}
	mine := namesOf(d.c.plan)
	strange := refusal.Reason == MissingHeader && strings.HasPrefix(refusal.Detail, "header:") && len(there(mine, d.r.Header)) == 0
	var verified, alike []string
	most := 0
	for _, name := range d.others.Catalogue.Names() {
		p, _ := d.others.Catalogue.Get(name)
		if name == d.c.provider.Name || p.auth == nil {
			continue
		}
		c := p.borrow(d.c)
		if c == nil || c.auth.early(d.r.Header) != nil {
			continue
		}
		if d.passes(c, d.r) {
			verified = append(verified, name)
			continue
		}
		if n := len(there(namesOf(p.auth), d.r.Header)); strange && n > 0 && n >= most {
			if n > most {
				most, alike = n, nil
			}
			alike = append(alike, name)
		}
	}
	switch {
	case len(verified) > 0:
		return Diagnosis{Cause: OtherProvider, Providers: verified[:min(len(verified), maxNamed)], Shown: "verified"}
	case len(alike) > 0 && len(alike) <= maxNamed:
		return Diagnosis{Cause: OtherProvider, Providers: alike, Shown: "headers"}
	}
	return Diagnosis{}
}

// borrow is this provider with the settings of a source of another one; nil where it
// cannot be had with these, or proves nothing by a computation.
func (p *Provider) borrow(from *Checker) *Checker {
	s := Settings{Secrets: from.settings.Secrets, MaxBody: from.limit}
	for name, value := range from.settings.Params {
		if slices.Contains(p.Params(), name) {
			if s.Params == nil {
				s.Params = map[string]string{}
			}
			s.Params[name] = value
		}
	}
	c := &Checker{provider: p, settings: s, params: s.Params, limit: from.limit, plan: p.auth, required: p.file.ID.Required, test: p.test}
	if len(s.Secrets) > 0 {
		c.firstSecret = s.Secrets[0]
	}
	var err error
	if c.auth, err = p.auth.bind(newBinding(&s, from.limit)); err != nil || computes(c.auth) == nil {
		return nil
	}
	return c
}

// namesOf are the headers that a provider's proof stands in and that are its own.
func namesOf(p plan) []string {
	var out []string
	p.each(func(ph *placeholder) {
		if ph.src == srcHeader && !common(ph.arg) && !slices.Contains(out, ph.arg) {
			out = append(out, ph.arg)
		}
	})
	return out
}

// there are the names that a request has; one may end in a star.
func there(names []string, h http.Header) (out []string) {
	for _, n := range names {
		stem, starred := strings.CutSuffix(n, "*")
		for name := range h {
			if name == n || starred && len(name) >= len(stem) && strings.EqualFold(name[:len(stem)], stem) {
				out = append(out, n)
				break
			}
		}
	}
	return out
}
