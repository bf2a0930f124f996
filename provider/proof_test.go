package provider

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite proof.json")

func TestTheNumberOfVectorsThatPeopleAreToldIsRight(t *testing.T) {
	counts := map[string]int{}
	for _, name := range folder(t).Names() {
		counts[name] = len(vectorsOf(t, name))
	}
	if *update {
		b, err := json.MarshalIndent(counts, "", "  ")
		if err == nil {
			err = os.WriteFile("proof.json", append(b, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	} else if !maps.Equal(counts, proof()) {
		t.Errorf("proof.json is out of date: go test ./provider -run Vectors -update")
	}
}
