package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"acuse/config"
	"acuse/provider"
	"acuse/queue/forward"
	"acuse/store"
	"acuse/store/bolt"
	"acuse/store/sqlite"
)

var errScope = errors.New("the token has not the scope that this needs")

// version is set by the release build: -ldflags "-X main.version=1.2.3".
var version = "dev"

// buildTime is when this binary's source was committed; zero where that is not known.
func buildTime() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
				return t
			}
		}
	}
	return time.Time{}
}

func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}

// openStore opens the engine that the configuration names.
func openStore(ctx context.Context, cfg *config.Config, log *slog.Logger) (store.Store, error) {
	switch cfg.Store {
	case "bbolt":
		if err := otherEngine(cfg.DataDir, "acuse.bolt", "acuse.db"); err != nil {
			return nil, err
		}
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(100) // it copies pages on the heap: see tune
		}
		return opened(bolt.Open(ctx, cfg.DataDir, bolt.Options{Log: log, MinFree: int64(cfg.MinFree)}))
	default:
		if err := otherEngine(cfg.DataDir, "acuse.db", "acuse.bolt"); err != nil {
			return nil, err
		}
		return opened(sqlite.Open(ctx, cfg.DataDir, sqlite.Options{Log: log, MinFree: int64(cfg.MinFree)}))
	}
}

// opened keeps a nil engine out of the interface.
func opened[T store.Store](s T, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// otherEngine refuses a folder that holds the archive of the other engine only: to start
// an empty one beside it would forget every event seen.
func otherEngine(dir, own, other string) error {
	_, err := os.Stat(filepath.Join(dir, own))
	if _, there := os.Stat(filepath.Join(dir, other)); there == nil && errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("store: %s holds the archive of the other engine, %s: change store, or data_dir, in acuse.yaml", dir, other)
	}
	return nil
}

// loadCatalogue is the catalogue of the binary with the user's own files over it.
func loadCatalogue(cfg *config.Config) (*provider.Catalogue, error) {
	cat, err := provider.Embedded()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cfg.DataDir, "providers")
	switch _, err := os.Stat(dir); {
	case errors.Is(err, os.ErrNotExist):
		return cat, nil
	case err != nil:
		return nil, fmt.Errorf("own providers: %w", err)
	}
	own, err := provider.Load(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("own providers in %s: %w", dir, err)
	}
	return cat.With(own), nil
}

// signer is what a destination needs to sign events of a source afresh.
func (s *server) signer(name string) (forward.Signer, string) {
	src := s.live.Load().sources[name]
	if src == nil {
		return nil, ""
	}
	return src.checker, src.publicURL
}

// item cuts one item out of a batch of a source.
func (s *server) item(name string, body []byte, part int) ([]byte, error) {
	src := s.live.Load().sources[name]
	if src == nil {
		return nil, fmt.Errorf("source %s is not configured any more: its batches cannot be split", name)
	}
	return src.checker.Item(body, part)
}

func alertURLs(cfg *config.Config) []string {
	out := make([]string, len(cfg.Alerts))
	for i, a := range cfg.Alerts {
		out[i] = string(a.URL)
	}
	return out
}

// dashboardURL is where a person on this machine opens the dashboard.
func dashboardURL(cfg *config.Config) string {
	return "http://" + shownAddress(cfg.Admin.Listen) + strings.TrimSuffix("/"+strings.Trim(cfg.BasePath, "/"), "/")
}

// shownAddress is a listen address as it is typed into a browser on this machine.
func shownAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	switch host = cmp.Or(host, "0.0.0.0"); host {
	case "0.0.0.0", "::":
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// tune gives the memory that storage-heavy work likes, unless the environment says
// otherwise: fewer collections while the heap is small, a soft limit well under the
// 64 MB of the budget. The figures stand in docs/performance.md.
func tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(40 << 20)
	}
}
