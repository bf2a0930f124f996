package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// placeholder names one value of a request.
type placeholder struct {
	text    string // "header:Stripe-Signature", for messages
	src     source
	arg     string // canonical header name, name, or gjson path
	filters []filter
	objects bool   // an object counts as present (filter const)
	digest  bool   // some filter is a digest
	usual   string // of a param: the value where the source has none
}

type source int

const (
	srcBody source = iota
	srcHeader
	srcQuery
	srcForm
	srcJSON
	srcSig
	srcItem
	srcJWT
	srcMethod
	srcPath
	srcRawQuery
	srcURL
	srcURLNoQuery
	srcURLPathQuery
	srcHost
	srcParam
	srcSecret
	srcNow
)

var sources = map[string]source{
	"body": srcBody, "header": srcHeader, "query": srcQuery, "form": srcForm, "json": srcJSON, "sig": srcSig,
	"item": srcItem, "jwt": srcJWT, "method": srcMethod, "path": srcPath, "rawquery": srcRawQuery, "url": srcURL,
	"url_noquery": srcURLNoQuery, "url_path_query": srcURLPathQuery, "host": srcHost, "param": srcParam,
	"secret": srcSecret, "now": srcNow,
}

// takesArgument are the sources that need a name behind a colon; json and item may
// have an empty path, which is the whole document.
var takesArgument = []source{srcHeader, srcQuery, srcForm, srcJSON, srcSig, srcItem, srcJWT, srcParam}

func parseSource(text string, use usage) (*placeholder, error) {
	name, arg, has := strings.Cut(text, ":")
	src, ok := sources[name]
	if !ok {
		return nil, fmt.Errorf("unknown source %q", name)
	}
	if has != slices.Contains(takesArgument, src) || (has && arg == "" && src != srcJSON && src != srcItem) {
		return nil, fmt.Errorf("source %s: it has an argument or lacks one", name)
	}
	if err := allowed(src, use); err != nil {
		return nil, err
	}
	ph := &placeholder{text: text, src: src, arg: arg}
	switch src {
	case srcHeader:
		ph.arg = http.CanonicalHeaderKey(arg)
	case srcJSON, srcItem, srcJWT:
		path, err := gjsonPath(arg)
		if err != nil {
			return nil, err
		}
		ph.arg = path
	}
	return ph, nil
}

// allowed keeps a secret out of everything but a signed message, and the parts of a
// signature out of everything that is read without one.
func allowed(src source, use usage) error {
	switch {
	case src == srcSecret && use != inMessage:
		return fmt.Errorf("{secret} may stand in a signed message only")
	case src == srcSig && use != inMessage:
		return fmt.Errorf("{sig:…} may stand beside a signature only")
	case src == srcItem && use != inItem:
		return fmt.Errorf("{item:…} may stand inside a batch only")
	case use == inConfig && src != srcParam:
		return fmt.Errorf("only {param:…} may stand here")
	}
	return nil
}

// gjsonPath turns "a.b.0.c" into a path for gjson with nothing special in it: only
// dots part, digits index arrays, "\." is a dot of a name.
func gjsonPath(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	steps := splitEscaped(path, '.')
	for i, s := range steps {
		if s == "" {
			return "", fmt.Errorf("path %q has an empty step", path)
		}
		steps[i] = gjson.Escape(s)
	}
	return strings.Join(steps, "."), nil
}

// append writes the filtered value behind dst; false: the value is absent.
func (p *placeholder) append(dst []byte, in *input) ([]byte, bool) {
	if len(p.filters) == 0 {
		return p.raw(dst, in)
	}
	v := in.body
	if p.src != srcBody || in.hides(p) {
		var ok bool
		if in.tmp, ok = p.raw(in.tmp[:0], in); !ok {
			return dst, false
		}
		v = in.tmp
	}
	for i, f := range p.filters {
		var out []byte
		if i == len(p.filters)-1 {
			out = dst
		}
		out, ok := f(in, out, v)
		if !ok {
			return dst, false
		}
		v = out
	}
	return v, true
}

// raw writes the value before its filters.
func (p *placeholder) raw(dst []byte, in *input) ([]byte, bool) {
	if in.hides(p) {
		return dst, false
	}
	r := in.r
	switch p.src {
	case srcBody:
		return append(dst, in.body...), true
	case srcHeader:
		v := r.Header[p.arg]
		if len(v) == 0 {
			return dst, false
		}
		return append(dst, v[0]...), true
	case srcQuery:
		v, ok := in.query(p.arg)
		return append(dst, v...), ok
	case srcForm:
		v, ok := in.form(p.arg)
		return append(dst, v...), ok
	case srcJSON:
		return appendJSON(dst, in.json(), p)
	case srcItem:
		return appendJSON(dst, in.item, p)
	case srcSig:
		return in.sig.append(dst, p.arg)
	case srcMethod:
		return append(dst, r.Method...), true
	case srcPath:
		path, _, _ := strings.Cut(r.Target, "?")
		return append(dst, path...), true
	case srcRawQuery:
		_, q, ok := strings.Cut(r.Target, "?")
		return append(dst, q...), ok
	case srcURL:
		return append(dst, in.url...), in.url != ""
	case srcURLNoQuery:
		u, _, _ := strings.Cut(in.url, "?")
		return append(dst, u...), u != ""
	case srcURLPathQuery:
		return append(dst, r.Target...), true
	case srcHost:
		return append(dst, r.Host...), r.Host != ""
	case srcParam:
		v, ok := in.params[p.arg]
		if v == "" && p.usual != "" {
			v, ok = p.usual, true
		}
		return append(dst, v...), ok
	case srcSecret:
		return append(dst, in.secret...), in.secret != ""
	case srcJWT:
		if in.claims == "" && p.arg == "kid" {
			return append(dst, in.kid...), in.kid != ""
		}
		return appendJSON(dst, in.claims, p)
	case srcNow:
		return strconv.AppendInt(dst, in.now.Unix(), 10), true
	}
	return dst, false
}

// appendJSON writes the text of a value: strings decoded, numbers and truth values as
// written. Null, and objects and arrays unless the placeholder only asks whether they
// exist, are absent. Of a repeated key the first counts; keys are told apart by case.
func appendJSON(dst []byte, doc string, p *placeholder) ([]byte, bool) {
	if doc == "" {
		return dst, false
	}
	v := lookup(doc, p.arg)
	switch v.Type {
	case gjson.String:
		return append(dst, v.Str...), true
	case gjson.Number, gjson.True, gjson.False:
		return append(dst, v.Raw...), true
	case gjson.JSON:
		return dst, p.objects
	}
	return dst, false
}

func lookup(doc, path string) gjson.Result {
	if path == "" {
		return gjson.Parse(doc)
	}
	return gjson.Get(doc, path)
}
