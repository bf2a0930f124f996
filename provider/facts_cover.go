package provider

import (
	"regexp"
	"slices"
	"strings"
)

// namedField finds what a message takes from a body without covering it whole: a JSON value,
// a form field, perhaps a value of the JSON inside that field.
var namedField = regexp.MustCompile(`\{(json|form):[^}|]+(?:\|jsonpath:[^}|]+)?`)

// reads is the text of every template that identity is read by.
func (f *file) reads() string {
	all := slices.Concat(f.ID.Key, f.Type, f.Resource)
	if f.Version != nil {
		all = append(all, f.Version.Key...)
	}
	return strings.Join(all, " ")
}

// uncovered says what of the body the signed messages leave open; of several the weakest
// counts, since a sender takes the one that suits. A message covers a body whole, or a
// form field that holds the event; it covers a part where it names fields that identity
// is read from; fields that nobody reads, such as a nonce beside the event, are none.
func uncovered(messages []string, reads string) (Weakness, bool) {
	worst := Weakness("")
	for _, m := range messages {
		// SNS signs its fields one by one: all that says anything.
		if strings.Contains(m, "{body") || strings.Contains(m, "{json:Message}") {
			continue
		}
		part := false
		whole := false
		for _, at := range namedField.FindAllString(m, -1) {
			packed := strings.HasPrefix(at, "{form:") && !strings.Contains(at, "|jsonpath:")
			whole = whole || packed && strings.Contains(reads, at+"|")
			part = part || strings.Contains(reads, at)
		}
		query := strings.Contains(m, "{query:payload}") // gitea's GET: the event stands in the address
		switch {
		case whole || query:
		case part && worst == "":
			worst = WeakPart
		case !part:
			worst = WeakBody
		}
	}
	return worst, worst != ""
}

// freeID tells whether who holds a signed request can send it under another id: some
// check covers the body, and an id is read, before any that it covers, from a header or
// the query that it does not. Of alternatives a sender takes the one that suits.
func freeID(p plan, ids []*template) bool {
	switch p := p.(type) {
	case whenPlan:
		return freeID(p.plan, ids)
	case groupPlan:
		free := slices.ContainsFunc(p.of, func(one plan) bool { return freeID(one, ids) })
		return free && (!p.all || !slices.ContainsFunc(p.of, func(one plan) bool { return !freeID(one, ids) }))
	case *jwtPlan:
		return p.bodyHash != nil && free(ids, map[string]bool{"body": true}, nil)
	case *signedPlan:
		for _, m := range p.messages {
			covered := map[string]bool{}
			m.each(func(ph *placeholder) { cover(covered, ph) })
			if covered["body"] && free(ids, covered, m.hidden) {
				return true
			}
		}
	}
	return false
}

// free looks at the ids in the order in which they are tried. What is hidden counts as
// absent once the request is judged, so it frees nothing.
func free(ids []*template, covered map[string]bool, h *hidden) bool {
	if h == nil {
		h = new(hidden)
	}
	for _, t := range ids {
		loose, other, gone := false, false, false
		t.each(func(p *placeholder) {
			switch p.src {
			case srcHeader:
				loose = loose || !covered[p.key()]
				gone = gone || h.names[p.key()]
			case srcQuery, srcRawQuery:
				loose = loose || !covered["query"] && !covered[p.key()]
				gone = gone || h.query || h.names[p.key()]
			default:
				other = true
			}
		})
		if gone {
			continue
		}
		if loose || other {
			return loose
		}
	}
	return false
}
