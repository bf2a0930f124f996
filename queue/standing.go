package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"acuse/store"
)

// Standings is where the lanes keep how they stand, so that a restart forgets neither a
// pause nor an outage; a store.Store is one.
type Standings interface {
	store.Outages
	Setting(ctx context.Context, name string) (value string, ok bool, err error)
	PutSetting(ctx context.Context, name, value string) error
}

// Errors of Pause, Resume and Probe.
var (
	ErrNoLane  = errors.New("queue: no such destination")
	ErrNotDown = errors.New("queue: the destination is not down")
	ErrPaused  = errors.New("queue: the destination is paused")
)

// Status is how a lane stands now.
type Status struct {
	Paused      time.Time // since when; zero: it is not
	Down        time.Time // since when the destination is down; zero: it is not
	Status      int       // of the outage: how the latest attempt ended
	Class       string
	Probes      int       // that came to nothing since then
	ProbeAt     time.Time // when the next probe may be sent
	Probing     bool      // one is under way
	HoldUntil   time.Time // a 429 asked for quiet until then; zero: none did
	Limit       int       // sends at a time: below Concurrency during a slow start
	Concurrency int
	Running     int
	Rate        float64 // sends a second; 0 is no limit
	MaxAge      time.Duration
	Pull        bool
}

// Status tells how a destination's lane stands; ok is false when there is none.
func (q *Queue) Status(name string) (s Status, ok bool) {
	l := q.lane(name)
	if l == nil {
		return Status{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg == nil {
		return Status{}, false
	}
	p, c := &l.pace, l.cfg
	s = Status{Paused: p.PausedAt, Down: p.DownSince, Status: p.Status, Class: p.Class, Probes: p.Probes, ProbeAt: p.ProbeAt, Probing: p.probe != 0,
		Limit: p.sends(c.Concurrency), Concurrency: c.Concurrency, Running: l.running, Rate: c.Rate, MaxAge: c.MaxAge, Pull: c.Sender == nil}
	if p.HoldUntil.After(q.opt.Now()) {
		s.HoldUntil = p.HoldUntil
	}
	return s, true
}

// Down lists the destinations that are down, and since when.
func (q *Queue) Down() map[string]time.Time {
	q.mu.Lock()
	names := make([]string, 0, len(q.lanes))
	for name := range q.lanes {
		names = append(names, name)
	}
	q.mu.Unlock()
	out := map[string]time.Time{}
	for _, name := range names {
		if s, ok := q.Status(name); ok && !s.Down.IsZero() {
			out[name] = s.Down
		}
	}
	return out
}

// Pause stops a lane from leasing, also over restarts, until Resume. When it returns nil
// that is on disk. Sends under way end as they will. changed is false when it was paused.
func (q *Queue) Pause(ctx context.Context, name string) (changed bool, err error) {
	return q.set(ctx, name, func(p *pace) (bool, error) {
		if !p.PausedAt.IsZero() {
			return false, nil
		}
		p.PausedAt = q.opt.Now().Round(0).UTC()
		return true, nil
	})
}

// Resume ends a pause. changed is false when there was none.
func (q *Queue) Resume(ctx context.Context, name string) (changed bool, err error) {
	return q.set(ctx, name, func(p *pace) (bool, error) {
		was := !p.PausedAt.IsZero()
		p.PausedAt = time.Time{}
		return was, nil
	})
}

// Probe makes the next probe of a destination that is down due now. changed is false when
// one is under way.
func (q *Queue) Probe(ctx context.Context, name string) (changed bool, err error) {
	return q.set(ctx, name, func(p *pace) (bool, error) {
		switch {
		case !p.PausedAt.IsZero():
			return false, ErrPaused
		case !p.down():
			return false, ErrNotDown
		}
		p.ProbeAt = q.opt.Now().Round(0).UTC()
		return p.probe == 0, nil
	})
}

// set changes a lane's standing and stores it.
func (q *Queue) set(ctx context.Context, name string, f func(*pace) (bool, error)) (changed bool, err error) {
	l := q.lane(name)
	if l == nil || l.settings() == nil {
		return false, ErrNoLane
	}
	if err := l.load(ctx); err != nil {
		return false, err
	}
	l.mu.Lock()
	before := l.pace.standing
	changed, err = f(&l.pace)
	l.mu.Unlock()
	if err != nil || !changed {
		return false, err
	}
	if err := l.save(ctx); err != nil {
		l.mu.Lock() // what is not on disk is not promised
		l.pace.PausedAt, l.pace.ProbeAt = before.PausedAt, before.ProbeAt
		l.mu.Unlock()
		return false, err
	}
	q.Wake([]string{name})
	return true, nil
}

func (q *Queue) lane(name string) *lane {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lanes[name]
}

// paused says whether a lane is paused, also before it runs.
func (q *Queue) paused(ctx context.Context, name string) (bool, error) {
	l := q.lane(name)
	if l == nil {
		return false, nil
	}
	if err := l.load(ctx); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.pace.PausedAt.IsZero(), nil
}

func (l *lane) setting() string { return "lane:" + l.name }

// load reads how the lane stood, once. Until then it leases nothing.
func (l *lane) load(ctx context.Context) error {
	l.saving.Lock()
	defer l.saving.Unlock()
	if l.loaded {
		return nil
	}
	var s standing
	if db := l.q.opt.Standings; db != nil {
		text, ok, err := db.Setting(ctx, l.setting())
		if err != nil {
			return fmt.Errorf("how %s stands: %w", l.name, err)
		}
		if ok {
			if err := json.Unmarshal([]byte(text), &s); err != nil {
				l.q.opt.Log.Error("how a destination stood cannot be read; it starts anew", "destination", l.name, "err", err)
				s = standing{}
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.standing, l.pace.limit, l.loaded = s, 1, true
	return nil
}

// save stores how the lane stands at this moment.
func (l *lane) save(ctx context.Context) error {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	s := l.pace.standing
	l.mu.Unlock()
	if l.q.opt.Standings == nil {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return l.q.opt.Standings.PutSetting(ctx, l.setting(), string(text))
}

// changed sees to it that the standing is stored soon; l.mu is held. No attempt waits for it:
// a crash before it is written costs a few more failures, or one more probe.
func (l *lane) changed() {
	l.dirty = true
	if !l.writing {
		l.writing = true
		l.q.wg.Go(l.write)
	}
}

// write stores the standing until it is on disk, and frees what an ended outage held up.
// The outage counts as over on disk before, and as freed after, so that a crash between
// frees again.
func (l *lane) write() {
	ctx, end := outlive(l.work, settleGrace)
	defer end()
	var sick backoff
	for {
		l.mu.Lock()
		free, closings := l.pace.Freeing, l.pace.closings
		if !l.dirty && !free {
			l.writing = false
			l.mu.Unlock()
			return
		}
		l.dirty = false
		l.mu.Unlock()
		err := l.save(ctx)
		if err == nil && free {
			err = l.free(ctx, closings)
		}
		if err == nil {
			sick = backoff{}
			continue
		}
		if sick.tries == 0 {
			l.q.opt.Log.Error("how a destination stands: kept until the storage works", "destination", l.name, "err", err)
		}
		again := !errors.Is(err, store.ErrClosed) && sleep(ctx, sick.next(time.Second, 5*time.Second), nil)
		l.mu.Lock()
		l.dirty, l.writing = true, again
		l.mu.Unlock()
		if !again {
			return
		}
	}
}

// free makes due what the outage held up that the closing of that number ended.
func (l *lane) free(ctx context.Context, closing int) error {
	if l.q.opt.Standings != nil {
		n, err := l.q.opt.Standings.EndOutage(ctx, l.name, l.q.opt.Now())
		if err != nil {
			return err
		}
		l.q.opt.Log.Info("destination is back", "destination", l.name, "jobs made due", n)
	}
	l.mu.Lock()
	if l.pace.closings == closing {
		l.pace.Freeing, l.dirty = false, true
	}
	l.mu.Unlock()
	l.wake()
	return nil
}
