package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acuse/config"
	"acuse/provider"
)

// One bot a source: two sources with one bot's secret would take each other's events,
// and ids of one bot say nothing about another's.
func TestASecretOfTwoSourcesIsWarnedOf(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "acuse.yaml")
	text := "sources:\n"
	for name, s := range map[string]string{"bot": "telegram one", "bot2": "telegram one", "bot3": "telegram two", "slack": "slack one", "slack2": "slack one"} {
		kind, secret, _ := strings.Cut(s, " ")
		text += "  " + name + ":\n    provider: " + kind + "\n    secrets: [" + secret + "]\n    deliver_to: [a]\n"
	}
	if err := os.WriteFile(file, []byte(text+"destinations:\n  a:\n    pull: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	sources, problems := compileSources(cfg, cat, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, other := range map[string]string{"bot": "bot2", "bot2": "bot", "bot3": "", "slack": "", "slack2": ""} {
		got := strings.Join(sources[name].warnings(cfg), "\n")
		if want := "has a secret in common with " + other; strings.Contains(got, "has a secret in common") != (other != "") || (other != "" && !strings.Contains(got, want)) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
