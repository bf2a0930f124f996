package bolt

import (
	"context"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// Bounds of one transaction of EndOutage.
const (
	maxFreed  = 500  // jobs changed
	maxLooked = 5000 // jobs read
)

// EndOutage makes due what waits because of an outage; see store.Outages.
func (d *DB) EndOutage(ctx context.Context, destination string, now time.Time) (int, error) {
	total := 0
	for at := num(engine.Milli(now) + 1); at != nil; {
		var list []job
		var next []byte
		err := d.do(ctx, func(w *writer) (err error) {
			list, next, err = w.postponed(destination, at)
			if err != nil {
				return err
			}
			for i := range list {
				j := list[i]
				j.due = engine.Milli(now)
				if err := w.change(&list[i], &j); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return total, wrap(err, "end outage of %s", destination)
		}
		total, at = total+len(list), next
	}
	return total, nil
}

// postponed lists the queued jobs, due at or after the key at, whose last attempt met an
// outage. next is where to go on; nil is the end.
func (w *writer) postponed(destination string, at []byte) (list []job, next []byte, err error) {
	id := w.named(destination)
	if id == 0 {
		return nil, nil, nil
	}
	looked, prefix := 0, small(id)
	for k := range w.between(tDue, prefix, at, nil, false) {
		if numAt(k, 4) == engine.Never {
			return list, nil, nil
		}
		if len(list) == maxFreed || looked == maxLooked {
			return list, append([]byte{}, k[len(prefix):]...), nil
		}
		looked++
		j, err := w.job(last(k))
		if err != nil {
			return nil, nil, err
		}
		if store.Outage(int(j.lastStatus), j.lastClass) {
			list = append(list, j)
		}
	}
	return list, nil, nil
}
