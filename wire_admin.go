package main

import (
	"context"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"acuse/access"
	"acuse/admin"
	"acuse/cli"
	"acuse/config"
	"acuse/web"
)

// adminOptions hands the dashboard what it needs.
func (s *server) adminOptions(cfg *config.Config) admin.Options {
	return admin.Options{
		Archive: s.store, Operator: s.turning(), Orders: s.store, Rejections: s.store, Notices: s.store, Accounts: s.store,
		Users: s.users, Tokens: s.tokens, Sessions: access.NewSessionStore(s.store, nil), Files: adminFiles(),
		Sources:      s.shownSources,
		Destinations: func() []admin.Destination { return shownDestinations(s.live.Load().cfg) },
		Release:      web.NewReleaser(s.edge, s.store).Release,
		Recheck:      s.recheck(),
		NewKey:       s.newKey,
		Wake:         s.queue.Wake,
		Test:         s.test,
		Capture:      s.capture,
		Backup:       s.backups.Make,
		Storage:      s.storage,
		BackupNow:    s.backups.Now,
		VerifyBackup: s.verifyNewest,
		Check:        s.store.Check,
		Erase:        s.turning().Erase,
		Import:       s.store.Import,
		SetupLink:    s.setupLink,
		Lane:         s.laneState,
		LaneAct:      s.laneAct,
		Health:       s.store.Health,
		Disk:         func() (free, total int64) { return disk(cfg.DataDir) },
		Info: admin.Info{
			Name: cfg.Name, Version: version, Commit: commit(), DataDir: absolute(cfg.DataDir), StartedAt: s.started,
		},
		BasePath: cfg.BasePath,
		Language: cfg.Language,
		Now:      s.clock.Now,
		Log:      s.log,
	}
}

func (s *server) shownSources() []admin.Source {
	l := s.live.Load()
	cfg := l.cfg
	if s.publicAddr != nil {
		cfg = s.listening(cfg) // port 0 is a port by now
	}
	var out []admin.Source
	for _, name := range slices.Sorted(maps.Keys(l.sources)) {
		out = append(out, l.sources[name].page(cfg))
	}
	return out
}

// newKey is the idempotency key of an event at a destination, under the names that
// the configuration gives both for keys.
func (s *server) newKey(source, eventID, destination string) string {
	l := s.live.Load()
	if src := l.cfg.Sources[source]; src != nil && src.KeyName != "" {
		source = src.KeyName
	}
	if d := l.cfg.Destinations[destination]; d != nil && d.KeyName != "" {
		destination = d.KeyName
	}
	return web.Key(source, eventID, destination)
}

// setupLink makes the link that lets its bearer in once.
func (s *server) setupLink(ctx context.Context) (string, time.Time, error) {
	token, expires, err := s.users.NewSetupLink(ctx)
	if err != nil {
		return "", time.Time{}, err
	}
	cfg := *s.live.Load().cfg
	if s.privateAddr != nil {
		cfg.Admin.Listen = s.privateAddr.String()
	}
	return dashboardURL(&cfg) + "/setup?t=" + url.QueryEscape(token), expires, nil
}

// absolute is a path that means the same in every folder.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// disk is the room on the volume of a folder, in bytes.
func disk(dir string) (free, total int64) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize)
}

// storage reckons what the archive takes, for the page and the status.
func (s *server) storage(ctx context.Context) (admin.Storage, error) {
	f, err := s.keeper.Figures(ctx)
	if err != nil {
		return admin.Storage{}, err
	}
	last, err := s.backups.Last(ctx)
	if err != nil {
		return admin.Storage{}, err
	}
	dir := s.live.Load().cfg.DataDir
	_, total := disk(dir)
	_, late := s.backups.Late(ctx)
	plan := s.backupPlan()
	return admin.Storage{
		Usage: f.Usage, Volume: f.Volume, Total: total, Growth: f.Growth, CapOn: f.CapOn, FullOn: f.FullOn,
		Age: f.Limits.Age, DeadAge: f.Limits.DeadAge, Cap: f.Limits.Bytes, Longest: f.Longest,
		LastBackup: last, Every: plan.Every, Late: late, BackupDir: plan.Dir, Network: networkFS(dir),
	}, nil
}

// verifyNewest opens the newest backup as a restore would.
func (s *server) verifyNewest(ctx context.Context) (string, []string, error) {
	path := s.backups.Newest()
	switch {
	case path == "":
		return "", nil, admin.ErrNoBackupYet
	case filepath.Ext(path) == ".age":
		return path, nil, admin.ErrSealedBackup
	}
	c, err := verify(ctx, cli.VerifyOptions{File: path})
	return path, c.Problems, err
}

// networkFS names the network file system that a folder lies on; empty: it is local, as
// far as the system tells. Locks and flushes cannot be relied on there.
func networkFS(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return ""
	}
	return map[int64]string{
		0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x01021997: "9P", 0x00c36400: "Ceph", 0x5346414f: "AFS",
		0x0bd00bd0: "Lustre", 0x01161970: "GFS2", 0x7461636f: "OCFS2", 0x47504653: "GPFS",
	}[int64(uint32(st.Type))]
}
