package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"time"

	"acuse/store"
)

// The ring of refused requests.
const (
	maxRejections     = 2000
	maxRejectionBytes = 16 << 20
	rejectionLife     = 7 * 24 * time.Hour
)

// Reject keeps a refused request; see store.Rejections.
func (d *DB) Reject(ctx context.Context, r store.Rejection) error {
	err := d.do(ctx, func(w *writer) error { return w.reject(&r) })
	return wrap(err, "keep a rejection of %s", r.Source)
}

func (w *writer) reject(r *store.Rejection) error {
	kept := int64(len(r.Header) + len(r.Body))
	n, err := w.exec(`INSERT INTO rejections (source, reason, digest, detail, remote, first_at, at, count, status, signed, method, target, size, bytes, headers, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (source, reason, digest) DO UPDATE SET count = count + 1, at = excluded.at, detail = iif(?, detail, excluded.detail),
		remote = excluded.remote, status = excluded.status, signed = max(signed, excluded.signed)`,
		r.Source, r.Reason, digest(r.Body), r.Detail, r.Remote, ms(r.At), ms(r.At), int64(r.Status), flag(r.Signed),
		r.Method, r.Target, int64(r.Size), kept, blob(r.Header), r.Body, flag(r.Undiagnosed))
	if err != nil || n == 0 {
		return err
	}
	if _, err := w.exec("INSERT INTO rejection_minutes (minute, count) VALUES (?, 1) ON CONFLICT (minute) DO UPDATE SET count = count + 1", ms(r.At)/60000); err != nil {
		return err
	}
	return w.trim(r)
}

// RemoveRejection takes one out; see store.Rejections.
func (d *DB) RemoveRejection(ctx context.Context, id int64) error {
	err := d.do(ctx, func(w *writer) error {
		_, err := w.exec("DELETE FROM rejections WHERE id = ?", id)
		return err
	})
	return wrap(err, "remove rejection %d", id)
}

// trim takes out what is too old, then what is over: from the source that has the most,
// unsigned ones first, oldest first.
func (w *writer) trim(r *store.Rejection) error {
	oldest := ms(r.At.Add(-rejectionLife))
	if _, err := w.exec(deleteOldRejections, oldest); err != nil {
		return err
	}
	if _, err := w.exec("DELETE FROM rejection_minutes WHERE minute < ?", oldest/60000); err != nil {
		return err
	}
	for {
		row, _, err := w.row("SELECT count(*), ifnull(sum(bytes), 0) FROM rejections")
		if err != nil {
			return err
		}
		rows, size := row[0].(int64), row[1].(int64)
		if rows <= maxRejections && size <= maxRejectionBytes {
			return nil
		}
		largest, _, err := w.row("SELECT source FROM rejections GROUP BY source ORDER BY max(count(*) * ?, sum(bytes) * ?) DESC LIMIT 1",
			int64(maxRejectionBytes/maxRejections), int64(1))
		if err != nil {
			return err
		}
		if _, err := w.exec(`DELETE FROM rejections WHERE id = (SELECT id FROM rejections INDEXED BY rejections_next
			WHERE source = ? ORDER BY signed, at, id LIMIT 1)`, largest[0]); err != nil {
			return err
		}
	}
}

// digest is the first 8 bytes of the SHA-256.
func digest(b []byte) int64 {
	sum := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

const (
	rejectionColumns = "SELECT id, source, reason, detail, remote, first_at, at, count, status, signed, method, target, size"
	selectRejections = rejectionColumns + `, NULL, NULL FROM rejections
		WHERE id < ? AND (?2 = '' OR source = ?2) ORDER BY id DESC LIMIT ?`
	deleteOldRejections = "DELETE FROM rejections WHERE at < ?"
	selectRejection     = rejectionColumns + ", headers, body FROM rejections WHERE id = ?"
)

func scanRejection(s scanner) (r store.Rejection, err error) {
	var first, at int64
	err = s.Scan(&r.ID, &r.Source, &r.Reason, &r.Detail, &r.Remote, &first, &at, &r.Count, &r.Status, &r.Signed, &r.Method, &r.Target, &r.Size, &r.Header, &r.Body)
	r.FirstAt, r.At = instant(first), instant(at)
	return r, err
}

// RejectionList lists newest first; see store.Rejections.
func (d *DB) RejectionList(ctx context.Context, source string, before int64, limit int) (list []store.Rejection, err error) {
	if before <= 0 {
		before = 1 << 62
	}
	err = d.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, selectRejections, func(s scanner) error {
			r, err := scanRejection(s)
			list = append(list, r)
			return err
		}, before, source, limit)
	})
	return list, wrap(err, "list rejections")
}

// RejectionByID reads one; see store.Rejections.
func (d *DB) RejectionByID(ctx context.Context, id int64) (store.Rejection, error) {
	r, err := scanRejection(d.read.QueryRowContext(ctx, selectRejection, id))
	return r, wrap(d.missing(err), "rejection %d", id)
}

// RejectionsSince counts, to the minute; see store.Rejections.
func (d *DB) RejectionsSince(ctx context.Context, t time.Time) (n int64, err error) {
	err = d.read.QueryRowContext(ctx, "SELECT ifnull(sum(count), 0) FROM rejection_minutes WHERE minute >= ?", ms(t)/60000).Scan(&n)
	return n, wrap(d.closed(err), "count rejections")
}
