package provider

import (
	"slices"
	"testing"
)

func TestTokensAreToldApartFromSignatures(t *testing.T) {
	t.Parallel()
	cat, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		provider, secret string
		headers, query   []string
	}{
		{"stripe", "whsec_test", nil, nil},
		{"github", "s", nil, nil},
		{"telegram", "s", []string{"X-Telegram-Bot-Api-Secret-Token"}, nil},
		{"bearer", "s", []string{"Authorization"}, nil},
		{"query-token", "s", nil, []string{"token"}},
	} {
		t.Run(c.provider, func(t *testing.T) {
			t.Parallel()
			p, ok := cat.Get(c.provider)
			if !ok {
				t.Fatal("not in the catalogue")
			}
			ch, err := p.Compile(Settings{Secrets: []string{c.secret}})
			if err != nil {
				t.Fatal(err)
			}
			if got := ch.TokenHeaders(); !slices.Equal(got, c.headers) {
				t.Errorf("headers %q, want %q", got, c.headers)
			}
			if got := ch.TokenQuery(); !slices.Equal(got, c.query) {
				t.Errorf("query %q, want %q", got, c.query)
			}
		})
	}
}
