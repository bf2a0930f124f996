package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"acuse/store"
	"acuse/store/engine"
)

// What one transaction of a load holds at most.
const (
	loadRecords = 500
	loadBytes   = 4 << 20
)

// Load writes the records of a dump into an empty store; see store.Dumper.
func (d *DB) Load(ctx context.Context, next func() (store.Record, error)) error {
	if err := d.do(ctx, (*writer).mustBeEmpty); err != nil {
		return wrap(err, "load")
	}
	for more := true; more; {
		var batch []store.Record
		for bytes := 0; len(batch) < loadRecords && bytes < loadBytes; {
			r, err := next()
			if errors.Is(err, io.EOF) {
				more = false
				break
			}
			if err != nil {
				return wrap(err, "load")
			}
			if r.Payload != nil {
				bytes += len(r.Payload.Body)
			}
			batch = append(batch, r)
		}
		if err := d.do(ctx, func(w *writer) error {
			for _, r := range batch {
				if err := w.loadRecord(&r); err != nil {
					return fault{where: "load", err: err} // takes the whole batch back
				}
			}
			return nil
		}); err != nil {
			return wrap(err, "load")
		}
	}
	return nil
}

func (w *writer) mustBeEmpty() error {
	for _, t := range []table{tDeliveries, tUsers, tRejections} {
		if k, _ := w.bucket(t).Cursor().First(); k != nil || t == tDeliveries && w.bucket(t).Sequence() != 0 {
			return fmt.Errorf("%w: the store is not empty", store.ErrState)
		}
	}
	return nil
}

func (w *writer) loadRecord(r *store.Record) error {
	switch {
	case r.Marks != nil:
		m := r.Marks
		return errors.Join(w.atLeast(tDeliveries, m.Delivery), w.atLeast(tJobs, m.Job), w.atLeast(tAttempts, m.Attempt),
			w.atLeast(tRejections, m.Rejection), w.atLeast(tAudit, m.Audit))
	case r.Setting != nil:
		return w.put(tSettings, byName(r.Setting.Name), encodeSetting(r.Setting.Value))
	case r.User != nil:
		return w.put(tUsers, byName(r.User.Name), encodeUser(r.User))
	case r.Token != nil:
		return w.putToken(r.Token)
	case r.Session != nil:
		return w.putSession(r.Session)
	case r.Notice != nil:
		return w.putNotice(r.Notice)
	case r.Audit != nil:
		return errors.Join(w.atLeast(tAudit, r.Audit.ID), w.putAudit(r.Audit))
	case r.Minute != nil:
		return w.put(tMinutes, num(engine.Milli(r.Minute.Minute)/60_000), binary.BigEndian.AppendUint64(nil, uint64(r.Minute.Count)))
	case r.Rejection != nil:
		return errors.Join(w.atLeast(tRejections, r.Rejection.ID), w.putRejection(r.Rejection))
	case r.Payload != nil:
		return w.putNew(tPayloads, num(r.Payload.ID), encodePayload(&r.Payload.Payload))
	case r.Delivery != nil:
		return w.loadDelivery(r.Delivery)
	case r.Job != nil:
		return w.loadJob(r.Job)
	case r.Attempt != nil:
		a := attempt{job: r.Attempt.Job, id: r.Attempt.ID, n: int64(r.Attempt.N), started: engine.Milli(r.Attempt.StartedAt), resend: r.Attempt.Resend, owner: r.Attempt.Owner, result: r.Attempt.Result}
		return errors.Join(w.atLeast(tAttempts, a.id), w.putNew(tAttempts, attemptKey(a.job, a.id), a.encode()))
	case r.Key != nil:
		return w.loadKey(r.Key)
	}
	return nil
}

// putNew is put where nothing may be yet.
func (w *writer) putNew(t table, key, value []byte) error {
	if w.get(t, key) != nil {
		return fmt.Errorf("%w: %s has this number already", store.ErrRefused, tableNames[t])
	}
	return w.put(t, key, value)
}

