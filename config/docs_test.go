package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestSnippetsOfTheDocsAreValid reads each YAML block of the docs as a config file.
func TestSnippetsOfTheDocsAreValid(t *testing.T) {
	t.Parallel()
	env := map[string]string{"STRIPE_WHSEC": "x", "TWILIO_AUTH_TOKEN": "x"}
	blocks := 0
	for _, file := range []string{"../docs/behind-a-proxy.md", "../README.md", "../README.es.md"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range yamlBlock.FindAllStringSubmatch(string(b), -1) {
			blocks++
			if _, _, err := load(file, []byte(m[1]), env, nil); err != nil {
				t.Errorf("%s:\n%s\n%v", file, m[1], err)
			}
		}
	}
	if blocks < 6 {
		t.Errorf("only %d blocks were found", blocks)
	}
	compose, err := os.ReadFile("../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseGuarded(compose); err != nil {
		t.Errorf("compose.yaml: %v", err)
	}
	if !strings.Contains(string(compose), "acuse:/data") {
		t.Error("compose.yaml keeps no data")
	}
}
