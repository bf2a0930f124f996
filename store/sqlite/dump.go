package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"acuse/store"
)

// The statements of a dump, beside those that the pages read with.
const (
	dumpMinutes    = "SELECT minute, count FROM rejection_minutes ORDER BY minute"
	dumpRejections = rejectionColumns + ", headers, body FROM rejections ORDER BY id"
	dumpAudit      = auditColumns + "ORDER BY id"
	dumpPayloads   = "SELECT id, method, target, headers, body FROM payloads ORDER BY id"
	dumpDeliveries = "SELECT " + deliveryColumns + `, d.digest, d.earlier
		FROM deliveries d JOIN names s ON s.id = d.source JOIN names p ON p.id = d.provider ORDER BY d.id`
	dumpJobs     = "SELECT " + jobColumns + ", j.since, j.passthrough, j.revived, j.order_place, j.order_turn, j.latest FROM jobs j JOIN names n ON n.id = j.destination ORDER BY j.id"
	dumpAttempts = "SELECT " + attemptColumns + " FROM attempts a ORDER BY a.id"
	dumpKeys     = "SELECT n.name, k.event_id, k.delivery, k.expires_at FROM dedup k JOIN names n ON n.id = k.source ORDER BY k.source, k.event_id"
)

// Dump emits every record; see store.Dumper.
func (d *DB) Dump(ctx context.Context, emit func(store.Record) error) error {
	err := d.lasting(ctx, func(tx *sql.Tx) error {
		for _, part := range []func(context.Context, *sql.Tx, func(store.Record) error) error{
			d.dumpMarks, dumpPeople, dumpRefused, dumpArchive,
		} {
			if err := part(ctx, tx, emit); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(err, "dump")
}

// dumpRows runs a query and emits what scan makes of each row.
func dumpRows[T any](ctx context.Context, tx *sql.Tx, text string, scan func(scanner) (T, error), emit func(T) error) error {
	return each(ctx, tx, text, func(s scanner) error {
		v, err := scan(s)
		if err != nil {
			return err
		}
		return emit(v)
	})
}

func (d *DB) dumpMarks(ctx context.Context, tx *sql.Tx, emit func(store.Record) error) error {
	var m store.Marks
	if err := tx.QueryRowContext(ctx, `SELECT max(delivery, ifnull((SELECT max(id) FROM deliveries), 0)), max(job, ifnull((SELECT max(id) FROM jobs), 0)),
		max(attempt, ifnull((SELECT max(id) FROM attempts), 0)), ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'rejections'), 0),
		ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'audit'), 0) FROM marks`).Scan(&m.Delivery, &m.Job, &m.Attempt, &m.Rejection, &m.Audit); err != nil {
		return err
	}
	return emit(store.Record{Marks: &m})
}

// dumpPeople emits settings, users, tokens, sessions, notices, the audit log.
func dumpPeople(ctx context.Context, tx *sql.Tx, emit func(store.Record) error) error {
	if err := dumpRows(ctx, tx, "SELECT name, value FROM settings ORDER BY name", func(s scanner) (v store.Setting, err error) {
		return v, s.Scan(&v.Name, &v.Value)
	}, func(v store.Setting) error { return emit(store.Record{Setting: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(ctx, tx, userColumns+" ORDER BY name", scanUser, func(v store.User) error { return emit(store.Record{User: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(ctx, tx, tokenColumns+" ORDER BY id", scanToken, func(v store.Token) error { return emit(store.Record{Token: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(ctx, tx, "SELECT id, user, data, expires FROM sessions ORDER BY id", scanSession, func(v store.Session) error { return emit(store.Record{Session: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(ctx, tx, noticeColumns+" ORDER BY rule, subject", scanNotice, func(v store.Notice) error { return emit(store.Record{Notice: &v}) }); err != nil {
		return err
	}
	return dumpRows(ctx, tx, dumpAudit, scanAudit, func(v store.AuditEntry) error { return emit(store.Record{Audit: &v}) })
}

func dumpRefused(ctx context.Context, tx *sql.Tx, emit func(store.Record) error) error {
	if err := dumpRows(ctx, tx, dumpMinutes, func(s scanner) (v store.RejectionMinute, err error) {
		var minute int64
		err = s.Scan(&minute, &v.Count)
		v.Minute = instant(minute * 60_000)
		return v, err
	}, func(v store.RejectionMinute) error { return emit(store.Record{Minute: &v}) }); err != nil {
		return err
	}
	return dumpRows(ctx, tx, dumpRejections, scanRejection, func(v store.Rejection) error { return emit(store.Record{Rejection: &v}) })
}

func dumpArchive(ctx context.Context, tx *sql.Tx, emit func(store.Record) error) error {
	if err := dumpRows(ctx, tx, dumpPayloads, func(s scanner) (v store.PayloadRow, err error) {
		return v, s.Scan(&v.ID, &v.Method, &v.Target, &v.Header, &v.Body)
	}, func(v store.PayloadRow) error { return emit(store.Record{Payload: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(ctx, tx, dumpDeliveries, func(s scanner) (v store.DeliveryRow, err error) {
		r, err := scanDelivery(withMore{s, []any{&v.Digest, &v.Earlier}})
		v.Delivery, v.Payload, v.Jobless = r.Delivery, r.payload, r.hold == holdJobless
		if r.hold == holdQuarantined {
			v.State = store.StateQuarantined
		}
		return v, err
	}, func(v store.DeliveryRow) error { return emit(store.Record{Delivery: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(ctx, tx, dumpJobs, func(s scanner) (v store.JobRow, err error) {
		var since int64
		v.Job, err = scanJob(withMore{s, []any{&since, &v.Passthrough, &v.Revived, &v.Place, &v.Turn, &v.Latest}})
		v.Since = instant(since)
		return v, err
	}, func(v store.JobRow) error { return emit(store.Record{Job: &v}) }); err != nil {
		return err
	}
	if err := dumpRows(ctx, tx, dumpAttempts, scanAttempt, func(v store.Attempt) error { return emit(store.Record{Attempt: &v}) }); err != nil {
		return err
	}
	return dumpRows(ctx, tx, dumpKeys, func(s scanner) (v store.KeyRow, err error) {
		var expires int64
		err = s.Scan(&v.Source, &v.EventID, &v.Delivery, &expires)
		v.Expires = instant(expires)
		return v, err
	}, func(v store.KeyRow) error { return emit(store.Record{Key: &v}) })
}

// Counts counts everything; see store.Dumper.
func (d *DB) Counts(ctx context.Context) (c store.Counts, err error) {
	err = d.lasting(ctx, func(tx *sql.Tx) error { return countRows(ctx, tx, &c) })
	return c, wrap(err, "count")
}

func countRows(ctx context.Context, tx *sql.Tx, c *store.Counts) error {
	for text, n := range map[string]*int64{
		"deliveries": &c.Deliveries, "payloads": &c.Payloads, "jobs": &c.Jobs, "attempts": &c.Attempts, "dedup": &c.Keys,
		"rejections": &c.Rejections, "users": &c.Users, "tokens": &c.Tokens, "settings": &c.Settings, "audit": &c.Audit,
		"jobs WHERE state = 1": &c.Queued, "jobs WHERE state = 2": &c.Leased, "jobs WHERE state = 4": &c.Dead,
		"deliveries WHERE hold <> 0 AND hold = 1": &c.Quarantined,
	} {
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM "+text).Scan(n); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}
