package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/access"
	"acuse/admin"
	"acuse/config"
	"acuse/dial"
	"acuse/keep"
	"acuse/keys"
	"acuse/provider"
	"acuse/queue"
	"acuse/queue/alert"
	"acuse/queue/command"
	"acuse/store"
	"acuse/web"
)

// grace is how long sends under way may go on after a request to stop.
const grace = 20 * time.Second

// server is a running acuse: all rooms, wired.
type server struct {
	log       *slog.Logger
	started   time.Time
	store     store.Store
	catalogue *provider.Catalogue
	client    *http.Client
	keys      *keys.Keys

	clock    *keep.Clock // what all times that are stored come from
	keeper   *keep.Keeper
	backups  *keep.Backups
	edge     *web.Edge
	pull     *web.Pull
	queue    *queue.Queue
	alerts   *alert.Alerter
	admin    *admin.Admin
	users    *access.Users
	tokens   *access.Tokens
	metrics  *metrics.Set
	public   *web.Server
	private  *http.Server
	socket   *http.Server
	stopping atomic.Bool

	publicAddr  net.Addr // set once listening
	privateAddr net.Addr

	// live is the configuration in force, replaced whole at a reload.
	live     atomic.Pointer[live]
	watchers watchers
	load     func() (*config.Config, []config.Warning, error) // reads the configuration anew
}

// live is what a reload replaces.
type live struct {
	cfg     *config.Config
	sources map[string]*source
	hosts   []string // names under which the dashboard may be opened
}

// newServer opens the store and wires the rooms. Nothing listens yet.
func newServer(ctx context.Context, cfg *config.Config, log *slog.Logger) (_ *server, err error) {
	s := &server{log: log, started: time.Now(), metrics: metrics.NewSet(), client: dial.Client(dial.ClientOptions{})}
	if s.catalogue, err = loadCatalogue(cfg); err != nil {
		return nil, err
	}
	if s.store, err = openStore(ctx, cfg, log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.store.Close())
		}
	}()
	if fs := networkFS(cfg.DataDir); fs != "" {
		log.Warn("the data folder lies on a network file system: nothing is promised there", "folder", cfg.DataDir, "kind", fs)
	}
	node, err := nodeName(ctx, s.store)
	if err != nil {
		return nil, err
	}
	totals, err := s.store.Totals(ctx)
	if err != nil {
		return nil, fmt.Errorf("read totals: %w", err)
	}
	digestKey, err := keyFile(filepath.Join(cfg.DataDir, "digest.key"))
	if err != nil {
		return nil, fmt.Errorf("key of the digests of tokens: %w", err)
	}
	s.keys = keys.New(keys.Options{Log: log, Metrics: s.metrics})
	s.clock = keep.NewClock(keep.ClockOptions{Shifter: s.store, Log: log})
	s.keeper = keep.New(keep.Options{Store: s.turning(), Limits: s.limits, Clock: s.clock, Log: log, Metrics: s.metrics})
	s.backups = keep.NewBackups(keep.BackupsOptions{Source: s.store, Dir: cfg.DataDir, Plan: s.backupPlan, Now: s.clock.Now, Log: log})
	s.users = access.NewUsers(access.UsersOptions{Accounts: s.store})
	s.tokens = access.NewTokens(access.TokensOptions{Accounts: s.store, AdminToken: string(cfg.AdminToken)})
	s.queue = queue.New(queue.Options{
		Jobs: s.store, Standings: s.store, Turned: func(string) { s.alerts.Kick() }, Node: node, Now: s.clock.Now, Changed: s.changed, Died: s.died, Woken: s.wokenPull, Log: log, Metrics: s.metrics,
	})
	s.edge = web.NewEdge(web.EdgeOptions{
		Inbox: inbox(s.store), Rejections: s.store, Wake: s.queue.Wake, Changed: s.changed, Alert: s.died, DigestKey: digestKey,
		Captures: s.store, Follow: s.keys.Visit,
		TrustedProxies: cfg.TrustedProxies, BuildTime: buildTime(), Newest: totals.Newest, Now: s.clock.Now, Log: log, Metrics: s.metrics,
	})
	s.pull = web.NewPull(web.PullOptions{
		Jobs: s.queue.Watched(), Now: s.clock.Now, Item: s.item, Allow: s.allow, Who: s.caller, Changed: s.changed, Died: s.died, Log: log, Metrics: s.metrics,
	})
	if s.alerts, err = alert.New(alert.Options{
		Notices: s.store, Archive: s.store, Orders: s.store, Health: s.store.Health, ClockSet: s.edge.ClockSet, Disk: func() (free, total int64) { return disk(cfg.DataDir) }, BackupLate: s.backups.Late, URLs: alertURLs(cfg), Name: cfg.Name,
		Language: cfg.Language, Link: dashboardURL(cfg), Destinations: s.destinationNames, Client: s.client, Log: log,
		Metrics: s.metrics,
	}); err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	if s.admin, err = admin.New(s.adminOptions(cfg)); err != nil {
		return nil, err
	}
	if err = s.apply(cfg); err != nil {
		return nil, err
	}
	s.public = web.NewServer(web.ServerOptions{Handler: s.edge, Log: log})
	s.private = privateServer(s.guarded(), log)
	s.socket = privateServer(s.asOwner(s.machinesAndPages()), log)
	return s, nil
}

