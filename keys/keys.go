// Package keys gets what acuse needs from the providers' own hosts while it judges a
// request: public keys, and answers to the question whether a hint is true. It is what
// provider.Keys asks for. Whatever a stranger sends, the work that it can cause here is
// bounded: in time, size, number and memory.
package keys

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/dial"
	"acuse/provider"
)

// The bounds.
const (
	askTime = 5 * time.Second // for one question, from the name to the last byte

	keySize    = 64 << 10  // bytes of a key or certificate
	setSize    = 256 << 10 // bytes of a set of keys
	answerSize = 256 << 10 // bytes of an answer to Ask

	lifeUsual = time.Hour      // of a document that does not say
	lifeLeast = time.Minute    // however often it says it changes
	lifeMost  = 24 * time.Hour // however long it says it is good

	// staleMost is how long after it was last seen a document is used while it cannot be
	// had anew. It is lifeMost: a key that its provider withdrew is never
	// believed longer than the provider itself could have asked for.
	staleMost = lifeMost

	failedFor  = 30 * time.Second // a document that could not be had is not asked for again
	newerEvery = time.Minute      // between two looks for a key id that is not in a set

	maxFlights = 8   // questions under way
	maxWaiting = 64  // requests that wait for one of them
	maxGood    = 256 // documents kept
	maxBad     = 256 // failures kept, apart: they cannot push documents out
)

// Options of a Keys.
type Options struct {
	Client  *http.Client     // of package dial; default dial.Client
	Now     func() time.Time // default time.Now
	Log     *slog.Logger     // default slog.Default
	Metrics *metrics.Set     // default a private set

	tlsRoots *roots // in tests: whom certificates must chain to
}

// Keys gets and keeps documents. It implements provider.Keys.
type Keys struct {
	client *http.Client
	now    func() time.Time
	log    *slog.Logger
	roots  *roots
	good   *metrics.Counter
	failed *metrics.Counter
	slots  chan struct{}
	life   context.Context
	end    context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	docs    shelf[*document]
	bad     shelf[failure]
	flights map[docID]*flight
	waiting int
	new     bucket // documents never seen before
	asks    bucket
}

var _ provider.Keys = (*Keys)(nil)

// document is a document that was had.
type document struct {
	bytes []byte
	got   time.Time
	soon  time.Time // from here on it is looked at again, while it still serves
	until time.Time // from here on it serves only while nothing newer can be had
	dead  time.Time // from here on it does not serve
	tried time.Time // the last look, that failed or not
}

type failure struct {
	err error
	at  time.Time
}

// flight is a question under way.
type flight struct {
	done chan struct{}
	doc  []byte
	err  error
}

// Later is the error of a question that was not asked, or not answered.
type Later struct {
	Err  error
	Wait time.Duration
}

func (e *Later) Error() string             { return e.Err.Error() }
func (e *Later) Unwrap() error             { return e.Err }
func (e *Later) RetryAfter() time.Duration { return e.Wait }

var errBusy = &Later{errors.New("too many questions to providers under way"), 5 * time.Second}

