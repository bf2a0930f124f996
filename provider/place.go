package provider

import (
	"fmt"
	"net/http"
	"strings"
)

// place is where a signature or token stands: one header, several headers by a common
// beginning, a query parameter, a form field or a JSON field, with filters if needed.
type place struct {
	*placeholder
	prefix string // of headers: canonical, without the "*"; empty: one header
}

func parsePlace(path, text string) (place, error) {
	ph, err := parsePlaceholder(text, inMessage)
	if err != nil {
		return place{}, at(path, "%q: %v", text, err)
	}
	p := place{placeholder: ph}
	switch ph.src {
	case srcHeader:
		if name, ok := strings.CutSuffix(text, "*"); ok && len(ph.filters) == 0 {
			_, name, _ = strings.Cut(name, ":")
			p.prefix = http.CanonicalHeaderKey(name)
		}
	case srcQuery, srcForm, srcJSON:
	default:
		return place{}, at(path, "%q: a header, query, form or json field is wanted", text)
	}
	return p, nil
}

func parsePlaces(path string, list texts) ([]place, error) {
	if len(list) == 0 {
		return nil, at(path, "missing")
	}
	var out []place
	for i, text := range list {
		sub := path
		if len(list) > 1 {
			sub = fmt.Sprintf("%s[%d]", path, i)
		}
		p, err := parsePlace(sub, text)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// read gives the text at the place. A header that is present several times counts as
// one text joined with ",". The text is good until the input is closed.
func (p place) read(in *input) (string, bool) {
	if p.src != srcHeader || len(p.filters) > 0 {
		start := len(in.kept)
		out, ok := p.append(in.kept, in)
		in.kept = out
		return view(out[start:]), ok
	}
	if p.prefix == "" {
		return joined(in.r.Header[p.arg])
	}
	var all []string
	for name, values := range in.r.Header {
		if strings.HasPrefix(name, p.prefix) {
			all = append(all, values...)
		}
	}
	return joined(all)
}

func joined(values []string) (string, bool) {
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	}
	return strings.Join(values, ","), true
}

// lacks tells whether the place is a header that h certainly does not have.
func (p place) lacks(h http.Header) bool {
	if p.src != srcHeader {
		return false
	}
	if p.prefix == "" {
		return len(h[p.arg]) == 0
	}
	for name := range h {
		if strings.HasPrefix(name, p.prefix) {
			return false
		}
	}
	return true
}

// wants is a list of inputs that must be there, each one of several.
type wants [][]place

func parseWants(path string, list []texts) (wants, error) {
	var out wants
	for i, one := range list {
		ps, err := parsePlaces(fmt.Sprintf("%s[%d]", path, i), one)
		if err != nil {
			return nil, err
		}
		out = append(out, ps)
	}
	return out, nil
}

// missing names the first input that is absent or empty; empty: none.
func (w wants) missing(in *input) string {
next:
	for _, group := range w {
		for _, p := range group {
			if v, ok := p.read(in); ok && v != "" {
				continue next
			}
		}
		return group[0].text
	}
	return ""
}

func (w wants) early(h http.Header) string {
next:
	for _, group := range w {
		for _, p := range group {
			if !p.lacks(h) {
				continue next
			}
		}
		return group[0].text
	}
	return ""
}

func (w wants) each(f func(*placeholder)) {
	for _, group := range w {
		for _, p := range group {
			f(p.placeholder)
		}
	}
}
