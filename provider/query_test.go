package provider

import "testing"

func TestReadsQuery(t *testing.T) {
	t.Parallel()
	all, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"stripe": false, "github": false, "query-token": true, "twilio": true, "mercado-pago": true, "telegram": false} {
		p, ok := all.Get(name)
		if !ok {
			t.Fatalf("no provider %s", name)
		}
		c, err := p.Compile(Settings{Waiting: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := c.ReadsQuery(); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
