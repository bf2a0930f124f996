package provider

import (
	"testing"
)

// FuzzXMLTag: the short way through a document finds what the long way finds.
func FuzzXMLTag(f *testing.F) {
	for _, s := range []string{
		"<a>\n <timestamp type=\"datetime\">2026</timestamp>\n <kind>x</kind><kind>y</kind></a>",
		"<kind>a<b>c</b>d</kind>", "<kind>a&amp;b</kind>", "<?xml version=\"1.0\"?><kind>a</kind>", "<!-- <kind>no</kind> --><kind>a</kind>",
		"<x><![CDATA[<kind>no</kind>]]></x><kind>a</kind>", "<kind/>", "<kind></kind>", "<kind a='b'>c</kind>", "<n:kind>a</n:kind>", "</kind><kind>a</kind>", "<kind>a", "<x y=\"<kind>no</kind>\"/>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		got, ok := plainElement(doc, "kind")
		want, sound := decodeElement(nil, []byte(doc), "kind")
		if ok && sound && got != string(want) {
			t.Errorf("%q: got %q, want %q", doc, got, want)
		}
	})
}

func TestAnElementIsReadTheShortWayAndTheLongWay(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]struct {
		text  string
		short bool
	}{
		"<n>\n<timestamp type=\"datetime\">2026</timestamp><kind>a_b</kind></n>": {"a_b", true},
		"<n><kinds>no</kinds><kind nil=\"true\">a</kind></n>":                    {"a", true},
		"<?xml version=\"1.0\"?><n><kind>a&amp;b</kind></n>":                     {"a&b", false},
		"<n><!-- <kind>no</kind> --><kind>a</kind></n>":                          {"a", false},
		"<n><x><![CDATA[<kind>no</kind>]]></x><kind>a</kind></n>":                {"a", false},
	} {
		if _, short := plainElement(doc, "kind"); short != want.short {
			t.Errorf("%s: short %v", doc, short)
		}
		f, err := xmlTag("kind")
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := f(nil, nil, []byte(doc)); !ok || string(got) != want.text {
			t.Errorf("%s: %q %v", doc, got, ok)
		}
	}
}
