package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// texts is a string, an array of strings, or null.
type texts []string

// UnmarshalJSON reads one text or several.
func (t *texts) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(t))
	}
	var one *string
	if err := json.Unmarshal(b, &one); err != nil || one == nil {
		return err
	}
	*t = texts{*one}
	return nil
}

// text is a string, or a number or truth value as it is written.
type text string

// UnmarshalJSON keeps the text of a number.
func (t *text) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(t))
	case '{', '[':
		return errors.New("want a text, a number or a truth value")
	}
	*t = text(b)
	return nil
}

// some is one object or an array of objects.
type some[T any] []T

// UnmarshalJSON reads one object or several.
func (s *some[T]) UnmarshalJSON(b []byte) error {
	switch {
	case b[0] == '[':
		return json.Unmarshal(b, (*[]T)(s))
	case string(b) == "null":
		return nil
	}
	*s = make([]T, 1)
	return json.Unmarshal(b, &(*s)[0])
}

// limit tells a field that is null (no limit) from one that is not there.
type limit struct {
	given bool
	value *int64
}

// UnmarshalJSON is called for null too.
func (l *limit) UnmarshalJSON(b []byte) error {
	l.given = true
	return json.Unmarshal(b, &l.value)
}

// success is "2xx" (empty here) or a list of exact codes.
type success []int

// UnmarshalJSON reads "2xx" or a list of codes.
func (s *success) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]int)(s))
	}
	if string(b) != `"2xx"` {
		return errors.New(`want "2xx" or a list of codes`)
	}
	return nil
}

// strict decodes one JSON document into v, which is a pointer to a struct. A field
// that is unknown, repeated or in another letter case is an error; errors begin with
// the path of the field.
func strict(path string, b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	var doc json.RawMessage
	if err := d.Decode(&doc); err != nil {
		return at(path, "%s", misspelt(b, err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return at(path, "more than one JSON document")
	}
	if err := known(path, doc, reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	err := json.Unmarshal(doc, v)
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return at(join(path, te.Field), "want %s, not a %s", te.Type, te.Value)
	}
	if err != nil {
		return at(path, "%v", err)
	}
	return nil
}

// misspelt names the line of a text that is no JSON.
func misspelt(b []byte, err error) string {
	end := len(b)
	var wrong *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		end = int(min(wrong.Offset, int64(len(b))))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it ends before its last brace")
	default:
		return err.Error()
	}
	return fmt.Sprintf("line %d: %v", 1+bytes.Count(b[:end], []byte("\n")), err)
}

func at(path, format string, args ...any) error {
	if path == "" {
		return fmt.Errorf(format, args...)
	}
	return fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
}

func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	authType = reflect.TypeFor[authFile]()
)

// known walks a document beside the type that it will be decoded into.
func known(path string, b []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if b = bytes.TrimSpace(b); len(b) == 0 || t == rawType {
		return nil
	}
	switch {
	case t.Kind() == reflect.Slice && b[0] == '[':
		var items []json.RawMessage
		if err := json.Unmarshal(b, &items); err != nil {
			return at(path, "%v", err)
		}
		for i, item := range items {
			if err := known(fmt.Sprintf("%s[%d]", path, i), item, t.Elem()); err != nil {
				return err
			}
		}
	case t.Kind() == reflect.Slice && b[0] == '{': // some[T] holding one
		return known(path, b, t.Elem())
	case b[0] == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		return knownFields(path, b, t)
	}
	return leaf(path, b, t)
}

// leaf decodes a value that has no fields, so that its error carries the path.
func leaf(path string, b []byte, t reflect.Type) error {
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Struct || t.Kind() == reflect.Map {
		if b[0] == '[' || b[0] == '{' {
			return nil
		}
	}
	err := json.Unmarshal(b, reflect.New(t).Interface())
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return at(path, "want %s, not a %s", te.Type, te.Value)
	}
	if err != nil {
		return at(path, "%v", err)
	}
	return nil
}

func knownFields(path string, b []byte, t reflect.Type) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return at(path, "%v", err)
	}
	var seen []string
	kind := ""
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return at(path, "%v", err)
		}
		key := tok.(string)
		if slices.Contains(seen, key) {
			return at(join(path, key), "written twice")
		}
		seen = append(seen, key)
		var val json.RawMessage
		if err := d.Decode(&val); err != nil {
			return at(join(path, key), "%v", err)
		}
		if t == authType && key == "kind" {
			_ = json.Unmarshal(val, &kind) // a wrong type is found by leaf
		}
		if t.Kind() == reflect.Map {
			err = known(join(path, key), val, t.Elem())
		} else if ft, ok := fieldType(t, key); ok {
			err = known(join(path, key), val, ft)
		} else {
			err = at(join(path, key), "unknown field")
		}
		if err != nil {
			return err
		}
	}
	if t == authType {
		return authKind(path, kind, seen)
	}
	return nil
}

func fieldType(t reflect.Type, key string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if tag := f.Tag.Get("json"); tag != "" && strings.Split(tag, ",")[0] == key {
			return f.Type, true
		}
	}
	return nil, false
}

// authKind refuses fields that an auth of this kind does not read.
func authKind(path, kind string, fields []string) error {
	reads, ok := authFields[kind]
	if !ok {
		return at(join(path, "kind"), "unknown kind %q", kind)
	}
	for _, f := range fields {
		if f != "kind" && f != "when" && f != "rotation" && !slices.Contains(reads, f) {
			return at(join(path, f), "not a field of kind %s", kind)
		}
	}
	return nil
}
