package provider

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

const referencePath = "../docs/reference/providers.md"

// TestTheReferenceOfProvidersIsThatOfTheCatalogue: docs/reference/providers.md is made
// of the files and of nothing else; -update writes it anew.
func TestTheReferenceOfProvidersIsThatOfTheCatalogue(t *testing.T) {
	want := reference(folder(t))
	if *update {
		if err := os.WriteFile(referencePath, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference/providers.md is out of date: go test ./provider -run Reference -update")
	}
}

var weakText = map[Weakness]string{
	WeakAsked: "nothing is signed: acuse asks back", WeakAddress: "an address alone proves little", WeakPart: "only some fields are signed",
	WeakNoAuth: "anyone who knows the address can send", WeakToken: "whoever learns the token can send anything", WeakBody: "the body is not signed",
	WeakChecksum: "only a checksum of the body is signed", WeakReplay: "no signed time is checked", WeakFreeID: "the id is not signed", WeakNoID: "no event id", WeakBodyID: "the id is a digest of the body",
	WeakRetryID: "the id changes on a retry", WeakResendID: "the id changes on a resend",
}

func reference(c *Catalogue) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Providers

The %d providers that acuse knows, made from their files in `+"`provider/catalogue`"+`. `+"`acuse provider show NAME`"+` tells more of one,
with the steps to connect it; a provider that is missing can be [described](../how-to/describe-your-own-provider.md).

* **Signs**: the scheme, and where its signature or token stands.
* **Event id**: what acuse recognises repeats by; several are tried in order.
* **Retries**: how long and how often the provider tries, as far as it is documented.
* **Remembered**: how long acuse knows an id again, before `+"`dedup_window`"+` and the life of the delivery.
* **Leaves open**: what no receiver can protect, since the provider's contract does not.
* **Checked**: test vectors, and whether they were made or judged by the provider's own library, checked against an example in its
  docs, or computed from its written description (spec).

| name | signs | event id | retries | remembered | leaves open | checked |
| --- | --- | --- | --- | --- | --- | --- |
`, len(c.Names()))
	for _, name := range c.Names() {
		p, _ := c.Get(name)
		f := p.Facts()
		signs := strings.Join(f.Schemes, ", ")
		if len(f.Places) > 0 {
			signs += " in " + code(f.Places)
		}
		id := code(f.ID)
		if len(f.ID) == 0 {
			id = "none; acuse makes one"
		}
		var weak []string
		for _, w := range f.Weaknesses {
			if weakText[w] == "" {
				panic("no words for " + w)
			}
			weak = append(weak, weakText[w])
		}
		fmt.Fprintf(&b, "| `%s` %s | %s | %s | %s | %s | %s | %d, %s |\n", name, cell(p.Title), signs, id, retried(&f), lasts(f.Window),
			orDash(strings.Join(weak, "; ")), f.Vectors, f.Confidence)
	}
	return b.Bytes()
}

func code(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = "`" + cell(s) + "`"
	}
	return strings.Join(out, ", ")
}

// cell keeps a text from ending the cell of a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func retried(f *Facts) string {
	var parts []string
	if f.Attempts == 1 {
		return "none"
	}
	if f.Horizon > 0 {
		parts = append(parts, lasts(f.Horizon))
	}
	if f.Attempts > 0 {
		parts = append(parts, fmt.Sprintf("%d tries", f.Attempts))
	}
	return orDash(strings.Join(parts, ", "))
}

func lasts(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day && d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	case d >= time.Hour:
		return fmt.Sprintf("%.4g h", d.Hours())
	}
	return fmt.Sprintf("%.2g min", d.Minutes())
}
