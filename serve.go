package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"acuse/access"
	"acuse/cli"
	"acuse/config"
)

// serve runs acuse until ctx ends.
func serve(ctx context.Context, o cli.ServeOptions) error {
	cfg := o.Config
	log := newLog(o.Stderr, cfg.Log)
	s, err := newServer(ctx, cfg, log)
	if err != nil {
		return err
	}
	if err := s.firstOwner(ctx, cfg); err != nil {
		return errors.Join(err, s.store.Close())
	}
	s.load = o.Load
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go s.reloads(ctx, o.Load)
	return s.run(ctx, func() {
		s.welcome(ctx, o)
		debug.FreeOSMemory() // what reading catalogue and templates left behind
		if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
			log.Warn("tell systemd that acuse is ready", "err", err)
		}
	})
}

func newLog(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // the configuration allows known words only
	}
	opt := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}

// reloads reads the configuration again at every SIGHUP. A bad file keeps the old
// one running.
func (s *server) reloads(ctx context.Context, load func() (*config.Config, []config.Warning, error)) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}
		cfg, warnings, err := load()
		if err == nil {
			err = s.reload(cfg)
		}
		if err != nil {
			s.log.Error("the configuration was not reloaded; the old one stays", "err", err)
			continue
		}
		for _, w := range warnings {
			s.log.Warn("configuration", "warning", w.String())
		}
		s.log.Info("configuration reloaded", "sources", len(cfg.Sources), "destinations", len(cfg.Destinations))
	}
}

// reload takes over what can change while acuse runs: sources and destinations.
func (s *server) reload(cfg *config.Config) error {
	old := s.live.Load().cfg
	for what, changed := range map[string]bool{
		"listen": old.Listen != cfg.Listen, "admin.listen": old.Admin.Listen != cfg.Admin.Listen,
		"data_dir": old.DataDir != cfg.DataDir, "store": old.Store != cfg.Store, "base_path": old.BasePath != cfg.BasePath,
		"alerts": fmt.Sprint(alertURLs(old)) != fmt.Sprint(alertURLs(cfg)), "log": old.Log != cfg.Log,
		"trusted_proxies": fmt.Sprint(old.TrustedProxies) != fmt.Sprint(cfg.TrustedProxies),
	} {
		if changed {
			s.log.Warn("this change needs a restart", "key", what)
		}
	}
	if err := s.apply(cfg); err != nil {
		return err
	}
	s.keeper.Kick() // the retention may be another
	return nil
}

// firstOwner makes the owner whose password ACUSE_ADMIN_PASSWORD_FILE holds, where
// there is nobody yet.
func (s *server) firstOwner(ctx context.Context, cfg *config.Config) error {
	if cfg.AdminPasswordFile == "" {
		return nil
	}
	empty, err := s.users.Empty(ctx)
	if err != nil || !empty {
		return err
	}
	b, err := os.ReadFile(cfg.AdminPasswordFile)
	if err != nil {
		return fmt.Errorf("ACUSE_ADMIN_PASSWORD_FILE: %w", err)
	}
	if err := s.users.Create(ctx, "admin", strings.TrimRight(string(b), "\r\n"), access.RoleOwner); err != nil {
		return fmt.Errorf("ACUSE_ADMIN_PASSWORD_FILE: %w", err)
	}
	return nil
}

// welcome says where everything is; on the first start also how to get in.
func (s *server) welcome(ctx context.Context, o cli.ServeOptions) {
	w := welcomeWords[o.Language]
	_, port, _ := net.SplitHostPort(s.publicAddr.String())
	dir := absolute(o.Config.DataDir)
	fmt.Fprintf(o.Stdout, w.data+"\n", dir)
	in := "http://HOST:" + port + "/in/NAME"
	if o.Config.PublicURL != "" {
		in = strings.TrimSuffix(string(o.Config.PublicURL), "/") + "/in/NAME"
	}
	fmt.Fprintf(o.Stdout, w.in+"\n", in)
	empty, err := s.users.Empty(ctx)
	if err != nil {
		s.log.Error("read users", "err", err)
		return
	}
	if !empty {
		fmt.Fprintf(o.Stdout, w.dashboard+"\n", dashboardURL(s.listening(o.Config)))
		return
	}
	link, _, err := s.setupLink(ctx)
	if err != nil {
		s.log.Error("make the setup link", "err", err)
		return
	}
	fmt.Fprintf(o.Stdout, w.open+"\n", link)
	if err := os.WriteFile(filepath.Join(dir, "setup-link"), []byte(link+"\n"), 0o600); err != nil {
		s.log.Error("write the setup link", "err", err)
	}
	host, private, _ := net.SplitHostPort(s.privateAddr.String())
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		fmt.Fprintf(o.Stdout, w.tunnel+"\n", private, private)
	}
}

// listening is the configuration with the addresses that were really taken.
func (s *server) listening(cfg *config.Config) *config.Config {
	c := *cfg
	c.Listen, c.Admin.Listen = s.publicAddr.String(), s.privateAddr.String()
	return &c
}

// welcomeWords are what serve prints for people.
var welcomeWords = map[string]struct{ data, in, open, tunnel, dashboard string }{
	"en": {
		data:      "Data: %s",
		in:        "Events come in at %s",
		open:      "Open this once, within 30 minutes: %s",
		tunnel:    "From your own computer: ssh -L %s:127.0.0.1:%s HOST, then open the link",
		dashboard: "Dashboard: %s",
	},
	"es": {
		data:      "Datos: %s",
		in:        "Los eventos entran por %s",
		open:      "Abrir una vez, en los próximos 30 minutos: %s",
		tunnel:    "Desde otro equipo: ssh -L %s:127.0.0.1:%s HOST, y después abrir el enlace",
		dashboard: "Panel: %s",
	},
}
