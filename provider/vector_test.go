package provider

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// catalogueOnce is shared by the tests: a Catalogue is never changed.
var catalogueOnce = sync.OnceValues(Embedded)

func folder(t testing.TB) *Catalogue {
	t.Helper()
	c, err := catalogueOnce()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func vectorsOf(t testing.TB, name string) []Vector {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "vectors", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	vs, err := ReadVectors(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return vs
}

func TestEveryVectorOfEveryEmbeddedProviderPasses(t *testing.T) {
	t.Parallel()
	c := folder(t)
	total := 0
	for _, name := range c.Names() {
		total += len(vectorsOf(t, name))
	}
	if len(c.Names()) != 97 || total != 1343 {
		t.Errorf("%d providers, %d vectors", len(c.Names()), total)
	}
	for _, name := range c.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vs := vectorsOf(t, name)
			if len(vs) == 0 {
				t.Fatal("no vectors")
			}
			for _, v := range vs {
				if diffs := c.Judge(v, name); len(diffs) > 0 {
					t.Errorf("%s: %s", v.Name, strings.Join(diffs, "; "))
				}
			}
		})
	}
}
