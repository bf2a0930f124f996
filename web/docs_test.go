package web

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every numbered promise of docs/http.md is named by a test.
func TestPromisesOfTheDocsHaveTests(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	number := regexp.MustCompile(`\bH\d+\b`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^// .*docs/http\.md.*(?:\n// .*)?`).FindAllString(string(b), -1) {
			for _, n := range number.FindAllString(line, -1) {
				named[n] = true
			}
		}
	}
	promises := regexp.MustCompile(`\*\*(H\d+)\*\*`).FindAllStringSubmatch(string(doc), -1)
	if len(promises) < 20 {
		t.Fatalf("only %d promises found", len(promises))
	}
	for _, p := range promises {
		if !named[p[1]] {
			t.Errorf("no test names %s", p[1])
		}
	}
}
