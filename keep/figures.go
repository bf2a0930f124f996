package keep

import (
	"context"
	"encoding/json"
	"time"

	"acuse/store"
)

const (
	samplesSetting = "storage.samples"
	sampleEvery    = time.Hour
	sampleSpan     = 8 * 24 * time.Hour
	fresh          = time.Minute // how old shown figures may be
)

// Figures are what the Storage page and the status show.
type Figures struct {
	store.Usage
	At      time.Time
	Volume  int64     // bytes free on the volume
	Growth  int64     // bytes a day, of live data; 0: not known yet, or none
	CapOn   time.Time // when the archive meets its size at this rate, and the oldest go before their age; zero: not in ten years
	FullOn  time.Time // when the volume is full at this rate, if that comes before the cap; zero: it does not
	Limits  Limits
	Longest time.Duration // longest transaction since start
}

// sampled is the live bytes at an instant.
type sampled struct {
	At   int64 `json:"at"` // unix seconds
	Live int64 `json:"live"`
}

// Figures reckons, or tells what was reckoned within the last minute.
func (k *Keeper) Figures(ctx context.Context) (Figures, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.opt.Clock.Now()
	if age := now.Sub(k.figures.At); age >= 0 && age < fresh && k.figures.Limits == k.opt.Limits() {
		return k.figures, nil
	}
	f, err := k.reckon(ctx, now)
	if err == nil {
		k.figures = f
	}
	return f, err
}

func (k *Keeper) reckon(ctx context.Context, now time.Time) (Figures, error) {
	u, err := k.opt.Store.Usage(ctx, k.Rule())
	if err != nil {
		return Figures{}, err
	}
	h := k.opt.Store.Health()
	f := Figures{Usage: u, At: now, Volume: h.Free, Limits: k.opt.Limits(), Longest: h.Longest}
	samples, err := k.samples(ctx)
	if err != nil {
		return Figures{}, err
	}
	f.Growth = growth(samples, now, u.Live)
	f.CapOn = reached(now, f.Limits.Bytes-u.Live, f.Growth, f.Limits.Bytes > 0)
	f.FullOn = reached(now, f.Volume+u.Free, f.Growth, true)
	if !f.CapOn.IsZero() && !f.FullOn.IsZero() && f.CapOn.Before(f.FullOn) {
		f.FullOn = time.Time{} // the cap comes first and holds it off
	}
	return f, nil
}

// growth is bytes a day since the oldest sample that is at least an hour old; 0 when the
// archive shrank or is too young to tell.
func growth(samples []sampled, now time.Time, live int64) int64 {
	for _, s := range samples {
		if age := now.Sub(time.Unix(s.At, 0)); age >= sampleEvery && age <= sampleSpan {
			return max(0, int64(float64(live-s.Live)*float64(24*time.Hour)/float64(age)))
		}
	}
	return 0
}

// reached is when room is used up; zero when there is no limit, or not within ten years.
func reached(now time.Time, room, growth int64, limited bool) time.Time {
	const far = 3650
	if !limited || growth <= 0 {
		return time.Time{}
	}
	days := float64(max(0, room)) / float64(growth)
	if days > far {
		return time.Time{}
	}
	return now.Add(time.Duration(days * float64(24*time.Hour)))
}

func (k *Keeper) samples(ctx context.Context) (list []sampled, err error) {
	v, ok, err := k.opt.Store.Setting(ctx, samplesSetting)
	if err != nil || !ok {
		return nil, err
	}
	if err := json.Unmarshal([]byte(v), &list); err != nil {
		return nil, nil // begin anew
	}
	return list, nil
}

// sample writes down the live bytes once an hour.
func (k *Keeper) sample(ctx context.Context) {
	now := k.opt.Clock.Now()
	list, err := k.samples(ctx)
	if err != nil {
		return // told by the round
	}
	for len(list) > 0 && now.Sub(time.Unix(list[0].At, 0)) > sampleSpan {
		list = list[1:]
	}
	for len(list) > 0 && list[len(list)-1].At > now.Unix() {
		list = list[:len(list)-1] // the clock was ahead
	}
	if n := len(list); n > 0 && now.Sub(time.Unix(list[n-1].At, 0)) < sampleEvery {
		return
	}
	u, err := k.opt.Store.Usage(ctx, store.PurgeRule{Now: now})
	if err != nil {
		return
	}
	b, err := json.Marshal(append(list, sampled{now.Unix(), u.Live}))
	if err != nil {
		return
	}
	if err := k.opt.Store.PutSetting(ctx, samplesSetting, string(b)); err != nil && ctx.Err() == nil {
		k.opt.Log.Warn("note the size of the archive", "err", err)
	}
}
