package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAgainWritesEveryByteAndChangesNone(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 256 << 10, 600_001} {
		path := filepath.Join(t.TempDir(), "f")
		want := bytes.Repeat([]byte("acuse"), size/5+1)[:size]
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		if err := Again(path); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d after, %v", size, len(got), err)
		}
		if st, err := os.Stat(path); err != nil || (size > 0 && st.ModTime().Equal(old)) {
			t.Errorf("%d bytes: not written, %v", size, err)
		}
	}
	if err := Again(filepath.Join(t.TempDir(), "missing")); err != nil {
		t.Errorf("a missing file: %v", err)
	}
}
