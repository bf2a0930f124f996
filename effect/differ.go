package effect

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// maxDiffers bounds what a mismatch names.
const maxDiffers = 8

// Differs names what sets two calls apart, never with a value: "method", "path",
// "query.expand", "header Stripe-Account", "body.amount", "body".
func (c *Call) Differs(other *Call, headers []string) []string {
	var list []string
	if c.Method != other.Method {
		list = append(list, "method")
	}
	if c.Path != other.Path {
		list = append(list, "path")
	}
	list = append(list, pairsDiffer("query", queryPairs(c.Query), queryPairs(other.Query))...)
	for _, name := range headers {
		if !slices.Equal(c.Header.Values(name), other.Header.Values(name)) {
			list = append(list, "header "+http.CanonicalHeaderKey(name))
		}
	}
	list = append(list, c.bodyDiffers(other)...)
	if len(list) > maxDiffers {
		list = append(list[:maxDiffers], "…")
	}
	return list
}

func (c *Call) bodyDiffers(other *Call) []string {
	kind, mine := c.meaning()
	otherKind, theirs := other.meaning()
	if kind == otherKind && bytes.Equal(mine, theirs) {
		return nil
	}
	var list []string
	switch {
	case kind != otherKind:
	case kind == "json":
		var a, b any
		if decode(mine, &a) == nil && decode(theirs, &b) == nil {
			list = valuesDiffer("body", a, b, nil)
		}
	case kind == "form":
		a, errA := formPairs(string(c.Body))
		b, errB := formPairs(string(other.Body))
		if errA == nil && errB == nil {
			list = pairsDiffer("body", a, b)
		}
	}
	if len(list) == 0 {
		return []string{"body"}
	}
	return list
}

func decode(doc []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	return dec.Decode(v)
}

// valuesDiffer names the members that differ, as deep as both sides have the same kind.
func valuesDiffer(at string, a, b any, list []string) []string {
	if len(list) > maxDiffers {
		return list
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return objectsDiffer(at, x, y, list)
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				list = valuesDiffer(at+"["+strconv.Itoa(i)+"]", x[i], y[i], list)
			}
			return list
		}
	default:
		switch b.(type) {
		case map[string]any, []any:
		default:
			if a == b {
				return list
			}
		}
	}
	return append(list, at)
}

func objectsDiffer(at string, x, y map[string]any, list []string) []string {
	names := slices.Collect(maps.Keys(x))
	for name := range y {
		if _, both := x[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		a, inX := x[name]
		b, inY := y[name]
		if inX && inY {
			list = valuesDiffer(at+"."+name, a, b, list)
		} else if len(list) <= maxDiffers {
			list = append(list, at+"."+name)
		}
	}
	return list
}

func pairsDiffer(at string, a, b []pair) []string {
	x, y := grouped(a), grouped(b)
	var list []string
	for name := range x {
		if !slices.Equal(x[name], y[name]) {
			list = append(list, at+"."+name)
		}
	}
	for name := range y {
		if _, both := x[name]; !both {
			list = append(list, at+"."+name)
		}
	}
	slices.Sort(list)
	return list
}

func grouped(list []pair) map[string][]string {
	m := map[string][]string{}
	for _, p := range list {
		m[p.name] = append(m[p.name], p.value)
	}
	return m
}
