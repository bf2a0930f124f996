package config

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
)

const marker = "whsec_PLANTED"

// FuzzRead: whatever stands in the file, reading ends, without a panic, and tells no
// value: the marker may show only where it came to stand as a key.
func FuzzRead(f *testing.F) {
	f.Add(full, "\nname: ")
	f.Add("sources:\n  a:\n    secrets: [", "]\n    provider: x\n")
	f.Add("sources:\n  a:\n    secret: ", "\n")
	f.Add("a: \"", "")
	f.Add("k: |\n  ", "\n x: y\n")
	f.Add("destinations: {a: {url: \"http://u:", "@h/?x\"}}")
	f.Add("? ", "\n: x")
	f.Add("&a ", "\n*a : !!int x")
	f.Add("listen: \"${", "}\"")
	f.Add("alerts: [{url: \"", "\"}]\n---\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		text := before + marker + after
		c, w, err := load("acuse.yaml", []byte(text), fullEnv, nil)
		if isKey(text) {
			return
		}
		told := warned(w)
		if err != nil {
			told += err.Error()
		}
		if strings.Contains(told, marker) {
			t.Fatalf("%q tells its value: %s", text, told)
		}
		if c != nil {
			if _, err := c.Redacted(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// isKey tells whether the marker is (a part of) a key or of a variable's name.
func isKey(text string) bool {
	for _, m := range variable.FindAllString(text, -1) {
		if strings.Contains(m, marker) {
			return true
		}
	}
	file, err := parseGuarded([]byte(text))
	if err != nil {
		return false
	}
	found := false
	for _, d := range file.Docs {
		if d.Body != nil {
			ast.Walk(keyFinder{&found}, d.Body)
		}
	}
	return found
}

type keyFinder struct{ found *bool }

func (k keyFinder) Visit(n ast.Node) ast.Visitor {
	if kv, ok := n.(*ast.MappingValueNode); ok && strings.Contains(kv.Key.String(), marker) {
		*k.found = true
	}
	return k
}

func FuzzScalars(f *testing.F) {
	for _, s := range []string{"30s", "7d12h", "99999d", "1.5h", "512KiB", "9EiB", "-1", "10.0.0.0/8", "5/s", "::1%eth0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseDuration(s); err == nil {
			if d < 0 {
				t.Fatalf("%q is %v", s, d)
			}
			if again, err := parseDuration(formatDuration(d)); err != nil && d >= 1e6 || err == nil && again != d {
				t.Fatalf("%q is shown as %s", s, formatDuration(d))
			}
		}
		if n, err := parseSize(s); err == nil && n < 0 {
			t.Fatalf("%q is %d", s, n)
		}
		if p, err := parsePrefix(s); err == nil && !p.IsValid() {
			t.Fatalf("%q is %v", s, p)
		}
		if r, err := parseRate(s); err == nil && (r.N < 1 || r.Per == 0) {
			t.Fatalf("%q is %v", s, r)
		}
	})
}
