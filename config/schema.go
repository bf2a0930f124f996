package config

import (
	"net/netip"
	"reflect"
	"strings"
)

// setters are the struct types that are one scalar in the file.
var setters = map[reflect.Type]bool{
	reflect.TypeFor[Rate]():         true,
	reflect.TypeFor[netip.Prefix](): true,
}

// knownKeys are all keys of the language: these words may stand in a message.
var knownKeys = func() map[string]bool {
	known := map[string]bool{}
	walk(reflect.TypeFor[Config](), func(_ string, _ reflect.Type, f reflect.StructField) { known[f.Tag.Get("yaml")] = true })
	return known
}()

// keysOf are a struct's keys by field index; empty for fields that are no key.
func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		if k := t.Field(i).Tag.Get("yaml"); k != "-" {
			keys[i] = k
		}
	}
	return keys
}

// walk calls f for every key of t, in order, with the struct it belongs to; names of
// a map show as NAME.
func walk(t reflect.Type, f func(path string, owner reflect.Type, field reflect.StructField)) {
	var in func(t reflect.Type, path string)
	in = func(t reflect.Type, path string) {
		switch t.Kind() {
		case reflect.Pointer:
			in(t.Elem(), path)
		case reflect.Map:
			in(t.Elem(), path+".NAME")
		case reflect.Slice:
			in(t.Elem(), path+"[]")
		case reflect.Struct:
			for i, key := range keysOf(t) {
				if key == "" {
					continue
				}
				at := strings.TrimPrefix(path+"."+key, ".")
				f(at, t, t.Field(i))
				in(t.Field(i).Type, at)
			}
		}
	}
	in(t, "")
}

// setDefaults fills a struct from its tags.
func setDefaults(v reflect.Value) {
	for i, key := range keysOf(v.Type()) {
		f := v.Field(i)
		if key == "" {
			continue
		}
		def := v.Type().Field(i).Tag.Get("default")
		switch {
		case f.Kind() == reflect.Struct && !setters[f.Type()]:
			setDefaults(f)
		case def == "":
		case f.Kind() == reflect.Slice:
			words := strings.Fields(def)
			f.Set(reflect.MakeSlice(f.Type(), len(words), len(words)))
			for j, w := range words {
				must(setScalar(f.Index(j), w))
			}
		default:
			must(setScalar(f, def))
		}
	}
}

// must holds for tags alone, which tests read.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
