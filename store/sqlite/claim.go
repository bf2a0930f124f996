package sqlite

import (
	"fmt"
	"slices"
	"time"

	"acuse/store"
)

// claim claims the dedup keys of the items and gives each its number: a new one, or
// that of the delivery which has the key. Duplicates use up no number.
func (w *writer) claim(items []item) error {
	first := w.numbers.delivery
	for len(items) > 0 {
		if items[0].event.Quarantine != "" {
			items[0].id = w.numbers.delivery
			w.numbers.delivery++
			items = items[1:]
			continue
		}
		n := slices.IndexFunc(items, func(it item) bool { return it.event.Quarantine != "" })
		if n < 0 {
			n = len(items)
		}
		n = chunk(n)
		if err := w.claimChunk(items[:n], first); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// claimChunk claims up to eight keys by one statement. When all are new, which is the
// normal case, that is all; else it asks for each who has it.
func (w *writer) claimChunk(items []item, first int64) error {
	var args [8 * 4]val
	for i := range items {
		it := &items[i]
		it.id = w.numbers.delivery + int64(i)
		copy(args[i*4:], []val{it.source, it.event.ID, it.id, it.expires()})
	}
	changed, err := w.exec(insertDedup.rows(len(items)), args[:len(items)*4]...)
	if err != nil {
		return err
	}
	if changed == len(items) {
		w.numbers.delivery += int64(len(items))
		return nil
	}
	for i := range items {
		if err := w.claimOne(&items[i], first); err != nil {
			return err
		}
	}
	return nil
}

// claimOne finds out whether the item has its key: it is the row's delivery, or the
// row has run out and is taken over. From first on the deliveries are this batch's, which
// are written after their keys.
func (w *writer) claimOne(it *item, first int64) error {
	row, ok, err := w.row(selectHolder, it.source, it.event.ID)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("claim: the key of %d/%.40q is neither ours nor anyone's", it.source, it.event.ID)
	}
	holder, expires, kept := row[0].(int64), row[1].(int64), row[2].(int64) != 0
	switch {
	case holder == it.id: // ours; a duplicate before it may have left a lower number free
	case expires <= ms(it.w.arrival.Accepted()) && !(it.event.WithRow && (kept || holder >= first)):
		it.earlier = holder
	default:
		it.id, it.dup = holder, true
		return nil
	}
	next := w.numbers.delivery
	w.numbers.delivery++
	if holder == next {
		it.id = next
		return nil
	}
	it.id = next
	_, err = w.exec("UPDATE OR FAIL dedup SET delivery = ?, expires_at = ?, loose = 0 WHERE source = ? AND event_id = ?", next, it.expires(), it.source, it.event.ID)
	return err
}

const (
	selectHolder    = "SELECT delivery, expires_at, EXISTS (SELECT 1 FROM deliveries WHERE id = dedup.delivery) FROM dedup WHERE source = ? AND event_id = ?"
	updateDuplicate = `UPDATE OR FAIL deliveries SET duplicates = duplicates + 1, last_duplicate_at = max(last_duplicate_at, ?),
		body_differs = body_differs + (digest <> ?) WHERE id = ?`
	selectExhausted = `SELECT j.id, j.destination, j.order_value FROM jobs j CROSS JOIN deliveries d ON d.id = j.delivery
		WHERE j.delivery = ? AND j.state = 4 AND j.reason = 1 AND j.revived = 0 AND d.payload <> 0`
)

func (it *item) expires() int64 { return ms(it.w.arrival.Accepted().Add(it.event.Window)) }

// duplicate counts a repeat on the delivery and, if its event says so, revives the
// delivery's dead letters that died of exhausted attempts, once each.
func (w *writer) duplicate(delivery int64, e *store.Event, at time.Time) (revived bool, err error) {
	if _, err := w.exec(updateDuplicate, ms(at), e.Digest, delivery); err != nil {
		return false, err
	}
	if !e.Revive {
		return false, nil
	}
	var jobs []jobRef
	if err := w.query(selectExhausted, func(r []val) error {
		jobs = append(jobs, jobRef{id: r[0].(int64), destination: r[1].(int64), order: r[2].(string)})
		return nil
	}, delivery); err != nil {
		return false, err
	}
	for _, j := range jobs {
		if err := w.requeue(j.id, j.line(), ms(at), ", revived = 1"); err != nil {
			return false, err
		}
		w.moved(j.destination, store.Dead, store.Queued)
	}
	return len(jobs) > 0, nil
}
