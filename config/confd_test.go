package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestASecretIsAddedAndRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	main := filepath.Join(dir, "acuse.yaml")
	text := "data_dir: ./data\nsources:\n  notion:\n    provider: notion\n    secrets: capture\n    deliver_to: [a]\ndestinations:\n  a:\n    pull: {}\n"
	if err := os.WriteFile(main, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func() *Source {
		t.Helper()
		cfg, _, err := Load(main, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Sources["notion"]
	}
	if s := load(); !s.Secrets.Capture {
		t.Fatalf("%+v", s.Secrets)
	}
	data := filepath.Join(dir, "data")
	want := []string{"plain", `it's "quoted": ${HOME} #x`, "- 7", "0x1F", "ñ"}
	for i, secret := range want {
		if _, err := AddSecret(data, "notion", secret); err != nil {
			t.Fatal(err)
		}
		s := load()
		if got := s.Secrets.Strings(); s.Secrets.Capture || !slices.Equal(got, want[:i+1]) {
			t.Fatalf("after %q: %q, capture %v", secret, got, s.Secrets.Capture)
		}
	}
	undo, err := AddSecret(data, "notion", "gone")
	if err != nil {
		t.Fatal(err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if got := load().Secrets.Strings(); !slices.Equal(got, want) {
		t.Errorf("after undo: %q", got)
	}
	entries, err := os.ReadDir(filepath.Join(data, "conf.d"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "notion.yaml" {
		t.Errorf("%v %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestASecretThatWouldNameAFileIsRefused(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"file:/etc/passwd", "", " "} {
		if _, err := AddSecret(t.TempDir(), "notion", secret); err == nil {
			t.Errorf("%q was written", secret)
		}
	}
}

// A source that was made in the browser keeps what it has.
func TestASecretIsAddedToASourceOfConfD(t *testing.T) {
	t.Parallel()
	got, err := withSecret([]byte("sources:\n  asana:\n    provider: asana\n    secrets: capture\n    deliver_to: [a]\n"), "asana", "s")
	if err != nil || !strings.Contains(string(got), "provider: asana") || !strings.Contains(string(got), "more_secrets:") {
		t.Errorf("%s, %v", got, err)
	}
	if s := Snippet("asana", "s"); !strings.Contains(s, "more_secrets:\n") || !strings.Contains(s, "asana:") {
		t.Errorf("%s", s)
	}
}
