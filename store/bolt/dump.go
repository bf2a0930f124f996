package bolt

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"acuse/store"
	"acuse/store/engine"
)

// Dump emits every record; see store.Dumper. Pages that are replaced meanwhile are not
// used again until it is done.
func (d *DB) Dump(ctx context.Context, emit func(store.Record) error) error {
	return wrap(d.view(ctx, func(x *tx) error {
		m := x.marks()
		if err := emit(store.Record{Marks: &m}); err != nil {
			return err
		}
		for _, part := range []func(func(store.Record) error) error{x.dumpPeople, x.dumpRefused, x.dumpArchive} {
			if err := part(func(r store.Record) error { return cmp.Or(ctx.Err(), emit(r)) }); err != nil {
				return err
			}
		}
		return nil
	}), "dump")
}

// marks are the highest numbers given out.
func (x *tx) marks() store.Marks {
	n := func(t table) int64 { return int64(x.bucket(t).Sequence()) }
	return store.Marks{Delivery: n(tDeliveries), Job: n(tJobs), Attempt: n(tAttempts), Rejection: n(tRejections), Audit: n(tAudit)}
}

// dumpRows emits what decode makes of each record of a bucket.
func dumpRows[T any](x *tx, t table, decode func(k, v []byte) (T, error), emit func(T) error) error {
	for k, v := range x.pairs(t, nil, false) {
		r, err := decode(k, v)
		if err != nil {
			return err
		}
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// keyless makes a decoder of records that hold all there is.
func keyless[T any](f func([]byte) (T, error)) func(k, v []byte) (T, error) {
	return func(_, v []byte) (T, error) { return f(v) }
}

// dumpPeople emits settings, users, tokens, sessions, notices, the audit log.
func (x *tx) dumpPeople(emit func(store.Record) error) error {
	if err := dumpRows(x, tSettings, decodeSetting, func(v store.Setting) error { return emit(store.Record{Setting: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(x, tUsers, keyless(decodeUser), func(v store.User) error { return emit(store.Record{User: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(x, tTokens, keyless(decodeToken), func(v store.Token) error { return emit(store.Record{Token: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(x, tSessions, keyless(decodeSession), func(v store.Session) error { return emit(store.Record{Session: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(x, tNotices, keyless(decodeNotice), func(v store.Notice) error { return emit(store.Record{Notice: &v}) }); err != nil {
		return err
	}
	return dumpRows(x, tAudit, func(k, v []byte) (store.AuditEntry, error) { return decodeAudit(numAt(k, 0), v) },
		func(v store.AuditEntry) error { return emit(store.Record{Audit: &v}) })
}

func (x *tx) dumpRefused(emit func(store.Record) error) error {
	if err := dumpRows(x, tMinutes, func(k, v []byte) (store.RejectionMinute, error) {
		return store.RejectionMinute{Minute: engine.Instant(numAt(k, 0) * 60_000), Count: int64(binary.BigEndian.Uint64(v))}, nil
	}, func(v store.RejectionMinute) error { return emit(store.Record{Minute: &v}) }); err != nil {
		return err
	}
	return dumpRows(x, tRejections, func(k, v []byte) (store.Rejection, error) { return decodeRejection(numAt(k, 0), v, true) },
		func(v store.Rejection) error { return emit(store.Record{Rejection: &v}) })
}

func (x *tx) dumpArchive(emit func(store.Record) error) error {
	if err := dumpRows(x, tPayloads, func(k, v []byte) (store.PayloadRow, error) {
		p, err := decodePayload(v)
		return store.PayloadRow{ID: numAt(k, 0), Payload: p}, err
	}, func(v store.PayloadRow) error { return emit(store.Record{Payload: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(x, tDeliveries, x.deliveryRow, func(v store.DeliveryRow) error { return emit(store.Record{Delivery: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(x, tJobs, func(k, v []byte) (store.JobRow, error) {
		j, err := decodeJob(numAt(k, 0), v)
		return store.JobRow{Job: x.public(&j), Since: engine.Instant(j.since), Passthrough: j.passthrough, Revived: j.revived,
			Place: j.place, Turn: int(j.turn), Latest: j.latest}, err
	}, func(v store.JobRow) error { return emit(store.Record{Job: &v}) }); err != nil {
		return err
	}
	if err := x.dumpAttempts(emit); err != nil {
		return err
	}
	return dumpRows(x, tDedup, func(k, v []byte) (store.KeyRow, error) {
		holder, expires, err := x.holder(smallAt(k, 0), string(k[4:]))
		return store.KeyRow{Source: x.name(smallAt(k, 0)), EventID: string(k[4:]), Delivery: holder, Expires: engine.Instant(expires)}, err
	}, func(v store.KeyRow) error { return emit(store.Record{Key: &v}) })
}

func (x *tx) deliveryRow(k, v []byte) (row store.DeliveryRow, err error) {
	d, err := decodeDelivery(numAt(k, 0), v)
	if err != nil {
		return row, err
	}
	row = store.DeliveryRow{Delivery: x.shown(&d), Digest: d.digest, Payload: d.payload, Jobless: d.hold == holdJobless, Earlier: d.earlier}
	if d.hold == holdQuarantined {
		row.State = store.StateQuarantined
	}
	return row, nil
}

// dumpAttempts emits them by number: they are kept by job.
func (x *tx) dumpAttempts(emit func(store.Record) error) error {
	type place struct{ job, id int64 }
	var all []place
	for k := range x.keys(tAttempts, nil, false) {
		all = append(all, place{numAt(k, 0), numAt(k, 8)})
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(a.id, b.id) })
	for _, p := range all {
		a, err := x.attempt(p.job, p.id)
		if err != nil {
			return err
		}
		v := a.public()
		if err := emit(store.Record{Attempt: &v}); err != nil {
			return err
		}
	}
	return nil
}

// Counts counts everything; see store.Dumper.
func (d *DB) Counts(ctx context.Context) (c store.Counts, err error) {
	err = d.view(ctx, func(x *tx) error {
		for _, one := range []struct {
			t      table
			prefix []byte
			n      *int64
		}{
			{tDeliveries, nil, &c.Deliveries}, {tPayloads, nil, &c.Payloads}, {tJobs, nil, &c.Jobs}, {tAttempts, nil, &c.Attempts}, {tDedup, nil, &c.Keys},
			{tRejections, nil, &c.Rejections}, {tUsers, nil, &c.Users}, {tTokens, nil, &c.Tokens}, {tSettings, nil, &c.Settings}, {tAudit, nil, &c.Audit},
			{tDue, nil, &c.Queued}, {tLeases, nil, &c.Leased}, {tDead, nil, &c.Dead}, {tHold, []byte{holdQuarantined}, &c.Quarantined},
		} {
			for range x.keys(one.t, one.prefix, false) {
				if *one.n++; *one.n%4096 == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		return nil
	})
	return c, wrap(err, "count")
}
