package effect

import (
	"slices"
	"strings"
	"testing"
)

func TestPathsThatCouldBeReadInTwoWaysAreRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"", "v1", "//v1", "/v1//refunds", "/v1/refunds/", "/v1/./refunds", "/v1/../admin", "/v1/%2e%2e/admin", "/v1/%2E/x",
		"/v1%2frefunds", "/v1/%2Fadmin", "/v1/%252e%252e/x", "/v1/a%2525", "/v1/a%5cb", `/v1/a\b`, "/v1/%00", "/v1/a%0d%0ab", "/v1/%zz",
		"/v1/refunds;x=1", "/v1/refunds%3bx", "/v1/a%3fb", "/v1/a%23b", "/v1/%7f",
	} {
		if got, err := Segments(path); err == nil {
			t.Errorf("%q is taken as %q", path, got)
		}
	}
}

func TestWhatIsMatchedIsWhatIsSent(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/": "/", "/v1/refunds": "/v1/refunds", "/v1/%72efunds": "/v1/refunds", "/a%20b": "/a%20b", "/caf%c3%a9": "/caf%C3%A9",
		"/a%2Bb": "/a+b", "/100%25": "/100%25", "/v1/a:b@c": "/v1/a:b@c",
	} {
		s, err := Segments(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := Join(s); got != want {
			t.Errorf("%s goes out as %s, want %s", path, got, want)
		}
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, method, path string
		want                  bool
	}{
		{"POST /v1/refunds", "POST", "/v1/refunds", true},
		{"POST /v1/refunds", "POST", "/v1/%72efunds", true},
		{"POST /v1/refunds", "GET", "/v1/refunds", false},
		{"POST /v1/refunds", "post", "/v1/refunds", false},
		{"POST /v1/refunds", "POST", "/v1/refunds/re_1", false},
		{"POST /v1/refunds", "POST", "/v1", false},
		{"GET /v1/refunds/{id}", "GET", "/v1/refunds/re_1", true},
		{"GET /v1/refunds/{id}", "GET", "/v1/refunds", false},
		{"GET /v1/refunds/{id}", "GET", "/v1/refunds/re_1/x", false},
		{"GET /v1/{rest...}", "GET", "/v1", true},
		{"GET /v1/{rest...}", "GET", "/v1/a/b/c", true},
		{"GET /v1/{rest...}", "GET", "/v2/a", false},
		{"GET /", "GET", "/", true},
		{"GET /", "GET", "/a", false},
		{"GET /{rest...}", "GET", "/a/b", true},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		s, err := Segments(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Matches(c.method, s); got != c.want {
			t.Errorf("%s for %s %s: %v", c.pattern, c.method, c.path, got)
		}
	}
	for _, bad := range []string{"", "POST", "/v1", "post /v1", "POST v1", "POST /v1//x", "POST /v1/*", "POST /v1/a{id}", "POST /{rest...}/x", "POST /v1/../x", "POST /v1/"} {
		if _, err := ParsePattern(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzPathIsStable(f *testing.F) {
	f.Add("/v1/refunds")
	f.Add("/v1/%2e%2e/x")
	f.Fuzz(func(t *testing.T, path string) {
		s, err := Segments(path)
		if err != nil {
			return
		}
		out := Join(s)
		again, err := Segments(out)
		if err != nil || !slices.Equal(s, again) {
			t.Fatalf("%q goes out as %q, which reads %q, %v", path, out, again, err)
		}
		if strings.Contains(out, "//") || strings.Contains(out, "/../") || strings.Contains(strings.ToLower(out), "%2f") {
			t.Fatalf("%q goes out as %q", path, out)
		}
	})
}
