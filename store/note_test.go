package store

import "testing"

func TestANoteComesBack(t *testing.T) {
	t.Parallel()
	for _, n := range []Note{
		{Rule: "type == 'x'"},
		{Rule: "type == 'x'", Key: "filter"},
		{Rule: "a\nb // acuse: no", Key: "filter", Source: true, Failed: "steps", Line: 1, Column: 12},
		{Rule: "body.x", Key: "order_by", Failed: "kind", Line: 2, Column: 3},
	} {
		if got := ParseNote(n.String()); got != n {
			t.Errorf("%q: %+v, want %+v", n.String(), got, n)
		}
	}
	for _, s := range []string{"", "x", "x\n// acuse: filter", "x\n// acuse: filter source steps here", "x\n// acuse: a b c"} {
		if got := ParseNote(s); got != (Note{Rule: s}) {
			t.Errorf("%q: %+v", s, got)
		}
	}
}
