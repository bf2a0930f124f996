package main

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"acuse/access"
	"acuse/problem"
	"acuse/web"
)

// privateServer has no write timeout: streams and long polls set their own deadlines.
func privateServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// machinesAndPages parts what machines call from what people see.
func (s *server) machinesAndPages() http.Handler {
	monitor := web.MonitorOptions{
		Health: s.store.Health, Totals: s.store.Totals, Stopping: s.stopping.Load, Metrics: s.metrics,
	}
	ready, figures := web.Ready(monitor), s.forMonitors(web.Metrics(monitor))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base := s.base()
		switch path := strings.TrimPrefix(r.URL.Path, base); {
		case path == "/readyz":
			ready.ServeHTTP(w, r)
		case path == "/metrics":
			figures.ServeHTTP(w, r)
		case strings.HasPrefix(path, "/api/v1/jobs/"):
			http.StripPrefix(base, s.pull).ServeHTTP(w, r)
		default:
			s.admin.ServeHTTP(w, r)
		}
	})
}

// guarded refuses requests under a stranger's host name. The names follow a reload.
func (s *server) guarded() http.Handler {
	next := s.machinesAndPages()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		access.HostGuard(s.live.Load().hosts, next).ServeHTTP(w, r)
	})
}

// base is the path that a proxy serves the dashboard under: "" or "/acuse".
func (s *server) base() string {
	return strings.TrimSuffix("/"+strings.Trim(s.live.Load().cfg.BasePath, "/"), "/")
}

// asOwner lets whoever reached the socket act as the owner: the file's mode is the
// check. No proxy stands before the socket, so its paths lack the base.
func (s *server) asOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = s.base() + r.URL.Path
		next.ServeHTTP(w, r.WithContext(access.WithGrant(r.Context(), access.Owner)))
	})
}

// forMonitors serves the figures to a read token, and to a caller on this machine
// that no proxy stands before.
func (s *server) forMonitors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r) {
			if err := s.allow(r, access.Read); err != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
				problem.Write(w, http.StatusUnauthorized, "token", "give a token with the scope read: Authorization: Bearer …")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func local(r *http.Request) bool {
	if r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" {
		return false
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// grant is who calls: the owner on the socket, or the bearer of a token.
func (s *server) grant(r *http.Request) (access.Grant, error) {
	if g, ok := access.GrantOf(r.Context()); ok {
		return g, nil
	}
	return s.tokens.Check(r)
}

// allow tells whether the caller holds the scope.
func (s *server) allow(r *http.Request, scope string) error {
	g, err := s.grant(r)
	if err != nil {
		return err
	}
	if !g.May(scope) {
		return errScope
	}
	return nil
}

// caller names whoever passed allow in leases and attempts.
func (s *server) caller(r *http.Request) string {
	g, err := s.grant(r)
	if err != nil {
		return "worker"
	}
	return g.Name
}
