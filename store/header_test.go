package store

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
)

func FuzzHeader(f *testing.F) {
	f.Add("X-Name", "plain", "ca\xc3\xa9")
	f.Add("X-\"\\", "\x00\x1f\x7f", "\xff\xfe")
	f.Fuzz(func(t *testing.T, name, a, b string) {
		in := http.Header{name: {a, b}}
		enc := EncodeHeader(in)
		if !json.Valid(enc) {
			t.Fatalf("not JSON: %q", enc)
		}
		out, err := DecodeHeader(enc)
		if err != nil {
			t.Fatal(err)
		}
		want := http.Header{latin1(asCodePoints(name)): {a, b}}
		if name != "" && isASCII(name) && !reflect.DeepEqual(out, want) {
			t.Fatalf("got %q, want %q", out, want)
		}
	})
}

func asCodePoints(s string) string {
	r := make([]rune, 0, len(s))
	for i := 0; i < len(s); i++ {
		r = append(r, rune(s[i]))
	}
	return string(r)
}
