// Package keep looks after what is kept: it removes what is old without stalling what
// comes in, gives space back, reckons when the volume will be full, makes the planned
// backups, and holds the clock together when it is set.
package keep

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/store"
)

// The pace of the purge. One step's transaction is to last about aim: it holds up what is
// to be committed meanwhile.
const (
	every    = time.Minute     // between rounds
	soon     = 5 * time.Second // after one that removed something: at the cap as much goes as comes in
	again    = time.Hour       // a walk from the first delivery on: the rounds between go on where the last ended
	aim      = 20 * time.Millisecond
	minPause = 5 * time.Millisecond
	minWork  = 16
	maxWork  = 4096
	minFree  = 256 << 10 // bytes a step of reclaiming
	maxFree  = 8 << 20
	slack    = 8 << 20 // free bytes inside the file that are left for what comes in next
)

// Limits say what is kept. Zero is for ever.
type Limits struct {
	Age, DeadAge time.Duration
	Bytes        int64
}

// The ages that no key of the configuration sets.
const (
	rejectionAge = 7 * 24 * time.Hour
	noticeAge    = 30 * 24 * time.Hour
	auditAge     = 2 * 365 * 24 * time.Hour
)

// Store is what the keeper needs of the store.
type Store interface {
	store.Retention
	Health() store.Health
	Setting(ctx context.Context, name string) (value string, ok bool, err error)
	PutSetting(ctx context.Context, name, value string) error
}

// Options of New. Store, Limits and Clock are needed.
type Options struct {
	Store   Store
	Limits  func() Limits // as configured now
	Clock   *Clock
	Log     *slog.Logger
	Metrics *metrics.Set
}

// Keeper removes what is old. Make it with New.
type Keeper struct {
	opt    Options
	kick   chan struct{} // of one
	cursor int64         // of the walk
	from   time.Duration // monotonic: when the last walk began at the first delivery
	walked bool
	work   int   // of the next step
	chunk  int64 // of the next step of reclaiming
	met    measures

	mu      sync.Mutex
	figures Figures
}

type measures struct {
	deliveries, keys, rejections, bytes, freed *metrics.Counter
	step                                       *metrics.Histogram
}

// New makes a keeper; Run starts it.
func New(o Options) *Keeper {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	k := &Keeper{opt: o, kick: make(chan struct{}, 1), work: 128, chunk: 1 << 20}
	m := o.Metrics
	k.met = measures{
		deliveries: m.NewCounter(`acuse_purged_total{kind="deliveries"}`), keys: m.NewCounter(`acuse_purged_total{kind="dedup_keys"}`),
		rejections: m.NewCounter(`acuse_purged_total{kind="rejections"}`), bytes: m.NewCounter("acuse_purged_bytes_total"),
		freed: m.NewCounter("acuse_reclaimed_bytes_total"), step: m.NewHistogram("acuse_purge_step_seconds"),
	}
	return k
}

// Kick asks for a round now. It never blocks.
func (k *Keeper) Kick() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// Run works until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	for ctx.Err() == nil {
		before, wait := k.met.deliveries.Get(), every
		if err := k.Round(ctx); err != nil && ctx.Err() == nil {
			if errors.Is(err, store.ErrClosed) {
				return
			}
			k.opt.Log.Error("retention", "err", err)
		} else if k.met.deliveries.Get() > before {
			wait = soon
		}
		k.sample(ctx)
		pause(ctx, wait, k.kick)
	}
}

func pause(ctx context.Context, d time.Duration, kick <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-kick:
	case <-t.C:
	}
}

// Rule is what a purge goes by at this moment.
func (k *Keeper) Rule() store.PurgeRule {
	l := k.opt.Limits()
	return store.PurgeRule{Now: k.opt.Clock.Now(), Age: l.Age, DeadAge: l.DeadAge, MaxBytes: l.Bytes, KeepKeys: !k.opt.Clock.KeysMayGo(),
		RejectionAge: rejectionAge, NoticeAge: noticeAge, AuditAge: auditAge}
}

// Round removes what may go now, in steps with pauses, and gives space back.
func (k *Keeper) Round(ctx context.Context) error {
	if now := k.opt.Clock.opt.Mono(); !k.walked || now-k.from >= again {
		k.cursor, k.from, k.walked = 0, now, true
	}
	for {
		p, err := k.step(ctx)
		if err != nil {
			return err
		}
		if p.Deliveries > 0 && k.met.deliveries.Get()%4096 < uint64(p.Deliveries) {
			// Space goes back meanwhile: a large purge may take hours on a small machine.
			if err := k.reclaim(ctx, 16); err != nil {
				return err
			}
		}
		if !p.More {
			break
		}
	}
	return k.reclaim(ctx, 1<<20)
}

// step purges once, learns from how long it took, and rests as long.
func (k *Keeper) step(ctx context.Context) (store.Purged, error) {
	r := k.Rule()
	r.After, r.Work = k.cursor, k.work
	began := time.Now()
	p, err := k.opt.Store.Purge(ctx, r)
	if err != nil {
		return p, err
	}
	took := time.Since(began)
	k.cursor = p.Next
	k.work = int(adapt(int64(k.work), took, minWork, maxWork))
	k.met.step.Update(took.Seconds())
	k.met.deliveries.Add(p.Deliveries)
	k.met.keys.Add(p.Keys)
	k.met.rejections.Add(p.Rejections)
	k.met.bytes.Add(int(p.Bytes))
	if p.More {
		pause(ctx, max(took, minPause), nil)
	}
	return p, ctx.Err()
}

// adapt is the size of the next step after one of size n took so long, the time it waited
// for its turn included.
func adapt(n int64, took time.Duration, least, most int64) int64 {
	switch {
	case took > 4*aim:
		n /= 4
	case took > aim:
		n = n * 3 / 4
	case took < aim/2:
		n += n/4 + 1
	}
	return min(max(n, least), most)
}

// reclaim gives back what is free inside the file, but for some slack, in at most steps.
func (k *Keeper) reclaim(ctx context.Context, steps int) error {
	for range steps {
		began := time.Now()
		freed, left, err := k.opt.Store.Reclaim(ctx, k.chunk)
		if err != nil {
			return err
		}
		took := time.Since(began)
		k.met.freed.Add(int(freed))
		if freed == 0 || left <= min(slack, k.opt.Limits().Bytes/16) {
			return nil
		}
		k.chunk = adapt(k.chunk, took, minFree, maxFree)
		pause(ctx, max(took, minPause), nil)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
