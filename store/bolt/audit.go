package bolt

import (
	"context"

	"acuse/store"
	"acuse/store/engine"
)

// audit writes an entry in the transaction of the act.
func (w *writer) audit(e store.AuditEntry) error {
	id, err := w.next(tAudit)
	if err != nil {
		return err
	}
	e.ID = id
	return w.putAudit(&e)
}

func (w *writer) putAudit(e *store.AuditEntry) error {
	r := record(64).int(engine.Milli(e.At)).text(e.By.Name, e.By.From, e.Act).int(e.Delivery).text(e.Subject, e.Reason)
	if err := w.put(tAudit, num(e.ID), r.b); err != nil || e.Delivery == 0 {
		return err
	}
	return w.put(tTrail, key(num(e.Delivery), num(e.ID)), nil)
}

func decodeAudit(id int64, b []byte) (e store.AuditEntry, err error) {
	r := reading(b)
	e = store.AuditEntry{ID: id, At: engine.Instant(r.int()), By: store.Actor{Name: r.text(), From: r.text()}, Act: r.text(), Delivery: r.int(), Subject: r.text(), Reason: r.text()}
	return e, r.done("audit")
}

// Audit writes an entry by itself; see store.Operator.
func (d *DB) Audit(ctx context.Context, e store.AuditEntry) error {
	return wrap(d.do(ctx, func(w *writer) error { return w.audit(e) }), "audit %s", e.Act)
}

// AuditLog lists newest first; see store.Operator.
func (d *DB) AuditLog(ctx context.Context, before int64, limit int) (list []store.AuditEntry, err error) {
	if before <= 0 {
		before = 1 << 62
	}
	err = d.view(ctx, func(x *tx) error {
		for k, v := range x.between(tAudit, nil, nil, num(before), true) {
			if len(list) >= limit {
				break
			}
			e, err := decodeAudit(numAt(k, 0), v)
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	})
	return list, wrap(err, "audit log")
}

// Trail lists what people did with a delivery; see store.Archive.
func (d *DB) Trail(ctx context.Context, delivery int64) (list []store.AuditEntry, err error) {
	err = d.view(ctx, func(x *tx) error {
		for k := range x.keys(tTrail, num(delivery), false) {
			e, err := decodeAudit(last(k), x.get(tAudit, num(last(k))))
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	})
	return list, wrap(err, "trail of delivery %d", delivery)
}

// dropAuditBefore removes those older than an instant among the first most entries.
func (w *writer) dropAuditBefore(oldest int64, most int) (int, error) {
	var old []store.AuditEntry
	looked := 0
	for k, v := range w.pairs(tAudit, nil, false) {
		if looked++; looked > most {
			break
		}
		e, err := decodeAudit(numAt(k, 0), v)
		if err != nil {
			return 0, err
		}
		if engine.Milli(e.At) < oldest {
			old = append(old, e)
		}
	}
	for _, e := range old {
		if err := w.del(tAudit, num(e.ID)); err != nil {
			return 0, err
		}
		if err := w.del(tTrail, key(num(e.Delivery), num(e.ID))); err != nil {
			return 0, err
		}
	}
	return len(old), nil
}