// New makes a Keys. Close it when no request is under way any more.
func New(o Options) *Keys {
	k := &Keys{client: o.Client, now: o.Now, log: o.Log, roots: o.tlsRoots, slots: make(chan struct{}, maxFlights),
		docs: newShelf[*document](maxGood), bad: newShelf[failure](maxBad), flights: map[docID]*flight{},
		new: bucket{perSecond: 1, burst: 20}, asks: bucket{perSecond: 5, burst: 50}}
	if k.client == nil {
		k.client = dial.Client(dial.ClientOptions{HeaderTimeout: askTime, TLSTimeout: askTime})
	}
	if k.now == nil {
		k.now = time.Now
	}
	if k.log == nil {
		k.log = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	k.good = o.Metrics.GetOrCreateCounter(`acuse_key_fetches_total{outcome="ok"}`)
	k.failed = o.Metrics.GetOrCreateCounter(`acuse_key_fetches_total{outcome="failed"}`)
	k.life, k.end = context.WithCancel(context.Background())
	return k
}

// Close cuts the questions under way.
func (k *Keys) Close() {
	k.end()
	k.work.Wait()
}

// Key gives a document: the one kept, while it is good; else a new one, for which
// everybody who wants it waits together; else, for a day at most, the old one.
func (k *Keys) Key(ctx context.Context, r provider.KeyRequest) ([]byte, error) {
	id := idOf(r)
	k.mu.Lock()
	now := k.now()
	d, ok := k.docs.get(id)
	if ok && !now.Before(d.dead) {
		k.docs.drop(id)
		ok = false
	}
	failed, bad := k.bad.get(id)
	switch {
	case ok && r.Newer && bad && now.Sub(d.tried) < newerEvery: // the last look failed: who knows
		k.mu.Unlock()
		return nil, &Later{failed.err, newerEvery - now.Sub(d.tried)}
	case ok && r.Newer && now.Sub(d.tried) < newerEvery,
		ok && !r.Newer && now.Before(d.soon),
		ok && !r.Newer && now.Sub(d.tried) < failedFor: // a look has just failed
		k.mu.Unlock()
		return d.bytes, nil
	case ok && !r.Newer && now.Before(d.until): // it is renewed before somebody has to wait
		k.start(r, now)
		k.mu.Unlock()
		return d.bytes, nil
	}
	if bad && !ok && now.Sub(failed.at) < failedFor {
		k.mu.Unlock()
		return nil, &Later{failed.err, failedFor - now.Sub(failed.at)}
	}
	f := k.flights[id]
	if f == nil {
		if !ok && !k.new.take(now) {
			k.mu.Unlock()
			return nil, errBusy
		}
		f = k.start(r, now)
	}
	if f == nil || k.waiting >= maxWaiting {
		k.mu.Unlock()
		return k.kept(d, ok, r.Newer, errBusy)
	}
	k.waiting++
	k.mu.Unlock()
	doc, err := k.wait(ctx, f)
	if err != nil {
		return k.kept(d, ok, r.Newer, err)
	}
	return doc, nil
}

// kept falls back on the document there was. Who looks for a key that is not in it gets
// the error: whether the key is there now is what nobody knows.
func (k *Keys) kept(d *document, ok, newer bool, err error) ([]byte, error) {
	if ok && !newer && !errors.Is(err, provider.ErrUntrusted) {
		return d.bytes, nil
	}
	return nil, err
}

func (k *Keys) wait(ctx context.Context, f *flight) ([]byte, error) {
	defer func() {
		k.mu.Lock()
		k.waiting--
		k.mu.Unlock()
	}()
	select {
	case <-f.done:
		return f.doc, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// start asks for a document, unless too much is being asked already. The caller holds
// the lock. The question lives longer than who asked: others may wait for it too.
func (k *Keys) start(r provider.KeyRequest, now time.Time) *flight {
	id := idOf(r)
	if f := k.flights[id]; f != nil {
		return f
	}
	select {
	case k.slots <- struct{}{}:
	default:
		return nil
	}
	f := &flight{done: make(chan struct{})}
	k.flights[id] = f
	if d, ok := k.docs.get(id); ok {
		d.tried = now
	}
	k.work.Go(func() {
		defer func() { <-k.slots }()
		doc, life, err := k.fetch(r)
		k.land(r, f, doc, life, err)
	})
	return f
}

// land keeps what a flight brought.
func (k *Keys) land(r provider.KeyRequest, f *flight, doc []byte, life lifetime, err error) {
	id := idOf(r)
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	f.doc, f.err = doc, err
	if err == nil {
		k.good.Inc()
		d := &document{bytes: doc, got: now, tried: now, until: now.Add(life.good), dead: now.Add(staleMost)}
		if !life.ends.IsZero() {
			d.until, d.dead = earlier(d.until, life.ends), earlier(d.dead, life.ends)
		}
		d.soon = now.Add(d.until.Sub(now) * 4 / 5)
		k.docs.put(id, d)
		k.bad.drop(id)
	} else {
		k.failed.Inc()
		k.bad.put(id, failure{err, now})
		k.log.Warn("keys: could not be had", "host", r.Host, "err", err.Error())
	}
	delete(k.flights, id)
	close(f.done)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
