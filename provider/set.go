package provider

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"
)

// clear takes every header of the place away.
func (p place) clear(h http.Header) {
	for name := range h {
		if name == p.arg || (p.prefix != "" && strings.HasPrefix(name, p.prefix)) {
			delete(h, name)
		}
	}
}

// set writes a value at a place of the request.
func (s *signing) set(p place, value string) error {
	r := s.in.r
	switch {
	case p.src == srcHeader && p.prefix != "":
		r.Header.Set(p.prefix+"1", value)
	case p.src == srcHeader:
		r.Header.Set(p.arg, value)
	case p.src == srcQuery:
		r.Target, r.URL = setQuery(r.Target, p.arg, value), setQuery(r.URL, p.arg, value)
		s.in.url, s.in.queryOK = r.URL, false
	case p.src == srcJSON && len(p.filters) == 0:
		doc, ok := setJSON(s.in.json(), p.arg, value)
		if !ok {
			return fmt.Errorf("%w: %s is missing", errCannotSign, p.text)
		}
		s.body(doc)
	case p.src == srcForm:
		return s.setForm(p, value)
	default:
		return errCannotSign
	}
	return nil
}

func (s *signing) body(b string) {
	s.in.r.Body = []byte(b)
	s.in.body = s.in.r.Body
	s.in.setText(s.in.r.Body)
}

// setQuery replaces the first value of a parameter, or adds it; the rest stays as written.
func setQuery(target, name, value string) string {
	if target == "" {
		return ""
	}
	base, q, _ := strings.Cut(target, "?")
	return base + "?" + setPair(q, name, value)
}

func setPair(pairs, name, value string) string {
	pair := url.QueryEscape(name) + "=" + url.QueryEscape(value)
	if pairs == "" {
		return pair
	}
	list := strings.Split(pairs, "&")
	for i, one := range list {
		k, _, _ := strings.Cut(one, "=")
		if k, err := url.QueryUnescape(k); err == nil && k == name {
			list[i] = pair
			return strings.Join(list, "&")
		}
	}
	return pairs + "&" + pair
}

// setJSON replaces a value that is there; a number stays a number.
func setJSON(doc, path, value string) (string, bool) {
	v := gjson.Get(doc, path)
	if !v.Exists() || v.Index == 0 {
		return "", false
	}
	text := value
	if v.Type != gjson.Number {
		text = `"` + string(escapeJSON([]byte(value))) + `"`
	}
	return doc[:v.Index] + text + doc[v.Index+len(v.Raw):], true
}

// setForm replaces a field of an urlencoded body, or one of a multipart body whose text
// stands there once; with filter jsonpath, a value inside the field.
func (s *signing) setForm(p place, value string) error {
	old, ok := s.in.form(p.arg)
	if _, path, has := strings.Cut(p.text, "|jsonpath:"); has {
		g, err := gjsonPath(path)
		if err != nil || len(p.filters) != 1 || !ok {
			return errCannotSign
		}
		if value, ok = setJSON(old, g, value); !ok {
			return fmt.Errorf("%w: %s is missing", errCannotSign, p.text)
		}
	} else if len(p.filters) > 0 {
		return errCannotSign
	}
	if formType(s.in.r.Header.Get("Content-Type")) == "application/x-www-form-urlencoded" {
		s.body(setPair(s.in.text, p.arg, value))
		return nil
	}
	if !ok || strings.Count(s.in.text, old) != 1 || old == "" {
		return errCannotSign
	}
	s.body(strings.Replace(s.in.text, old, value, 1))
	return nil
}
