package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"acuse/provider"
)

func TestProviderListAndShow(t *testing.T) {
	t.Parallel()
	r := call(t, Options{}, "provider", "list")
	if r.code != 0 || !strings.Contains(r.out, "\nstripe ") || !strings.Contains(r.out, "\ntelegram ") {
		t.Errorf("%+v", r)
	}
	show := call(t, Options{}, "provider", "show", "stripe")
	for _, want := range []string{"signs           hmac sha256 (header Stripe-Signature), time signed, 5 min allowed", "event id        JSON field id", "remembered for  ", "leaves open     nothing known",
		"tested with     ", " test vectors, made or judged by the provider's own library", "How to connect:\n 1. Open the Stripe Dashboard", "Paste https://HOST/in/SOURCE as the endpoint URL"} {
		if !strings.Contains(show.out, want) {
			t.Errorf("no %q in\n%s", want, show.out)
		}
	}
	call(t, Options{}, "provider", "show", "strpe").want(t, 3, "", `no provider "strpe"; did you mean "stripe"?`, "acuse provider list")
	es := call(t, Options{Env: []string{"LANG=es"}}, "provider", "show", "telegram")
	if !strings.Contains(es.out, "deja abierto") || !strings.Contains(es.out, "quien conozca el token") ||
		!strings.Contains(es.out, "con url=https://SERVIDOR/in/FUENTE") {
		t.Errorf("%s", es.out)
	}
}

func TestEveryProviderCanBeShown(t *testing.T) {
	t.Parallel()
	c, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Names() {
		p, _ := c.Get(name)
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			a := newApp(Options{Stdout: &out, Env: []string{"LANG=es"}})
			a.json = asJSON
			if err := a.facts(p); err != nil || strings.Contains(out.String(), "[weak.") || strings.Contains(out.String(), "[window.") ||
				strings.Contains(out.String(), "[confidence.") || strings.Contains(out.String(), "[facts.") || strings.Contains(out.String(), "{address}") != asJSON || asJSON && !json.Valid(out.Bytes()) {
				t.Errorf("%s: %v, %s", name, err, out.String())
			}
		}
	}
}

func TestAProviderIsShownWithOurAddressAndInTheReadersWords(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "acuse.yaml")
	conf := "public_url: https://hooks.example.org/\nsources:\n  shop:\n    provider: stripe\n    secrets: [whsec_c2VjcmV0]\n    deliver_to: [app]\ndestinations:\n  app: {pull: {}}\n"
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lang, name string
		want       []string
	}{
		{"en", "stripe", []string{"Paste https://hooks.example.org/in/shop as the endpoint URL"}},
		{"en", "paymos", []string{"https://hooks.example.org/in/paymos"}},
		{"en", "paypal", []string{"only a checksum of the body (CRC-32)", "no signed time is checked"}},
		{"en", "github", []string{"header X-GitHub-Delivery", "the event id is not signed"}},
		{"en", "whatsapp", []string{"JSON field id of each event", "10.5 days", "it is one delivery"}},
		{"es", "whatsapp", []string{"10,5 días", "es una sola entrega"}},
		{"es", "slack", []string{"interactividad, comandos de barra", "campo JSON event_id; si no, {form:payload|jsonpath:trigger_id}", "un resumen del cuerpo"}},
		{"es", "mollie-classic", []string{"webhooks clásicos", "nada; acuse pregunta al proveedor"}},
		{"es", "ip-allow", []string{"Solo lista de direcciones", "nada; cuenta la dirección del emisor"}},
		{"es", "basic-auth", []string{"usuario y contraseña (cabecera Authorization)"}},
	} {
		r := call(t, Options{Env: []string{"LANG=" + c.lang}}, "provider", "show", c.name, "--config", file)
		for _, want := range c.want {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s %s: no %q in\n%s", c.lang, c.name, want, r.out)
			}
		}
	}
}

const vectors = "../provider/testdata/vectors"

func TestProviderTest(t *testing.T) {
	t.Parallel()
	r := call(t, Options{}, "provider", "test", filepath.Join(vectors, "stripe.json"), filepath.Join(vectors, "github.json"))
	if r.code != 0 || !strings.HasSuffix(r.out, " passed, 0 failed\n") || strings.HasPrefix(r.out, "0 ") {
		t.Errorf("%+v", r)
	}
}

func TestProviderTestFindsADifference(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(vectors, "stripe.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// One vector of the file asks for another id than the body holds.
	changed := strings.Replace(string(b), `"id": "evt_`, `"id": "other_`, 1)
	if changed == string(b) {
		t.Fatal("the vector was not changed")
	}
	if err := os.WriteFile(filepath.Join(dir, "stripe.json"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r := call(t, Options{}, "provider", "test", dir)
	if r.code != 1 || !strings.HasSuffix(r.out, " passed, 1 failed\n") || !strings.Contains(r.out, `id: want "other_`) {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(filepath.Join(dir, "zz.json"), []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := call(t, Options{}, "provider", "test", dir); r.code != 1 || !strings.HasSuffix(r.out, ", 2 failed\n") {
		t.Errorf("a file that is no JSON: %+v", r)
	}
	call(t, Options{}, "provider", "test", filepath.Join(dir, "none")).want(t, 3, "", "vectors cannot be read")
}
