package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"acuse/store"
	"acuse/store/engine"
)

// What one transaction of an erasure does, and one read of its search looks at.
const (
	eraseAtOnce = 25
	eraseLook   = 50_000
)

// Erase removes contents for good; see store.Eraser.
func (d *DB) Erase(ctx context.Context, q store.Erasure) (out store.Erased, err error) {
	if (q.Resource == "") == (q.EventID == "") {
		return out, fmt.Errorf("erase: %w: either a resource or an event", store.ErrRefused)
	}
	ids, err := d.erasable(ctx, q)
	if err == nil && q.DryRun {
		out, err = d.previewErase(ctx, q, ids)
	} else if err == nil {
		out, err = d.erase(ctx, q, ids)
	}
	return out, wrap(err, "erase")
}

const selectErasable = `SELECT id FROM deliveries WHERE id > ?1 AND id <= ?2 AND (?3 = '' OR source = (SELECT id FROM names WHERE name = ?3))
	AND (?4 <> '' AND resource = ?4 OR ?5 <> '' AND (event_id = ?5 OR copy_of <> 0 AND substr(event_id, 1, length(?5) + 1) = ?5 || '~'))
	AND (payload <> 0 OR resource <> '' OR remote <> '') ORDER BY id`

// erasable finds the deliveries: by a search through all, in parts, since such a demand is
// rare and an index would cost every event.
func (d *DB) erasable(ctx context.Context, q store.Erasure) (ids []int64, err error) {
	for from, last := int64(0), int64(1); from < last; from += eraseLook {
		if err := d.view(ctx, func(tx *sql.Tx) error {
			if err := tx.QueryRowContext(ctx, "SELECT ifnull(max(id), 0) FROM deliveries").Scan(&last); err != nil {
				return err
			}
			part, err := ints(ctx, tx, selectErasable, from, from+eraseLook, q.Source, q.Resource, q.EventID)
			ids = append(ids, part...)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// text is what a rejection is searched for.
func eraseText(q store.Erasure) string { return q.Resource + q.EventID }

const (
	selectSharers = `SELECT id FROM deliveries WHERE id = ?1 AND payload = ?1 UNION ALL
		SELECT id FROM deliveries INDEXED BY deliveries_shared WHERE payload = ?1 AND payload <> id AND payload <> 0`
	whereRejected = `(?2 = '' OR source = ?2) AND (instr(body, CAST(?1 AS BLOB)) > 0 OR instr(headers, CAST(?1 AS BLOB)) > 0 OR instr(target, ?1) > 0)`
)

func (d *DB) previewErase(ctx context.Context, q store.Erasure, ids []int64) (out store.Erased, err error) {
	matched, payloads := engine.Set(ids), map[int64]bool{}
	for len(ids) > 0 {
		n := min(len(ids), 200)
		if err := d.view(ctx, func(tx *sql.Tx) error {
			for _, id := range ids[:n] {
				out.Deliveries++
				var payload int64
				if err := tx.QueryRowContext(ctx, "SELECT payload FROM deliveries WHERE id = ?", id).Scan(&payload); err != nil {
					return err
				}
				sharers := []int64{id}
				if payload != 0 && !payloads[payload] {
					payloads[payload] = true
					var size int64
					if err := tx.QueryRowContext(ctx, selectPayloadSize, payload).Scan(&size); err != nil {
						return err
					}
					out.Bytes += size
					list, err := ints(ctx, tx, selectSharers, payload)
					if err != nil {
						return err
					}
					for _, s := range list {
						if !matched[s] {
							sharers = append(sharers, s)
							out.Shared++
						}
					}
				}
				for _, s := range sharers {
					var jobs int
					if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM jobs WHERE delivery = ? AND state IN (1, 2, 4)", s).Scan(&jobs); err != nil {
						return err
					}
					out.Cancelled += jobs
				}
			}
			return nil
		}); err != nil {
			return out, err
		}
		ids = ids[n:]
	}
	err = d.read.QueryRowContext(ctx, "SELECT count(*) FROM rejections WHERE "+whereRejected, eraseText(q), q.Source).Scan(&out.Rejections)
	return out, d.closed(err)
}

func (d *DB) erase(ctx context.Context, q store.Erasure, ids []int64) (sum store.Erased, err error) {
	matched := engine.Set(ids)
	for first := true; first || len(ids) > 0; first = false {
		n := min(len(ids), eraseAtOnce)
		var part store.Erased
		if err := d.do(ctx, func(w *writer) error {
			part = store.Erased{}
			return w.overwriting(func() error {
				if first {
					var err error
					if part.Rejections, err = w.exec("DELETE FROM rejections WHERE "+whereRejected, eraseText(q), q.Source); err != nil {
						return err
					}
				}
				for _, id := range ids[:n] {
					if err := w.eraseOne(&part, q, id, matched); err != nil {
						return err
					}
				}
				if first && n == 0 && part.Rejections == 0 {
					return nil
				}
				return w.audit(store.AuditEntry{At: q.At, By: q.By, Act: "erase", Subject: engine.EraseSubject(&q), Reason: q.Reason})
			})
		}); err != nil {
			return sum, err
		}
		sum.Deliveries += part.Deliveries
		sum.Shared += part.Shared
		sum.Cancelled += part.Cancelled
		sum.Rejections += part.Rejections
		sum.Bytes += part.Bytes
		ids = ids[n:]
	}
	err = d.submit(ctx, &write{after: func(w *writer) error {
		d.readers.end(0)
		return w.truncateJournal(2000)
	}}, 0)
	if errors.Is(err, store.ErrBusy) {
		sum.Traces, err = true, nil
	}
	return sum, err
}

// overwriting runs f so that what it removes is overwritten, pages that become free
// included.
func (w *writer) overwriting(f func() error) error {
	set := func(word string) error {
		return w.query("PRAGMA secure_delete = "+word, func([]val) error { return nil })
	}
	if err := set("ON"); err != nil {
		return err
	}
	err := f()
	return errors.Join(err, set("FAST"))
}

func (w *writer) eraseOne(out *store.Erased, q store.Erasure, id int64, matched map[int64]bool) error {
	row, ok, err := w.row("SELECT payload FROM deliveries WHERE id = ?", id)
	if err != nil || !ok {
		return err // gone meanwhile
	}
	out.Deliveries++
	if payload := row[0].(int64); payload != 0 {
		sharers, err := w.numbersOf(selectSharers, payload)
		if err != nil {
			return err
		}
		size, err := w.number(selectPayloadSize, payload)
		if err != nil {
			return err
		}
		out.Bytes += size
		if _, err := w.exec(deletePayload, payload); err != nil {
			return err
		}
		for _, s := range sharers {
			if _, err := w.exec("UPDATE OR FAIL deliveries SET payload = 0 WHERE id = ?", s); err != nil {
				return err
			}
			w.cache.Drop(s)
			if s == id || matched[s] {
				continue
			}
			out.Shared++
			if err := w.endJobs(out, q, s); err != nil {
				return err
			}
		}
	}
	if _, err := w.exec("UPDATE OR FAIL deliveries SET resource = '', version = '', remote = '' WHERE id = ?", id); err != nil {
		return err
	}
	if _, err := w.exec(`UPDATE OR FAIL attempts SET answer_headers = NULL, answer_body = NULL, error = ''
		WHERE job IN (SELECT id FROM jobs WHERE delivery = ?)`, id); err != nil {
		return err
	}
	if _, err := w.exec("UPDATE OR FAIL jobs SET last_error = '' WHERE delivery = ?", id); err != nil {
		return err
	}
	if err := w.endJobs(out, q, id); err != nil {
		return err
	}
	if _, err := w.exec("UPDATE OR FAIL jobs SET order_value = '', order_place = 0, latest = 0 WHERE delivery = ?", id); err != nil {
		return err
	}
	return w.audit(store.AuditEntry{At: q.At, By: q.By, Act: "erase", Delivery: id, Reason: q.Reason})
}

// endJobs cancels what a delivery without its payload cannot do any more.
func (w *writer) endJobs(out *store.Erased, q store.Erasure, delivery int64) error {
	jobs, err := w.jobsOf(delivery, "")
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if j.state != store.Queued && j.state != store.Leased && j.state != store.Dead {
			continue
		}
		out.Cancelled++
		if _, err := w.exec("UPDATE OR FAIL attempts SET outcome = 4 WHERE job = ? AND outcome = 1", j.id); err != nil {
			return err
		}
		if _, err := w.exec("UPDATE OR FAIL jobs SET state = 5, settled_at = ?, lease_token = 0, lease_until = 0, reason = 0, order_turn = 0 WHERE id = ?", ms(q.At), j.id); err != nil {
			return err
		}
		w.moved(j.destination, j.state, store.Cancelled)
		if err := w.advance(j.line(), ms(q.At)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) numbersOf(text string, args ...val) (list []int64, err error) {
	err = w.query(text, func(r []val) error {
		list = append(list, r[0].(int64))
		return nil
	}, args...)
	return list, err
}
