package sqlite

import (
	"context"
	"database/sql"

	"acuse/store"
)

const insertAudit = "INSERT OR FAIL INTO audit (at, by_name, by_from, act, delivery, subject, reason) VALUES (?, ?, ?, ?, ?, ?, ?)"

// audit writes an entry in the transaction of the act.
func (w *writer) audit(e store.AuditEntry) error {
	_, err := w.exec(insertAudit, ms(e.At), e.By.Name, e.By.From, e.Act, e.Delivery, e.Subject, e.Reason)
	return err
}

// Audit writes an entry by itself; see store.Operator.
func (d *DB) Audit(ctx context.Context, e store.AuditEntry) error {
	return wrap(d.do(ctx, func(w *writer) error { return w.audit(e) }), "audit %s", e.Act)
}

const (
	auditColumns   = "SELECT id, at, by_name, by_from, act, delivery, subject, reason FROM audit "
	selectAuditLog = auditColumns + "WHERE id < ? ORDER BY id DESC LIMIT ?"
	selectTrail    = auditColumns + "WHERE delivery = ? AND delivery <> 0 ORDER BY id"
)

// AuditLog lists newest first; see store.Operator.
func (d *DB) AuditLog(ctx context.Context, before int64, limit int) ([]store.AuditEntry, error) {
	if before <= 0 {
		before = 1 << 62
	}
	list, err := d.entries(ctx, selectAuditLog, before, limit)
	return list, wrap(err, "audit log")
}

// Trail lists what people did with a delivery; see store.Archive.
func (d *DB) Trail(ctx context.Context, delivery int64) ([]store.AuditEntry, error) {
	list, err := d.entries(ctx, selectTrail, delivery)
	return list, wrap(err, "trail of delivery %d", delivery)
}

func (d *DB) entries(ctx context.Context, text string, args ...any) (list []store.AuditEntry, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, text, func(s scanner) error {
			e, err := scanAudit(s)
			list = append(list, e)
			return err
		}, args...)
	})
	return list, err
}

func scanAudit(s scanner) (e store.AuditEntry, err error) {
	var at int64
	err = s.Scan(&e.ID, &at, &e.By.Name, &e.By.From, &e.Act, &e.Delivery, &e.Subject, &e.Reason)
	e.At = instant(at)
	return e, err
}
