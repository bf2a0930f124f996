package provider

import (
	"regexp"
	"strings"
	"testing"
)

// person finds what neutral Spanish avoids: usted, tú, and their forms.
var person = regexp.MustCompile(`(?i)(^|[^\p{L}])(usted|ustedes|tú|tu|tus|haga|copie|pegue|ponga|elija|abra|copia|pega|pon|elige|abre)([^\p{L}]|$)`)

func TestEveryProviderSaysHowToConnectItInBothLanguages(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		c := p.Connect()
		if c == nil {
			t.Errorf("%s does not say how to connect it", name)
			continue
		}
		if len(c.EN) != len(c.ES) || len(c.EN) < 3 || len(c.EN) > 6 {
			t.Errorf("%s: %d steps in English, %d in Spanish", name, len(c.EN), len(c.ES))
		}
		for lang, steps := range map[string][]string{"en": c.EN, "es": c.ES} {
			all := strings.Join(steps, "\n")
			if !strings.Contains(all, "{address}") {
				t.Errorf("%s %s: {address} is in no step", name, lang)
			}
			if needsSecret(p.auth) && !strings.Contains(all, "`secrets:") && !strings.Contains(all, "`params:") {
				t.Errorf("%s %s: nothing tells where the secret goes", name, lang)
			}
			for i, s := range steps {
				if s != strings.TrimSpace(s) || s == "" || strings.Contains(s, "  ") || !strings.ContainsAny(s[len(s)-1:], ".)") {
					t.Errorf("%s %s, step %d is not a clean sentence: %q", name, lang, i+1, s)
				}
				if rest := strings.ReplaceAll(s, "{address}", ""); regexp.MustCompile(`\{[a-z_]+\}`).MatchString(rest) {
					t.Errorf("%s %s, step %d holds a placeholder that nobody fills: %q", name, lang, i+1, s)
				}
			}
		}
		es := strings.ReplaceAll(strings.Join(c.ES, "\n"), "Tus integraciones", "") // Mercado Pago's own words
		if found := person.FindString(es); found != "" {
			t.Errorf("%s: the Spanish addresses a person: %q", name, found)
		}
	}
}
