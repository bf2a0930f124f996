package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is the table of the rooms: which of ours each package may import. A row
// holds for the folders beneath it too; "..." is everything.
var mayImport = map[string][]string{
	".":               {"..."},
	"store":           nil,
	"provider":        nil,
	"config":          nil,
	"store/engine":    {"store"},
	"store/sqlite":    {"store", "store/engine"},
	"store/bolt":      {"store", "store/engine"},
	"store/storetest": {"store"},
	"access":          {"store"},
	"problem":         {"store"},
	"dial":            {"store"},
	"rule":            {"store"},
	"keys":            {"dial", "provider"},
	"keep":            {"store"},
	"queue":           {"store", "provider", "dial", "rule"},
	"effect":          {"store", "provider", "dial", "rule"},
	"admin":           {"store", "effect", "provider", "access", "problem"},
	"web":             {"store", "provider", "effect", "access", "problem", "rule"},
	"cli":             {"config", "provider", "store"},
	"demo":            {"provider"},
	"docs":            nil,                   // examples: they show the API from outside
	"scripts/tools":   {"provider", "store"}, // they look at acuse from outside
}

// inTests may be imported by any test beside what its package may: the real engine.
var inTests = []string{"store", "store/sqlite", "store/bolt", "store/storetest", "provider"}

// sourceFile is a Go file and what it imports of ours.
type sourceFile struct {
	name, dir string // slashes; the root is "."
	imports   []string
}

func TestRoomsImportOnlyWhatTheTableAllows(t *testing.T) {
	t.Parallel()
	for _, f := range sourceFiles(t) {
		row, allowed := rowOf(f.dir)
		if row == "" {
			t.Errorf("%s: its room has no row in the table", f.name)
			continue
		}
		for _, dir := range f.imports {
			// The engines beneath store import it, never the other way round.
			own := (dir == row || strings.HasPrefix(dir, row+"/")) && row != "store"
			test := strings.HasSuffix(f.name, "_test.go") && slices.Contains(inTests, dir)
			if !own && !test && !slices.Contains(allowed, dir) && !slices.Contains(allowed, "...") {
				t.Errorf("%s imports %s: %s may import of ours: %v", f.name, dir, row, allowed)
			}
		}
	}
}

// TestImportsPointOneWay: no room is more than three steps above the lowest, and
// nobody imports main.
func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	edges := map[string][]string{}
	for _, f := range sourceFiles(t) {
		if !strings.HasSuffix(f.name, "_test.go") {
			edges[f.dir] = append(edges[f.dir], f.imports...)
		}
	}
	var depth func(dir string, way []string) int
	depth = func(dir string, way []string) int {
		if slices.Contains(way, dir) {
			t.Fatalf("a circle: %s", strings.Join(append(way, dir), " → "))
		}
		deepest := 0
		for _, next := range edges[dir] {
			deepest = max(deepest, depth(next, append(way, dir)))
		}
		return deepest + 1
	}
	for dir := range edges {
		if d := depth(dir, nil); dir != "." && d > 3 {
			t.Errorf("%s stands %d steps high", dir, d)
		}
	}
}

// rowOf is the nearest row of the table above a folder.
func rowOf(dir string) (row string, allowed []string) {
	for at := dir; ; at = path.Dir(at) {
		if allowed, ok := mayImport[at]; ok && (at != "." || dir == ".") {
			return at, allowed
		}
		if at == "." {
			return "", nil
		}
	}
}

// sourceFiles parses the imports of every Go file of the module.
func sourceFiles(t *testing.T) (files []sourceFile) {
	t.Helper()
	walkTree(t, func(name string) {
		if path.Ext(name) != ".go" || strings.Contains(name, "testdata/") {
			return
		}
		ast, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(name), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		f := sourceFile{name: name, dir: path.Dir(name)}
		for _, i := range ast.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if p == "acuse" {
				t.Errorf("%s imports main", name)
			} else if dir, ok := strings.CutPrefix(p, "acuse/"); ok {
				f.imports = append(f.imports, dir)
			}
		}
		files = append(files, f)
	})
	if len(files) < 50 {
		t.Fatalf("only %d Go files were found", len(files))
	}
	return files
}

// walkTree calls f for every file of the tree that belongs to it.
func walkTree(t *testing.T, f func(name string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || name == "bin" || name == "data" || name == "screenshots"):
			return filepath.SkipDir
		case d.IsDir() && slices.Contains([]string{"internal", "pkg", "util", "utils", "common", "models", "helpers"}, d.Name()):
			t.Errorf("%s: a type lives with the code that gives it meaning", name)
		case d.Type().IsRegular() && name != ".git":
			f(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheTreeNamesNoPlaceOfItsMakers: paths of one machine and hosts of registries
// would break, or mislead, everywhere else.
func TestTheTreeNamesNoPlaceOfItsMakers(t *testing.T) {
	t.Parallel()
	// Written in halves, so that this file does not hold them.
	forbidden := []string{"/wo" + "rk/", "/tm" + "p/", "../sha" + "red", "proxy.gol" + "ang.org", "registry.np" + "mjs.org"}
	walkTree(t, func(name string) {
		b, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range forbidden {
			if i := strings.Index(string(b), word); i >= 0 && !slices.Contains(b[:min(len(b), 8000)], 0) {
				t.Errorf("%s:%d names %s", name, strings.Count(string(b[:i]), "\n")+1, word)
			}
		}
	})
}