// atLeast raises the number that was given out last.
func (w *writer) atLeast(t table, n int64) error {
	if int64(w.bucket(t).Sequence()) >= n {
		return nil
	}
	return w.bucket(t).SetSequence(uint64(n))
}

// loadKey comes after the deliveries: a key whose delivery is gone is known as such.
func (w *writer) loadKey(k *store.KeyRow) error {
	source, err := w.nameID(k.Source)
	if err != nil {
		return err
	}
	expires := engine.Milli(k.Expires)
	if w.get(tDeliveries, num(k.Delivery)) == nil {
		if err := w.put(tLoose, key(num(expires), dedupKey(source, k.EventID)), nil); err != nil {
			return err
		}
	}
	return w.claim(source, k.EventID, k.Delivery, expires)
}

// rowOf is the delivery as it is kept, without its jobs.
func (w *writer) rowOf(r *store.DeliveryRow) (d delivery, err error) {
	d = delivery{
		id: r.ID, eventID: r.EventID, kind: r.Type, resource: r.Resource, version: r.Version, unit: r.Unit, receivedAt: engine.Milli(r.ReceivedAt),
		size: int64(r.Size), digest: r.Digest, slot: int64(r.Slot), part: int64(r.Part), payload: r.Payload, quarantine: r.Quarantine, made: r.Made, test: r.Test,
		ackMicros: r.AckMicros, remote: r.Remote, duplicates: int64(r.Duplicates), lastDuplicateAt: engine.Milli(r.LastDuplicateAt), bodyDiffers: int64(r.BodyDiffers),
		duplicateOf: r.DuplicateOf, copyOf: r.CopyOf, earlier: r.Earlier,
	}
	switch {
	case r.State == store.StateQuarantined:
		d.hold = holdQuarantined
	case r.Jobless:
		d.hold = holdJobless
	}
	if d.source, err = w.nameID(r.Source); err != nil {
		return d, err
	}
	d.provider, err = w.nameID(r.Provider)
	return d, err
}

func (w *writer) loadDelivery(r *store.DeliveryRow) error {
	if w.get(tDeliveries, num(r.ID)) != nil {
		return fmt.Errorf("%w: delivery %d is there already", store.ErrRefused, r.ID)
	}
	d, err := w.rowOf(r)
	if err != nil {
		return err
	}
	w.pending.newest = d.receivedAt
	return errors.Join(w.atLeast(tDeliveries, d.id), w.changeDelivery(nil, &d))
}

// jobOfRow is the job as it is kept.
func (w *writer) jobOfRow(r *store.JobRow) (j job, err error) {
	j = job{
		id: r.ID, delivery: r.Delivery, state: r.State, due: engine.Milli(r.DueAt), since: engine.Milli(r.Since), attempts: int64(r.Attempts), spent: int64(r.Spent),
		token: r.LeaseToken, owner: r.LeaseOwner, until: engine.Milli(r.LeaseUntil), settled: engine.Milli(r.SettledAt), reason: r.Reason,
		lastStatus: int64(r.LastStatus), lastClass: r.LastClass, lastError: r.LastError, lastMicros: r.LastMicros, resend: r.Resend,
		passthrough: r.Passthrough, revived: r.Revived, key: r.Key, note: r.Note,
		order: r.Order, strict: r.Strict, place: r.Place, turn: int64(r.Turn), turnAt: engine.Milli(r.TurnAt), latest: r.Latest, supersededBy: r.SupersededBy,
	}
	if j.turn == engine.Waits {
		j.due = engine.Never
	}
	j.destination, err = w.nameID(r.Destination)
	return j, err
}

func (w *writer) loadJob(r *store.JobRow) error {
	if w.get(tJobs, num(r.ID)) != nil {
		return fmt.Errorf("%w: job %d is there already", store.ErrRefused, r.ID)
	}
	j, err := w.jobOfRow(r)
	if err != nil {
		return err
	}
	d, err := w.found(r.Delivery)
	if err != nil {
		return err
	}
	before := d
	d.jobs = append(d.jobs, j.id)
	return errors.Join(w.atLeast(tJobs, j.id), w.change(nil, &j), w.changeDelivery(&before, &d))
}
