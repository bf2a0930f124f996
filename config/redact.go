package config

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Redacted is the configuration as it holds, defaults included, in the language of
// the file; secrets show as [hidden].
func (c *Config) Redacted() ([]byte, error) {
	b, err := yaml.MarshalWithOptions(c.tree(), yaml.Indent(2), yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("config: show: %w", err)
	}
	return b, nil
}

// RedactedJSON is Redacted on one line of JSON.
func (c *Config) RedactedJSON() ([]byte, error) {
	b, err := yaml.MarshalWithOptions(c.tree(), yaml.JSON())
	if err != nil {
		return nil, fmt.Errorf("config: show: %w", err)
	}
	return b, nil
}

func (c *Config) tree() yaml.MapSlice { return fieldsShown(reflect.ValueOf(c).Elem()) }

func fieldsShown(v reflect.Value) yaml.MapSlice {
	out := yaml.MapSlice{}
	for i, key := range keysOf(v.Type()) {
		f := v.Type().Field(i)
		if key == "" || f.Tag.Get("later") != "" || v.Field(i).IsZero() {
			continue
		}
		if x := valueShown(v.Field(i)); x != nil {
			out = append(out, yaml.MapItem{Key: key, Value: x})
		}
	}
	return out
}

// valueShown is a value as yaml takes it; nil: nothing to show.
func valueShown(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return formatDuration(x)
	case Secret, URL, Size, Rate, netip.Prefix, JSON:
		return fmt.Sprint(x)
	case Secrets:
		if x.Capture {
			return "capture"
		}
		return valueShown(reflect.ValueOf(x.Values))
	case *Filter:
		if x.OnError == "deliver" {
			return x.When
		}
	case ID:
		if x.Template != "" {
			return x.Template
		}
		if x.First != nil {
			return yaml.MapSlice{{Key: "first", Value: x.First}}
		}
		return yaml.MapSlice{{Key: "join", Value: x.Join}}
	}
	switch v.Kind() {
	case reflect.Pointer:
		return valueShown(v.Elem())
	case reflect.Struct:
		if m := fieldsShown(v); len(m) > 0 {
			return m
		}
		return nil
	case reflect.Map:
		return mapShown(v)
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = valueShown(v.Index(i))
		}
		return list
	}
	return v.Interface()
}

func mapShown(v reflect.Value) any {
	names := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		names[k.String()] = v.MapIndex(k)
	}
	out := yaml.MapSlice{}
	for _, n := range slices.SortedFunc(maps.Keys(names), strings.Compare) {
		out = append(out, yaml.MapItem{Key: n, Value: valueShown(names[n])})
	}
	return out
}
