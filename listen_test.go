package main

import (
	"net"
	"os"
	"strings"
	"testing"
)

func TestATakenPortIsToldInOneLine(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"listen", "admin.listen"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "sources:\n  s: {provider: stripe, secrets: [whsec_x], deliver_to: [app]}\ndestinations:\n  app: {url: \"http://127.0.0.1:1/\"}\n")
			addr := p.Public
			if which == "admin.listen" {
				addr = p.Admin
			}
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := p.Start(); err == nil {
				t.Fatal("it starts on a port that is taken")
			}
			log, err := os.ReadFile(p.Log())
			if err != nil {
				t.Fatal(err)
			}
			if text := string(log); !strings.Contains(text, "address already in use") || strings.Contains(text, "goroutine") {
				t.Errorf("it says:\n%s", text)
			}
		})
	}
}
