package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A file in DATA/providers is part of the configuration: what is wrong with it stops
// check and serve, each file named with its field.
func TestOwnProviderFilesAreCheckedStrictly(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "sources:\n  stripe: {provider: stripe, secrets: [whsec_x], deliver_to: [a]}\ndestinations:\n  a: {pull: {}}\n")
	p.write("data/providers/acme.json", `{"name":"acme","titel":"Acme"}`)
	p.write("data/providers/cut.json", `{"name":"cut",`)
	p.write("data/providers/other.json", `{"name":"another","auth":{"kind":"none"}}`)
	p.write("data/providers/deep.json", `{"name":"deep","auth":{"kind":"any","of":[{"kind":"token","from":"header:X"},{"kind":"hmac","alg":"sha256","message":"{bodi}","signature":{"from":"header:S","encoding":"hex"}}]}}`)
	cmd := exec.Command(p.Bin, "check")
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "ACUSE_LANG=en")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("check takes it")
	}
	for _, want := range []string{"data/providers/acme.json: titel: unknown field", "data/providers/cut.json: line 1: it ends before its last brace", "data/providers/deep.json: auth.of[1].message: ",
		`data/providers/other.json: name: "another" is not the name of the file`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if err := p.Start(); err == nil {
		t.Error("serve starts with it")
	} else if log := p.log(); !strings.Contains(log, "acme.json: titel: unknown field") {
		t.Errorf("serve says:\n%s", log)
	}
}

func TestAnOwnFileReplacesOurs(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "sources:\n  stripe: {provider: stripe, secrets: [word], deliver_to: [a]}\ndestinations:\n  a: {pull: {}}\n")
	p.write("data/providers/stripe.json", `{"name":"stripe","title":"Mine","auth":{"kind":"token","from":"header:X-Word"},"id":{"key":"{json:n}"}}`)
	p.start()
	p.must("POST", p.in("stripe"), []byte(`{"n":7}`), "X-Word", "word").is(t, 200, `"accepted"`)
	p.must("POST", p.in("stripe"), []byte(`{"n":8}`), "X-Word", "other").is(t, 401)
	p.api("POST", "/api/v1/sources/stripe/test", map[string]string{}).is(t, 409, "There is no sample of the provider stripe. Files in the folder providers/samples/stripe")
}
