package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of the public listener, from design section 6.
const (
	headerTime = 5 * time.Second
	bodyTime   = 15 * time.Second // more for sources with larger bodies: readTime
	writeTime  = 15 * time.Second
	idleTime   = 60 * time.Second
	maxHeader  = 32 << 10
)

// ServerOptions configure a Server. Only Handler is required.
type ServerOptions struct {
	Handler  http.Handler
	MaxConns int // open at a time; default three quarters of the descriptors allowed, at most 1024
	Log      *slog.Logger
}

// Server is the public listener: net/http with every limit that strangers call for.
type Server struct {
	http  http.Server
	conns *conns
}

// NewServer makes a server; Serve starts it.
func NewServer(o ServerOptions) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MaxConns <= 0 {
		o.MaxConns = maxConns(maxDescriptors())
	}
	s := &Server{conns: newConns(o.MaxConns)}
	s.http = http.Server{
		Handler:           o.Handler,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader - 4<<10, // net/http allows 4 KiB on top
		ConnContext:       withConn,
		ConnState:         connState,
		// "OPTIONS *" is for the handler, too, which knows no such place.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// Serve answers the connections of l until Shutdown or Close; it closes l. The error
// is http.ErrServerClosed then.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(s.conns.listen(l)) }

// Shutdown stops listening and waits for the requests under way.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Close ends at once.
func (s *Server) Close() error { return s.http.Close() }
