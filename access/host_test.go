package access

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHostGuard(t *testing.T) {
	t.Parallel()
	h := HostGuard([]string{"hooks.example.org", "pi.local:8081", ""}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	for host, want := range map[string]int{
		"localhost":               204,
		"LOCALHOST.:8081":         204,
		"127.0.0.1:8081":          204,
		"127.8.9.1":               204,
		"[::1]:8081":              204,
		"192.168.1.5:8081":        204, // the address the connection came in on
		"hooks.example.org":       204,
		"Hooks.Example.org:443":   204,
		"pi.local":                204,
		"192.168.1.6:8081":        421,
		"evil.example.org":        421,
		"localhost.evil.example":  421,
		"127.0.0.1.nip.example":   421,
		"hooks.example.org.evil":  421,
		"":                        421,
		"[fe80::1]:8081":          421,
		"hooks.example.org@evil":  421,
		"127.0.0.1:8081.evil.org": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		local := &net.TCPAddr{IP: net.IPv4(192, 168, 1, 5), Port: 8081}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: got %d, want %d", host, w.Code, want)
		}
		if w.Code == 421 && w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%q: answered as %q", host, w.Header().Get("Content-Type"))
		}
	}
}
