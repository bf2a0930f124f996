package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"acuse/store"
	"acuse/store/engine"
)

// Everything is read out before a method returns: no read transaction is open while a
// page renders, so the journal can always be copied back.

const deliveryColumns = `d.id, s.name, p.name, d.event_id, d.made, d.type, d.resource, d.version, d.unit, d.test, d.received_at, d.size, d.slot, d.part,
	d.hold, d.quarantine, d.duplicates, d.last_duplicate_at, d.body_differs, d.ack_us, d.remote, d.duplicate_of, d.copy_of, d.payload`

const jobColumns = `j.id, j.delivery, n.name, j.key, j.state, j.attempts, j.spent, j.due_at, j.settled_at, j.last_status, j.last_class, j.last_error, j.last_us,
	j.reason, j.resend, j.note, j.lease_token, j.lease_owner, j.lease_until, j.order_value, j.order_strict, j.order_turn, j.order_place, j.order_since, j.superseded_by`

// scanner is a row of database/sql.
type scanner interface{ Scan(dest ...any) error }

// row is a delivery with what the Go record does not hold.
type deliveryRow struct {
	store.Delivery
	hold, payload int64
}

func scanDelivery(s scanner) (r deliveryRow, err error) {
	var received, duplicate int64
	d := &r.Delivery
	err = s.Scan(&d.ID, &d.Source, &d.Provider, &d.EventID, &d.Made, &d.Type, &d.Resource, &d.Version, &d.Unit, &d.Test, &received, &d.Size, &d.Slot, &d.Part,
		&r.hold, &d.Quarantine, &d.Duplicates, &duplicate, &d.BodyDiffers, &d.AckMicros, &d.Remote, &d.DuplicateOf, &d.CopyOf, &r.payload)
	d.ReceivedAt, d.LastDuplicateAt, d.PayloadGone = instant(received), instant(duplicate), r.payload == 0
	return r, err
}

func scanJob(s scanner) (j store.Job, err error) {
	var due, settled, until, turn, place, since int64
	err = s.Scan(&j.ID, &j.Delivery, &j.Destination, &j.Key, &j.State, &j.Attempts, &j.Spent, &due, &settled, &j.LastStatus, &j.LastClass, &j.LastError, &j.LastMicros,
		&j.Reason, &j.Resend, &j.Note, &j.LeaseToken, &j.LeaseOwner, &until, &j.Order, &j.Strict, &turn, &place, &since, &j.SupersededBy)
	j.SettledAt = instant(settled)
	switch j.State {
	case store.Queued:
		if j.Waits = turn == engine.Waits; !j.Waits {
			j.DueAt = instant(due)
		}
	case store.Leased:
		j.LeaseUntil = instant(until)
	}
	if j.State != store.Leased {
		j.LeaseOwner = ""
	}
	if turn == engine.Turn {
		j.TurnAt = instant(since)
	}
	j.Moved = place != 0 && place != engine.Place(j.Delivery)
	return j, err
}

// view runs f in a read transaction: what f reads belongs together. One that lasts so long
// that the journal grows too large is ended with store.ErrUnavailable.
func (d *DB) view(ctx context.Context, f func(tx *sql.Tx) error) error {
	ctx, done := d.readers.begin(ctx)
	defer done()
	return d.lasting(ctx, f)
}

// lasting is view without that end, for what must be read whole.
func (d *DB) lasting(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return d.closed(err)
	}
	defer tx.Rollback()
	err = f(tx)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSlowReader) {
		return cause
	}
	return err
}

// closed gives whatever database/sql says after Close the contract's name.
func (d *DB) closed(err error) error {
	if err != nil && d.gone.Load() {
		return store.ErrClosed
	}
	return err
}

// each runs a query and calls f for every row.
func each(ctx context.Context, tx *sql.Tx, text string, f func(s scanner) error, args ...any) error {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// deliveries reads the given numbers with their jobs, in the order given.
func deliveries(ctx context.Context, tx *sql.Tx, ids []int64) ([]store.Delivery, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list := jsonList(ids)
	byID := map[int64]*deliveryRow{}
	err := each(ctx, tx, selectDeliveries, func(s scanner) error {
		r, err := scanDelivery(s)
		byID[r.ID] = &r
		return err
	}, list)
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, selectJobs, func(s scanner) error {
		j, err := scanJob(s)
		if r := byID[j.Delivery]; r != nil {
			r.Jobs = append(r.Jobs, j)
		}
		return err
	}, list)
	if err != nil {
		return nil, err
	}
	out := make([]store.Delivery, 0, len(ids))
	for _, id := range ids {
		if r := byID[id]; r != nil {
			r.State = engine.State(&r.Delivery, r.hold == holdQuarantined)
			out = append(out, r.Delivery)
		}
	}
	return out, nil
}

