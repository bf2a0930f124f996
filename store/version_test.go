package store

import "testing"

func TestNewerNeedsTheSameUnitAndForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit, a, b string
		want       bool
	}{
		{"s", "1767225601", "1767225600", true},
		{"s", "1767225600", "1767225600", false},
		{"s", "1767225600", "1767225601", false},
		{"s", "1767225600.5", "1767225600", true},
		{"s", "1767225600.50", "1767225600.5", false},
		{"s", "1767225600.45", "1767225600.5", false},
		{"ms", "10", "9", true},
		{"ms", "010", "10", false},
		{"int", "123456789012345678901", "123456789012345678900", true},
		{"int", "-1", "-2", false},
		{"int", "0x10", "1", false},
		{"int", "1e9", "1", false},
		{"int", "", "1", false},
		{"int", "1", "", false},
		{"int", "1.", "0", false},
		{"rfc3339", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z", false},
		{"rfc3339", "2026-01-01T00:00:00.001Z", "2026-01-01T00:00:00Z", true},
		{"rfc3339", "2026-01-01T02:00:00+01:00", "2026-01-01T00:30:00Z", true},
		{"rfc3339", "2026-01-01 02:00:00", "2026-01-01T00:30:00Z", false},
		{"string", "2026-01-01T00:00:01.000000", "2026-01-01T00:00:00.000000", true},
		{"string", "2013-12-03T17:15:43Z", "2013-12-03 18:15:43 UTC", false},
		{"string", "10", "9", false},
		{"string", "9", "10", false},
		{"string", "5f1b", "5e1b", false},
		{"string", "b", "a", false},
		{"", "2", "1", false},
		{"id", "2", "1", false},
	} {
		if got := Newer(c.unit, c.a, c.b); got != c.want {
			t.Errorf("Newer(%q, %q, %q) = %v", c.unit, c.a, c.b, got)
		}
	}
}

func FuzzNewerIsAnOrder(f *testing.F) {
	f.Add("s", "1.5", "2", "3")
	f.Add("string", "a1", "a2", "a3")
	f.Fuzz(func(t *testing.T, unit, a, b, c string) {
		if Newer(unit, a, a) || Newer(unit, a, b) && Newer(unit, b, a) {
			t.Fatal("not strict")
		}
		if Newer(unit, a, b) && Newer(unit, b, c) && !Newer(unit, a, c) {
			t.Fatal("not transitive")
		}
	})
}