// apply makes cfg the configuration in force; when it is wrong the old one stays.
func (s *server) apply(cfg *config.Config) error {
	sources, problems := compileSources(cfg, s.catalogue, s.keys)
	ls, more := lanes(cfg, s.client, s.signer)
	compiled, wrong := compileRules(cfg)
	if problems = append(append(problems, more...), wrong...); len(problems) > 0 {
		return problems
	}
	edges := make([]web.Source, 0, len(sources))
	for _, src := range sources {
		edges = append(edges, s.withDoctor(src.edge(cfg, compiled), src, sources))
	}
	s.live.Store(&live{cfg: cfg, sources: sources, hosts: cfg.Hosts()})
	s.queue.SetLanes(append(ls, queue.Lane{Name: echo, Sender: echoSender{}, Kind: "echo"}))
	s.pull.SetDestinations(pullDestinations(cfg))
	s.edge.SetSources(edges)
	return nil
}

// limits are what the configuration in force says about keeping.
func (s *server) limits() keep.Limits {
	l := s.live.Load()
	if l == nil {
		return keep.Limits{}
	}
	return keep.Limits{Age: l.cfg.Retention.Age, DeadAge: l.cfg.DeadRetention, Bytes: int64(l.cfg.Retention.Size)}
}

// backupPlan is what the configuration in force says about backups.
func (s *server) backupPlan() keep.Plan {
	l := s.live.Load()
	switch {
	case l == nil:
		return keep.Plan{}
	case l.cfg.Backup == nil: // none are planned; "back up now" needs a place all the same
		return keep.Plan{Dir: filepath.Join(l.cfg.DataDir, "backups")}
	}
	b := l.cfg.Backup
	return keep.Plan{Every: b.Every, Keep: b.Keep, Dir: b.Dir, EncryptTo: b.EncryptTo}
}

// run serves until ctx ends, then stops in order: the edge first, so that nothing
// new comes in, then the lanes, then what people and agents use, then the store.
func (s *server) run(ctx context.Context, ready func()) error {
	ls, err := s.listen()
	if err != nil {
		return errors.Join(err, s.store.Close())
	}
	defer ls.cleanUp()
	leasing, stopLeasing := context.WithCancel(context.Background())
	sending, stopSending := context.WithCancelCause(context.Background())
	defer stopSending(nil)
	var working, serving sync.WaitGroup
	failed := make(chan error, 5)
	serve := func(wg *sync.WaitGroup, what string, f func() error) {
		wg.Go(func() {
			if err := f(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("%s: %w", what, err)
			}
		})
	}
	serve(&working, "queue", func() error {
		// Before the queue ends the leases of the run they belong to.
		if err := command.Reclaim(groupsDir(s.live.Load().cfg), s.log); err != nil {
			s.log.Error("commands of an earlier run may still be alive", "err", err)
		}
		return s.queue.Run(leasing, sending)
	})
	working.Go(func() { s.alerts.Run(leasing) })
	working.Go(func() { s.clock.Run(leasing) })
	working.Go(func() { s.keeper.Run(leasing) })
	working.Go(func() { s.backups.Run(leasing) })
	serve(&serving, "public listener", func() error { return s.public.Serve(ls.public) })
	serve(&serving, "private listener", func() error { return s.private.Serve(ls.private) })
	serve(&serving, "socket", func() error { return s.socket.Serve(ls.socket) })
	ready()
	select {
	case <-ctx.Done():
	case err = <-failed:
		s.log.Error("stopping", "err", err)
	}
	s.stopping.Store(true)
	end, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err = errors.Join(err, closed(s.public.Shutdown(end), s.public.Close))
	stopLeasing()
	s.pull.Close()
	s.edge.CloseWindows()
	timer := time.AfterFunc(grace, func() { stopSending(errors.New("acuse is stopping")) })
	working.Wait()
	timer.Stop()
	s.admin.Close()
	err = errors.Join(err, closed(s.private.Shutdown(end), s.private.Close), closed(s.socket.Shutdown(end), s.socket.Close))
	serving.Wait()
	s.edge.Close()
	s.keys.Close()
	return errors.Join(err, s.store.Close())
}

// closed cuts what did not end in time: that is no failure of the shutdown.
func closed(err error, cut func() error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return cut()
	}
	return err
}

// changed tells pages, streams and test runs that a delivery moved.
func (s *server) changed(delivery int64) {
	s.admin.Changed(delivery)
	s.watchers.changed(delivery)
}

// died tells the alerts that there may be something to tell.
func (s *server) died() { s.alerts.Kick() }

// wokenPull ends the long polls of a destination that has work.
func (s *server) wokenPull(destination string) { s.pull.Wake(destination) }

// nodeName is the name of this data folder's server: made once, kept for ever, so
// that a restart knows its own earlier workers.
func nodeName(ctx context.Context, a store.Accounts) (string, error) {
	const setting = "node"
	name, ok, err := a.Setting(ctx, setting)
	if err != nil {
		return "", fmt.Errorf("read the node's name: %w", err)
	}
	if ok {
		return name, nil
	}
	name = rand.Text()[:8]
	if err := a.PutSetting(ctx, setting, name); err != nil {
		return "", fmt.Errorf("write the node's name: %w", err)
	}
	return name, nil
}
