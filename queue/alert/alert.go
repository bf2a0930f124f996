// Package alert tells a person what needs one: dead letters, quarantine, storage
// that cannot be written. What to tell is computed from the store, and what was
// told is kept there, so that a crash loses no message. One matter is told when it
// starts, once a day while it lasts, and when it ended.
package alert

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/store"
)

// Counts is what the rules look at; store.Archive is one.
type Counts interface {
	Totals(ctx context.Context) (store.Totals, error)
	DeadGroups(ctx context.Context) ([]store.DeadGroup, error)
}

// Heads tells which jobs hold up others of their order; store.Orders is one.
type Heads interface {
	Heads(ctx context.Context, since time.Time, limit int) ([]store.Head, error)
}

// Options of an Alerter. Notices, Archive and Health are needed.
type Options struct {
	Notices store.Notices
	Archive Counts
	Health  func() store.Health
	// ClockSet is false while the wall clock cannot be right. nil does not look.
	ClockSet func() bool
	// Disk is the room on the volume of the data folder, in bytes. nil does not look.
	Disk func() (free, total int64)
	// BackupLate tells since when a planned backup is overdue. nil does not look.
	BackupLate func(ctx context.Context) (since time.Time, ok bool)
	// Orders tells which jobs hold up others of their order. nil does not look.
	Orders Heads
	// Destinations are the configured ones; jobs that wait for another name are
	// told of. nil does not look.
	Destinations func() []string
	URLs         []string       // shoutrrr service URLs; each gets every message
	Name         string         // of this acuse: "home-pi"
	Link         string         // where the dashboard is: "https://acuse.lan:8081"; empty: no link
	Language     string         // "es", or English
	Location     *time.Location // of times in messages; default time.Local
	Client       *http.Client   // default a dial.Client; services that speak no HTTP do without
	Now          func() time.Time
	Log          *slog.Logger
	Metrics      *metrics.Set
}

// The pace. Variables of the value so that a test over real sockets need not wait.
const (
	defaultEvery  = 30 * time.Second // a look at the store, unless kicked
	defaultGather = 5 * time.Second  // a kick waits for the rest of its burst
)

// Alerter sends the messages. Make it with New.
type Alerter struct {
	opt           Options
	channels      []channel
	words         *words
	kick          chan struct{} // of one
	every, gather time.Duration
	matters       map[key]*matter // by rule and subject; only Run touches it
}

// New checks the URLs. Its errors hide their values.
func New(o Options) (*Alerter, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	channels, err := open(o.URLs, o.Client)
	if err != nil {
		return nil, err
	}
	return &Alerter{opt: o, channels: channels, words: wordsOf(o.Language), kick: make(chan struct{}, 1),
		every: defaultEvery, gather: defaultGather, matters: map[key]*matter{}}, nil
}

// Kick says that something may have to be told. It never blocks.
func (a *Alerter) Kick() {
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// Run looks and tells until ctx ends.
func (a *Alerter) Run(ctx context.Context) {
	for loaded := false; ctx.Err() == nil; {
		if !loaded {
			loaded = a.load(ctx)
		}
		if loaded {
			a.round(ctx)
		}
		if a.wait(ctx, a.every, a.kick) {
			a.wait(ctx, a.gather, nil)
			select {
			case <-a.kick: // of the same burst
			default:
			}
		}
	}
}

// wait waits for d; kicked when kick came first.
func (a *Alerter) wait(ctx context.Context, d time.Duration, kick <-chan struct{}) (kicked bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-kick:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// Test sends a message to every channel and returns the first failure.
func (a *Alerter) Test(ctx context.Context) error {
	var first error
	for _, c := range a.channels {
		if err := c.send(ctx, a.prefix()+a.words.test); err != nil && first == nil {
			first = err
		}
	}
	return first
}
