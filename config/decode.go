package config

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// reader turns one file into values and collects what is wrong with it.
type reader struct {
	file     string // as it was named
	dir      string // relative paths of the file start here
	env      map[string]string
	open     func(name string) (io.ReadCloser, error) // nil: no files are read
	problems *Problems
	lines    map[string]position
}

func (r *reader) add(pos position, path, format string, args ...any) {
	if pos.file == "" {
		pos.file = r.file
	}
	*r.problems = append(*r.problems, Problem{
		File: pos.file, Line: pos.line, Path: path, Text: fmt.Sprintf(format, args...), Quote: pos.quote(),
	})
}

// at is the position of a node; key is empty for what is no key.
func (r *reader) at(n ast.Node, key string) position {
	p := position{file: r.file, key: key}
	if t := n.GetToken(); t != nil && t.Position != nil {
		p.line, p.column = t.Position.Line, t.Position.Column
	}
	return p
}

// item is the position of a list's item: its list's, when both stand on one line.
func (r *reader) item(n ast.Node, list string) position {
	pos := r.at(n, "")
	if l := r.lines[list]; l.line == pos.line {
		return l
	}
	pos.column = max(1, pos.column-2) // of the dash
	return pos
}

// value decodes n into v. tags are those of the struct's field, path its name.
func (r *reader) value(n ast.Node, v reflect.Value, tags reflect.StructTag, path string) {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		r.wrong(path, "anchors, aliases and tags are not used here: write the value out")
		return
	}
	_, null := n.(*ast.NullNode)
	switch t := v.Addr().Interface().(type) {
	case *Later:
		return
	case *Secrets:
		r.secrets(n, t, path)
		return
	case *ID:
		r.id(n, t, path)
		return
	case *Templates:
		if text, ok := scalarText(n); ok {
			r.text(text, reflect.ValueOf(new(string)).Elem(), "", path, func(s string) { *t = Templates{s} })
			return
		}
	case *JSON:
		r.json(n, t, path)
		return
	case **Filter:
		if text, ok := scalarText(n); ok {
			*t = &Filter{}
			setDefaults(reflect.ValueOf(*t).Elem())
			r.text(text, reflect.ValueOf(&(*t).When).Elem(), "", path, nil)
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		if fresh.Elem().Kind() == reflect.Struct {
			setDefaults(fresh.Elem())
		}
		v.Set(fresh)
		if !null {
			r.value(n, fresh.Elem(), tags, path)
		}
	case reflect.Struct:
		if setters[v.Type()] {
			r.scalar(n, v, tags, path)
		} else if m, ok := mapping(n); ok {
			r.fields(m, v, path)
		} else if !null {
			r.wrong(path, "keys with values are wanted here")
		}
	case reflect.Map:
		if m, ok := mapping(n); ok {
			r.entries(m, v, tags, path)
		} else if !null {
			r.wrong(path, "names with values are wanted here")
		}
	case reflect.Slice:
		if seq, ok := n.(*ast.SequenceNode); ok {
			r.items(seq, v, tags, path)
		} else if !null {
			r.wrong(path, "a list is wanted: [a, b]")
		}
	default:
		r.scalar(n, v, tags, path)
	}
}

// wrong adds a problem of a key that was read.
func (r *reader) wrong(path, format string, args ...any) {
	r.add(r.lines[path], path, format, args...)
}

// keys calls f for each key of a mapping, once.
func (r *reader) keys(m *ast.MappingNode, path string, f func(key, path string, n ast.Node)) {
	seen := map[string]int{}
	for _, kv := range m.Values {
		if kv.Key.IsMergeKey() {
			r.add(r.at(kv.Key, ""), path, "merge keys are not used here: write the values out")
			continue
		}
		key, ok := scalarText(kv.Key)
		if !ok {
			r.add(r.at(kv.Key, ""), path, "a plain key is wanted")
			continue
		}
		pos := r.at(kv.Key, shown(key))
		at := shown(key)
		if path != "" {
			at = path + "." + at
		}
		if first, ok := seen[key]; ok {
			r.add(pos, at, "given twice, first on line %d", first)
			continue
		}
		seen[key] = pos.line
		if _, ok := r.lines[at]; !ok {
			r.lines[at] = pos
		}
		f(key, at, kv.Value)
	}
}

func (r *reader) fields(m *ast.MappingNode, v reflect.Value, path string) {
	r.keys(m, path, func(key, at string, n ast.Node) {
		i := slices.Index(keysOf(v.Type()), key)
		if i < 0 || key == "" {
			r.wrong(at, "unknown key%s", meant(key, keysOf(v.Type())))
			return
		}
		f := v.Type().Field(i)
		r.value(n, v.Field(i), f.Tag, at)
		if f.Tag.Get("later") != "" {
			r.wrong(at, "not supported by this version yet: remove it")
		}
	})
}

func (r *reader) entries(m *ast.MappingNode, v reflect.Value, tags reflect.StructTag, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	r.keys(m, path, func(key, at string, n ast.Node) {
		e := reflect.New(v.Type().Elem()).Elem()
		r.value(n, e, tags, at)
		v.SetMapIndex(reflect.ValueOf(key), e)
	})
}

