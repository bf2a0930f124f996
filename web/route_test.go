package web

import (
	"net/http"
	"strings"
	"testing"
)

func TestRoute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path         string
		place        int
		source, rest string
	}{
		{"/in/stripe", placeIn, "stripe", ""},
		{"/in/stripe/", placeIn, "stripe", "/"},
		{"/in/stripe/a/../b//c", placeIn, "stripe", "/a/../b//c"},
		{"//in/stripe", placeIn, "stripe", ""},
		{"/./in/stripe", placeIn, "stripe", ""},
		{"/in//stripe", placeIn, "stripe", ""},
		{"/in/./stripe", placeIn, "stripe", ""},
		{"/in/STRIPE", placeIn, "STRIPE", ""},
		{"/in/strip%65", placeIn, "strip%65", ""},
		{"/in/stripe%2Fx", placeIn, "stripe%2Fx", ""},
		{"/IN/stripe", placeNone, "", ""},
		{"/%69n/stripe", placeNone, "", ""},
		{"/x/../in/stripe", placeNone, "", ""},
		{"/in/../in/stripe", placeIn, "..", "/in/stripe"},
		{"/in", placeNone, "", ""},
		{"/in/", placeNone, "", ""},
		{"/in//", placeNone, "", ""},
		{"/", placeNone, "", ""},
		{"", placeNone, "", ""},
		{"*", placeNone, "", ""},
		{"/healthz", placeHealth, "", ""},
		{"//healthz", placeNone, "", ""},
		{"/healthz/", placeNone, "", ""},
		{"/healthz/x", placeNone, "", ""},
	} {
		place, source, rest := route(c.path)
		if place != c.place || source != c.source || rest != c.rest {
			t.Errorf("%q: got %d %q %q, want %d %q %q", c.path, place, source, rest, c.place, c.source, c.rest)
		}
	}
}

// FuzzRoute: whatever the path, the answer is no redirect, and a source is reached
// only under its own name.
func FuzzRoute(f *testing.F) {
	for _, p := range []string{"/in/s", "//in/s", "/./in/s", "/in/s/..", "/in/%73", "/in/S", "/in/s%00", "/healthz", "/in/s;x", "/in/\xff"} {
		f.Add(p)
	}
	in := &inbox{}
	e := newEdge(f, EdgeOptions{Inbox: in}, signedSource("s"))
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		before := len(in.all())
		r, err := http.NewRequest("POST", "http://h/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.RequestURI = path
		r.Header.Set("X-Sig", sign("s3cret", []byte("{}")))
		w := newRecorder()
		e.ServeHTTP(w, r)
		if w.Code >= 300 && w.Code < 400 {
			t.Fatalf("%q: %d", path, w.Code)
		}
		stored := len(in.all()) > before
		_, source, _ := route(pathOf(path))
		if stored != (source == "s") {
			t.Fatalf("%q: stored %v, source %q", path, stored, source)
		}
		if stored && !strings.Contains(path, "/s") {
			t.Fatalf("%q reached a source it does not name", path)
		}
	})
}
