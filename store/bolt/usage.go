package bolt

import (
	"context"

	"acuse/store"
	"acuse/store/engine"
)

// sampled is how many records at each end of a bucket tell what one takes.
const sampled = 200

// kinds are told in this order. over is what a record takes beside its own bytes: its
// share of pages and indexes, about.
var kinds = []struct {
	t    table
	over int64
}{{tDeliveries, 200}, {tPayloads, 300}, {tJobs, 120}, {tAttempts, 60}, {tRejections, 150}}

// maxLook bounds how many deliveries Usage looks at to tell what would go.
const maxLook = 200_000

// Usage tells what the archive takes; see store.Retention. Rows and bytes by kind are
// reckoned from the numbers given out and from samples: counting would read the file.
func (d *DB) Usage(ctx context.Context, r store.PurgeRule) (u store.Usage, err error) {
	u.Bytes = d.Health().Bytes
	err = d.view(ctx, func(x *tx) error {
		u.Live, _ = room(x.Tx)
		u.Free = max(0, u.Bytes-u.Live)
		if k, _ := x.bucket(tReceived).Cursor().First(); k != nil {
			u.Oldest = engine.Instant(numAt(k, 0))
		}
		for _, kind := range kinds {
			one := x.sample(kind.t)
			one.Bytes += one.Rows * kind.over
			u.Tables = append(u.Tables, one)
		}
		u.Tables = append(u.Tables, store.TableUsage{Name: "dedup", Rows: u.Tables[0].Rows, Bytes: u.Tables[0].Rows * 80})
		if r.Age > 0 {
			return x.removable(ctx, &r, &u)
		}
		return nil
	})
	if over := u.Live - r.MaxBytes; err == nil && r.MaxBytes > 0 && over > u.RemovableBytes {
		u.RemovableBytes = over
		u.Removable = max(u.Removable, over/max(1, u.Live/max(1, u.Tables[0].Rows)))
	}
	return u, wrap(err, "usage")
}

// removable counts what would go by age: finished, and not a dead letter.
func (x *tx) removable(ctx context.Context, r *store.PurgeRule, u *store.Usage) error {
	oldest, n := engine.Before(r, r.Age), 0
	for k := range x.keys(tReceived, nil, false) {
		if numAt(k, 0) > oldest || n == maxLook {
			break
		}
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		d, ok, err := x.delivery(last(k))
		if err != nil || !ok {
			return err
		}
		jobs, err := x.jobsOf(&d)
		if err != nil {
			return err
		}
		var stand []engine.Standing
		for _, j := range jobs {
			stand = append(stand, engine.Standing{State: j.state, Settled: j.settled})
		}
		rule := store.PurgeRule{Now: r.Now, Age: r.Age} // without an age of dead letters they stay
		if engine.Goes(&rule, false, d.receivedAt, d.hold == holdQuarantined, stand) {
			u.Removable++
			u.RemovableBytes += d.size + 2000
		}
	}
	return nil
}

// sample reckons a bucket from both its ends.
func (x *tx) sample(t table) store.TableUsage {
	u := store.TableUsage{Name: tableNames[t]}
	var rows, bytes, dense int64
	var ends [2]int64
	for i, back := range []bool{false, true} {
		var n, first, last int64
		for k, v := range x.pairs(t, nil, back) {
			if last = numAt(k, 0); n == 0 {
				first = last
			}
			bytes += int64(len(k) + len(v))
			if n++; n == sampled {
				break
			}
		}
		if n < sampled {
			u.Rows, u.Bytes = n, bytes
			return u
		}
		rows, ends[i] = rows+n, first
		dense += max(first, last) - min(first, last) + 1
	}
	u.Rows = (ends[1] - ends[0] + 1) * rows / dense
	u.Bytes = u.Rows * bytes / rows
	return u
}