func (r *reader) items(seq *ast.SequenceNode, v reflect.Value, tags reflect.StructTag, path string) {
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, n := range seq.Values {
		at := path + "[" + strconv.Itoa(i) + "]"
		r.lines[at] = r.item(n, path)
		if v.Index(i).Kind() == reflect.Struct {
			setDefaults(v.Index(i))
		}
		r.value(n, v.Index(i), tags, at)
	}
}

func (r *reader) scalar(n ast.Node, v reflect.Value, tags reflect.StructTag, path string) {
	text, ok := scalarText(n)
	if !ok {
		r.wrong(path, "one value is wanted here")
		return
	}
	// Only ${} and file: may stand in quotes where a number is wanted.
	_, quoted := n.(*ast.StringNode)
	switch v.Kind() {
	case reflect.Int, reflect.Float64, reflect.Bool:
		if quoted && !strings.Contains(text, "${") && !strings.HasPrefix(text, "file:") {
			r.wrong(path, "%v", setScalar(reflect.New(v.Type()).Elem(), ""))
			return
		}
	case reflect.String:
		if _, ok := n.(*ast.BoolNode); ok {
			r.wrong(path, "a text is wanted, not true or false; write it in quotes")
			return
		}
	}
	r.text(text, v, tags, path, nil)
}

// text expands and parses one value, and hands a string to set when it is not nil.
func (r *reader) text(text string, v reflect.Value, tags reflect.StructTag, path string, set func(string)) {
	s, err := r.expand(text)
	if err == nil {
		err = setScalar(v, s)
	}
	if err == nil {
		err = checkTags(v, tags)
	}
	if err != nil {
		r.wrong(path, "%v", err)
		return
	}
	if set != nil {
		set(s)
	}
}

func (r *reader) secrets(n ast.Node, s *Secrets, path string) {
	if text, ok := scalarText(n); ok {
		if text == "capture" {
			s.Capture = true
		} else {
			r.wrong(path, "a list is wanted, since any one may match: [\"${NAME}\"]; or the word capture")
		}
		return
	}
	before := len(*r.problems)
	r.value(n, reflect.ValueOf(&s.Values).Elem(), "", path)
	if len(s.Values) == 0 && len(*r.problems) == before {
		r.wrong(path, "is empty; give a secret, or leave the key out where the provider needs none")
	}
}

func (r *reader) id(n ast.Node, id *ID, path string) {
	if text, ok := scalarText(n); ok {
		r.text(text, reflect.ValueOf(&id.Template).Elem(), "", path, nil)
		return
	}
	var form struct {
		First []string `yaml:"first"`
		Join  []string `yaml:"join"`
	}
	before := len(*r.problems)
	r.value(n, reflect.ValueOf(&form).Elem(), "", path)
	if len(*r.problems) == before && (len(form.First) == 0) == (len(form.Join) == 0) {
		r.wrong(path, "a template, {first: [templates]} or {join: [templates]} is wanted")
		return
	}
	id.First, id.Join = form.First, form.Join
}

func (r *reader) json(n ast.Node, j *JSON, path string) {
	if _, ok := mapping(n); !ok {
		r.wrong(path, "an object is wanted, such as {kind: hmac, …}")
		return
	}
	b, err := json.Marshal(r.any(n, path))
	if err != nil {
		r.wrong(path, "cannot be written as JSON")
		return
	}
	*j = b
}

// any is a node as encoding/json takes it.
func (r *reader) any(n ast.Node, path string) any {
	if m, ok := mapping(n); ok {
		out := map[string]any{}
		r.keys(m, path, func(key, at string, n ast.Node) { out[key] = r.any(n, at) })
		return out
	}
	switch n := n.(type) {
	case *ast.SequenceNode:
		out := make([]any, len(n.Values))
		for i, item := range n.Values {
			at := path + "[" + strconv.Itoa(i) + "]"
			r.lines[at] = r.item(item, path)
			out[i] = r.any(item, at)
		}
		return out
	case *ast.NullNode:
		return nil
	case *ast.BoolNode:
		return n.Value
	case *ast.IntegerNode, *ast.FloatNode:
		text := n.GetToken().Value
		if json.Valid([]byte(text)) {
			return json.Number(text)
		}
		r.wrong(path, "a plain number is wanted, or a text in quotes")
		return nil
	}
	text, ok := scalarText(n)
	if !ok {
		r.wrong(path, "anchors, aliases and tags are not used here: write the value out")
		return nil
	}
	s, err := r.expand(text)
	if err != nil {
		r.wrong(path, "%v", err)
	}
	return s
}

func mapping(n ast.Node) (*ast.MappingNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n, true
	case *ast.MappingValueNode:
		return &ast.MappingNode{BaseNode: &ast.BaseNode{}, Values: []*ast.MappingValueNode{n}}, true
	}
	return nil, false
}

// scalarText is a scalar as it was written, quotes and block marks undone.
func scalarText(n any) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode:
		return n.Token.Value, true
	case *ast.FloatNode:
		return n.Token.Value, true
	case *ast.BoolNode:
		return n.Token.Value, true
	}
	return "", false
}
