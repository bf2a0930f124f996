package web

import (
	"strings"
	"testing"

	"acuse/store"
)

func TestP3KeyIsWrittenDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, source, event, destination, want string }{
		{"plain parts stay as they are", "stripe", "evt_1", "app", "stripe:evt_1:app"},
		{"letters, digits, low line, dot and hyphen are plain", "A-z_0.9", "a.B-c_1", "D.e-f_2", "A-z_0.9:a.B-c_1:D.e-f_2"},
		{"all else is percent-encoded by bytes", "s", "a:b/c d%2F~é\x00", "x y", "s:a%3Ab%2Fc%20d%252F%7E%C3%A9%00:x%20y"},
		{"255 characters are sent as they are", "s", strings.Repeat("k", 251), "d", "s:" + strings.Repeat("k", 251) + ":d"},
		{"256 become a hash", "s", strings.Repeat("k", 252), "d",
			"ak_4767e918cb451181e57af805565e85de110d27eae55050482158bbb37b3afcca"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Key(c.source, c.event, c.destination); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

func FuzzKeyTellsTriplesApart(f *testing.F) {
	f.Add("a", "b:c", "d", "a:b", "c", "d")
	f.Add("a", "%3A", "d", "a", ":", "d")
	f.Add("s", strings.Repeat("k", 300), "d", "s", strings.Repeat("k", 299)+"z", "d")
	f.Fuzz(func(t *testing.T, s1, e1, d1, s2, e2, d2 string) {
		a, b := Key(s1, e1, d1), Key(s2, e2, d2)
		if same := s1 == s2 && e1 == e2 && d1 == d2; (a == b) != same {
			t.Fatalf("%q and %q", a, b)
		}
		if len(a) > store.MaxKey {
			t.Fatalf("%d characters", len(a))
		}
	})
}