const (
	selectDeliveries = "SELECT " + deliveryColumns + ` FROM json_each(?) l CROSS JOIN deliveries d ON d.id = l.value
		JOIN names s ON s.id = d.source JOIN names p ON p.id = d.provider`
	selectJobs = "SELECT " + jobColumns + ` FROM json_each(?) l CROSS JOIN jobs j ON j.delivery = l.value
		JOIN names n ON n.id = j.destination ORDER BY l.key, j.id`
)

// jsonList writes numbers as a JSON array.
func jsonList(ids []int64) string {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return string(append(b, ']'))
}

// Delivery reads one; see store.Archive.
func (d *DB) Delivery(ctx context.Context, id int64) (out store.Delivery, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		list, err := deliveries(ctx, tx, []int64{id})
		if err == nil && len(list) == 0 {
			err = store.ErrNotFound
		}
		if err == nil {
			out = list[0]
		}
		return err
	})
	return out, wrap(err, "delivery %d", id)
}

// JobByID reads one; see store.Jobs.
func (d *DB) JobByID(ctx context.Context, id int64) (j store.Job, err error) {
	j, err = scanJob(d.read.QueryRowContext(ctx, "SELECT "+jobColumns+" FROM jobs j JOIN names n ON n.id = j.destination WHERE j.id = ?", id))
	return j, wrap(d.missing(err), "job %d", id)
}

const (
	attemptColumns = `a.id, a.job, a.n, a.started_at, a.resend, a.owner, a.outcome, a.status, a.class, a.error, a.maybe, a.total_us,
	a.connect_us, a.tls_us, a.first_byte_us, a.answer_headers, a.answer_body, a.worker`
	selectAttempts = "SELECT " + attemptColumns + `
	FROM jobs j JOIN attempts a ON a.job = j.id WHERE j.delivery = ? ORDER BY a.id`
)

func scanAttempt(s scanner) (a store.Attempt, err error) {
	var at, total, connect, tls, first int64
	err = s.Scan(&a.ID, &a.Job, &a.N, &at, &a.Resend, &a.Owner, &a.Outcome, &a.Status, &a.Class, &a.Error, &a.Maybe, &total,
		&connect, &tls, &first, &a.Header, &a.Body, &a.Worker)
	a.StartedAt, a.Duration, a.Connect, a.TLS, a.FirstByte = instant(at), micros(total), micros(connect), micros(tls), micros(first)
	return a, err
}

// Attempts reads the attempts of a delivery; see store.Archive.
func (d *DB) Attempts(ctx context.Context, delivery int64) (list []store.Attempt, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, selectAttempts, func(s scanner) error {
			a, err := scanAttempt(s)
			list = append(list, a)
			return err
		}, delivery)
	})
	return list, wrap(err, "attempts of delivery %d", delivery)
}

// Payload reads what came in; see store.Archive.
func (d *DB) Payload(ctx context.Context, delivery int64) (store.Payload, error) {
	_, p, err := d.headAndPayload(ctx, delivery)
	return p, wrap(err, "payload of delivery %d", delivery)
}

const selectPayload = "SELECT " + deliveryColumns + `, ifnull(y.method, ''), ifnull(y.target, ''), y.headers, y.body
	FROM deliveries d JOIN names s ON s.id = d.source JOIN names p ON p.id = d.provider LEFT JOIN payloads y ON y.id = d.payload WHERE d.id = ?`

func (d *DB) headAndPayload(ctx context.Context, delivery int64) (store.DeliveryHead, store.Payload, error) {
	var p store.Payload
	r, err := scanDelivery(withMore{d.hot.payload.QueryRowContext(ctx, delivery), []any{&p.Method, &p.Target, &p.Header, &p.Body}})
	if err != nil {
		return store.DeliveryHead{}, store.Payload{}, d.missing(err)
	}
	if r.PayloadGone {
		return store.DeliveryHead{}, store.Payload{}, store.ErrPayloadGone
	}
	p.Part = r.Part
	return r.DeliveryHead, p, nil
}

// withMore scans further columns after those the caller asks for.
type withMore struct {
	scanner
	more []any
}

func (w withMore) Scan(dest ...any) error { return w.scanner.Scan(append(dest, w.more...)...) }

// missing gives database/sql's "no rows" the contract's name.
func (d *DB) missing(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	return d.closed(err)
}

// wrap adds what was being read.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(strings.TrimSpace(format)+": %w", append(args, err)...)
}
