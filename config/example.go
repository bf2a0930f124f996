package config

import "embed"

//go:embed example.en.yaml example.es.yaml
var examples embed.FS

// Example is the first acuse.yaml: valid as it stands, with comments in the
// language ("es", else English).
func Example(language string) []byte {
	name := "example.en.yaml"
	if language == "es" {
		name = "example.es.yaml"
	}
	b, err := examples.ReadFile(name)
	must(err) // both are embedded
	return b
}
