package provider

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// FuzzSoundJSON holds the quick look at depth against a careful one.
func FuzzSoundJSON(f *testing.F) {
	for _, s := range []string{`{"a":"b\"c","d":["\\","\\\""]}`, `"\\\\"`, `{"a":"[[["}`, `"`, `"\`, `"\"`, `{"a":"\u0022"}`, strings.Repeat("[", 600) + strings.Repeat("]", 600)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		depth, most, inText := 0, 0, false
		for i := 0; i < len(s); i++ {
			switch c := s[i]; {
			case inText && c == '\\':
				i++
			case c == '"':
				inText = !inText
			case !inText && (c == '{' || c == '['):
				depth++
				most = max(most, depth)
			case !inText && (c == '}' || c == ']'):
				depth--
			}
		}
		if want := most <= 512 && gjson.Valid(s); soundJSON(s) != want {
			t.Fatalf("%q: got %v, want %v", s, !want, want)
		}
	})
}
