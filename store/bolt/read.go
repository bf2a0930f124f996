package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"acuse/store"
	"acuse/store/engine"
)

// view runs f in a read transaction: what f reads belongs together. Everything is copied
// out before it ends, and it ends before a page renders: pages that a reader may still
// want cannot be used again.
func (d *DB) view(ctx context.Context, f func(x *tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.reading.RLock()
	defer d.reading.RUnlock()
	t, err := d.file.Load().Begin(false)
	if err != nil {
		return d.closed(err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = d.caught(p)
		}
		err = errors.Join(err, t.Rollback())
	}()
	return f(&tx{Tx: t})
}

// caught makes an error of what the engine throws at a page that is broken or cannot be
// read, and logs where that was, once a minute at most.
func (d *DB) caught(p any) error {
	now := time.Now().Unix()
	if last := d.told.Load(); now-last >= 60 && d.told.CompareAndSwap(last, now) {
		d.log.Error("read", "err", p, "stack", string(debug.Stack()))
	}
	return fault{where: "read", err: fmt.Errorf("a page is broken: %v", p), unread: true}
}

// closed gives what the engine says after Close, or while it cannot open its file, the
// contract's names.
func (d *DB) closed(err error) error {
	switch {
	case d.gone.Load():
		return store.ErrClosed
	case errors.Is(err, berrors.ErrDatabaseNotOpen), errors.Is(err, berrors.ErrInvalidMapping):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

// wrap adds what was being read.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(strings.TrimSpace(format)+": %w", append(args, err)...)
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// jobsOf reads the jobs of a delivery, by their numbers.
func (x *tx) jobsOf(d *delivery) ([]job, error) {
	list := make([]job, 0, len(d.jobs))
	for _, id := range d.jobs {
		j, err := x.jobOf(d.id, id)
		if err != nil {
			return nil, err
		}
		list = append(list, j)
	}
	return list, nil
}

// shown is the delivery without its jobs and its state.
func (x *tx) shown(d *delivery) store.Delivery {
	return store.Delivery{
		DeliveryHead: x.head(d), Quarantine: d.quarantine, Duplicates: int(d.duplicates), LastDuplicateAt: engine.Instant(d.lastDuplicateAt),
		BodyDiffers: int(d.bodyDiffers), AckMicros: d.ackMicros, Remote: d.remote, DuplicateOf: d.duplicateOf, CopyOf: d.copyOf, PayloadGone: d.payload == 0,
	}
}

// full is the delivery with its jobs as the contract shows it.
func (x *tx) full(d *delivery) (store.Delivery, error) {
	out := x.shown(d)
	jobs, err := x.jobsOf(d)
	for i := range jobs {
		out.Jobs = append(out.Jobs, x.public(&jobs[i]))
	}
	out.State = engine.State(&out, d.hold == holdQuarantined)
	return out, err
}

// deliveries reads the given numbers, in the order given; one that is not there is left
// out.
func (x *tx) deliveries(ids []int64) ([]store.Delivery, error) {
	var list []store.Delivery
	for _, id := range ids {
		d, ok, err := x.delivery(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		out, err := x.full(&d)
		if err != nil {
			return nil, err
		}
		list = append(list, out)
	}
	return list, nil
}

// found is delivery where one that is not there is an error.
func (x *tx) found(id int64) (delivery, error) {
	d, ok, err := x.delivery(id)
	if err == nil && !ok {
		err = store.ErrNotFound
	}
	return d, err
}

// Delivery reads one; see store.Archive.
func (d *DB) Delivery(ctx context.Context, id int64) (out store.Delivery, err error) {
	err = d.view(ctx, func(x *tx) error {
		row, err := x.found(id)
		if err == nil {
			out, err = x.full(&row)
		}
		return err
	})
	return out, wrap(err, "delivery %d", id)
}

// JobByID reads one; see store.Jobs.
func (d *DB) JobByID(ctx context.Context, id int64) (out store.Job, err error) {
	err = d.view(ctx, func(x *tx) error {
		j, err := x.job(id)
		out = x.public(&j)
		return err
	})
	return out, wrap(err, "job %d", id)
}

// Attempts reads the attempts of a delivery; see store.Archive.
func (d *DB) Attempts(ctx context.Context, id int64) (list []store.Attempt, err error) {
	err = d.view(ctx, func(x *tx) error {
		row, ok, err := x.delivery(id)
		if err != nil || !ok {
			return err
		}
		for _, job := range row.jobs {
			for k, v := range x.pairs(tAttempts, num(job), false) {
				a, err := decodeAttempt(k, v)
				if err != nil {
					return err
				}
				list = append(list, a.public())
			}
		}
		return nil
	})
	slices.SortFunc(list, func(a, b store.Attempt) int { return int(a.ID - b.ID) })
	return list, wrap(err, "attempts of delivery %d", id)
}

func (a *attempt) public() store.Attempt {
	return store.Attempt{ID: a.id, Job: a.job, N: int(a.n), StartedAt: engine.Instant(a.started), Resend: a.resend, Owner: a.owner, Result: a.result}
}

// Payload reads what came in; see store.Archive.
func (d *DB) Payload(ctx context.Context, delivery int64) (store.Payload, error) {
	_, p, err := d.headAndPayload(ctx, delivery)
	return p, wrap(err, "payload of delivery %d", delivery)
}

func (d *DB) headAndPayload(ctx context.Context, id int64) (head store.DeliveryHead, p store.Payload, err error) {
	err = d.view(ctx, func(x *tx) error {
		row, err := x.found(id)
		switch {
		case err != nil:
			return err
		case row.payload == 0:
			return store.ErrPayloadGone
		}
		v := x.get(tPayloads, num(row.payload))
		if v == nil {
			return fault{where: "payloads", err: fmt.Errorf("the body of delivery %d is missing", id)}
		}
		p, err = decodePayload(v)
		p.Part, head = int(row.part), x.head(&row)
		return err
	})
	return head, p, err
}

// DeadGroups groups the dead letters; see store.Archive.
func (d *DB) DeadGroups(ctx context.Context) (list []store.DeadGroup, err error) {
	groups := map[string]*store.DeadGroup{}
	err = d.view(ctx, func(x *tx) error {
		for k := range x.keys(tDead, nil, false) {
			name, at := string(k[:len(k)-16]), engine.Instant(numAt(k, len(k)-16))
			g := groups[name]
			if g == nil {
				g = &store.DeadGroup{Destination: x.name(smallAt(k, 0)), Reason: store.DeadReason(k[4]), Status: int(numAt(k, 5)), Class: name[13:], First: at, Last: at}
				groups[name] = g
			}
			g.Jobs++
			if at.Before(g.First) {
				g.First = at
			}
			if at.After(g.Last) {
				g.Last = at
			}
		}
		return nil
	})
	for _, g := range groups {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b store.DeadGroup) int { return compareGroups(&a, &b) })
	return list, wrap(err, "dead letters")
}

// compareGroups: the latest first, then by what they are.
func compareGroups(a, b *store.DeadGroup) int {
	return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Class, b.Class))
}
