package provider

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// match holds conditions on a request; every one must hold.
type match struct {
	methods []string
	query   []string
	fields  fields
	body    *bool // empty or not
	never   bool  // it has a condition that is not known: counts as not met
}

// fields are values that must be present, absent, or equal.
type fields []field

type field struct {
	*placeholder
	want   string
	any    bool // "*": present
	absent bool // null: must be absent
}

// parseMatch compiles conditions. What is not known is an error, or with warn given a
// match that never holds.
func parseMatch(path string, raw json.RawMessage, warn func(string)) (*match, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return &match{}, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, at(path, "%v", err)
	}
	never := false
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch name {
		case "method", "query", "json", "header", "form", "body_empty":
		default:
			if warn == nil {
				return nil, at(join(path, name), "unknown condition")
			}
			warn(join(path, name) + ": unknown condition, counts as not met")
			never = true
			delete(all, name)
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, at(path, "%v", err)
	}
	var f matchFile
	if err := strict(path, raw, &f); err != nil {
		return nil, err
	}
	m, err := compileMatch(path, &f)
	if m != nil {
		m.never = never
	}
	return m, err
}

func compileMatch(path string, f *matchFile) (*match, error) {
	m := &match{methods: f.Method, query: f.Query, body: f.BodyEmpty}
	for _, src := range []struct {
		name  string
		kind  source
		value map[string]*text
	}{{"json", srcJSON, f.JSON}, {"header", srcHeader, f.Header}} {
		for _, name := range slices.Sorted(maps.Keys(src.value)) {
			fd, err := newField(join(path, src.name), src.name+":"+name, src.value[name])
			if err != nil {
				return nil, err
			}
			m.fields = append(m.fields, fd)
		}
	}
	forms, err := formNames(f.Form)
	if err != nil {
		return nil, at(join(path, "form"), "%v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		fd, err := newField(join(path, "form"), "form:"+name, forms[name])
		if err != nil {
			return nil, err
		}
		m.fields = append(m.fields, fd)
	}
	return m, nil
}

// formNames reads ["name"] (present) or {"name": "value"}.
func formNames(raw json.RawMessage) (map[string]*text, error) {
	out := map[string]*text{}
	if len(raw) == 0 || string(raw) == "null" {
		return out, nil
	}
	if raw[0] != '[' {
		return out, json.Unmarshal(raw, &out)
	}
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil {
		return nil, err
	}
	star := text("*")
	for _, n := range names {
		out[n] = &star
	}
	return out, nil
}

func newField(path, source string, want *text) (field, error) {
	ph, err := parsePlaceholder(source, inIdentity)
	if err != nil {
		return field{}, at(path, "%q: %v", source, err)
	}
	f := field{placeholder: ph, absent: want == nil}
	if want != nil {
		f.want, f.any = string(*want), *want == "*"
		ph.objects = f.any
	}
	return f, nil
}

// parseFields compiles the conditions of "when".
func parseFields(path string, values map[string]text) (fields, error) {
	var out fields
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		f, err := newField(path, "json:"+name, &v)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func (fs fields) name() string {
	if len(fs) == 0 {
		return ""
	}
	return fs[0].text
}

func (fs fields) hold(in *input) bool {
	for _, f := range fs {
		if !f.hold(in) {
			return false
		}
	}
	return true
}

func (f field) hold(in *input) bool {
	out, ok := f.append(in.tmp[:0], in)
	in.tmp = out
	switch {
	case f.absent:
		return !ok
	case f.any:
		return ok
	}
	return ok && string(out) == f.want
}

func (m *match) method(method string) bool {
	return len(m.methods) == 0 && method == http.MethodPost || slices.Contains(m.methods, method)
}

// holds tells whether every condition does.
func (m *match) holds(in *input) bool {
	if m.never || !m.method(in.r.Method) {
		return false
	}
	for _, name := range m.query {
		if _, ok := in.query(name); !ok {
			return false
		}
	}
	if m.body != nil && *m.body != (len(in.r.Body) == 0) {
		return false
	}
	return m.fields.hold(in)
}

// possible tells whether the match can still hold when only method and headers are known.
func (m *match) possible(method string, h http.Header) bool {
	if m.never || !m.method(method) {
		return false
	}
	in := &input{r: &Request{Method: method, Header: h}}
	for _, f := range m.fields {
		switch {
		case f.src == srcHeader && !f.hold(in), f.src == srcForm && !f.absent && !in.isForm(), f.src == srcJSON && !f.absent && in.isForm():
			return false
		}
	}
	return true
}
