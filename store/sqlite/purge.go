package sqlite

import (
	"context"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// Purge does one step; see store.Retention.
func (d *DB) Purge(ctx context.Context, r store.PurgeRule) (store.Purged, error) {
	var out store.Purged
	err := d.do(ctx, func(w *writer) error {
		p := purge{w: w, rule: r, work: r.Work, out: store.Purged{Next: r.After}}
		if p.work <= 0 {
			p.work = engine.DefaultWork
		}
		err := p.run()
		out = p.out
		return err
	})
	return out, wrap(err, "purge")
}

// purge is one step under way.
type purge struct {
	w    *writer
	rule store.PurgeRule
	work int   // left
	over int64 // bytes that are to go
	out  store.Purged
}

func (p *purge) run() error {
	for _, f := range []func() error{p.keys, p.rejections, p.others, p.walk} {
		if err := f(); err != nil {
			return err
		}
		if p.work <= 0 {
			p.out.More = true
			return nil
		}
	}
	return nil
}

const (
	selectLooseKeys = "SELECT source, event_id FROM dedup INDEXED BY dedup_loose WHERE loose = 1 AND expires_at <= ? ORDER BY expires_at LIMIT ?"
	deleteKey       = "DELETE FROM dedup WHERE source = ? AND event_id = ?"
)

// keys removes those that expired and whose delivery is gone.
func (p *purge) keys() error {
	if p.rule.KeepKeys {
		return nil
	}
	var keys [][2]val
	if err := p.w.query(selectLooseKeys, func(r []val) error {
		keys = append(keys, [2]val{r[0], r[1]})
		return nil
	}, ms(p.rule.Now), int64(p.work)); err != nil {
		return err
	}
	for _, k := range keys {
		if _, err := p.w.exec(deleteKey, k[0], k[1]); err != nil {
			return err
		}
	}
	p.work -= len(keys)
	p.out.Keys += len(keys)
	return nil
}

const (
	purgeRejections = "DELETE FROM rejections WHERE id IN (SELECT id FROM rejections INDEXED BY rejections_age WHERE at < ? LIMIT ?)"
	purgeSessions   = "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions INDEXED BY sessions_expires WHERE expires < ? LIMIT ?)"
	purgeNotices    = "DELETE FROM notices WHERE ended_at <> 0 AND ended_at < ?"
	purgeAudit      = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id <= (SELECT min(id) FROM audit) + ?2 AND at < ?1)"
)

func (p *purge) rejections() error {
	if p.rule.RejectionAge <= 0 {
		return nil
	}
	oldest := p.before(p.rule.RejectionAge)
	n, err := p.w.exec(purgeRejections, oldest, int64(p.work/4+1)) // a row may hold a large body
	if err != nil {
		return err
	}
	p.work -= 4 * n
	p.out.Rejections += n
	_, err = p.w.exec("DELETE FROM rejection_minutes WHERE minute < ?", oldest/60000)
	return err
}

// others removes sessions, notices and audit entries.
func (p *purge) others() error {
	for _, part := range []struct {
		text string
		age  time.Duration
		do   bool
		args []val
	}{
		{purgeSessions, 0, true, []val{int64(p.work)}},
		{purgeNotices, p.rule.NoticeAge, p.rule.NoticeAge > 0, nil},
		{purgeAudit, p.rule.AuditAge, p.rule.AuditAge > 0, []val{int64(p.work)}},
	} {
		if !part.do {
			continue
		}
		n, err := p.w.exec(part.text, append([]val{p.before(part.age)}, part.args...)...)
		if err != nil {
			return err
		}
		p.work -= n
		p.out.Others += n
	}
	return nil
}

func (p *purge) before(age time.Duration) int64 { return engine.Before(&p.rule, age) }

// walked is a delivery on the way.
type walked struct {
	id, received, hold, payload, source int64
	eventID                             string
}

const selectWalk = "SELECT id, received_at, hold, payload, source, event_id FROM deliveries WHERE id > ? ORDER BY id LIMIT ?"

// walk looks at the deliveries, oldest number first, and removes those that may go.
func (p *purge) walk() error {
	if p.rule.MaxBytes > 0 {
		live, err := p.w.liveBytes()
		if err != nil {
			return err
		}
		p.over = live - p.rule.MaxBytes
	}
	for p.work > 0 {
		var list []walked
		limit := min(p.work, 64)
		if err := p.w.query(selectWalk, func(r []val) error {
			list = append(list, walked{r[0].(int64), r[1].(int64), r[2].(int64), r[3].(int64), r[4].(int64), r[5].(string)})
			return nil
		}, p.out.Next, int64(limit)); err != nil {
			return err
		}
		for _, d := range list {
			if p.work <= 0 {
				return nil
			}
			if engine.Ends(&p.rule, p.over > 0, d.received) {
				return nil
			}
			if err := p.look(d); err != nil {
				return err
			}
			p.out.Next = d.id
		}
		if len(list) < limit {
			return nil
		}
	}
	return nil
}

// jobOf is a job of a delivery on the way.
type jobOf struct {
	id   int64
	line line
	turn int64
}

const selectPurgeJobs = "SELECT id, destination, settled_at, state, order_value, order_turn FROM jobs WHERE delivery = ?"

func (p *purge) look(d walked) error {
	p.work--
	var jobs []jobOf
	var stand []engine.Standing
	if err := p.w.query(selectPurgeJobs, func(r []val) error {
		jobs = append(jobs, jobOf{r[0].(int64), line{r[1].(int64), r[4].(string)}, r[5].(int64)})
		stand = append(stand, engine.Standing{State: store.JobState(r[3].(int64)), Settled: r[2].(int64)})
		return nil
	}, d.id); err != nil {
		return err
	}
	p.work -= len(jobs)
	if !engine.Goes(&p.rule, p.over > 0, d.received, d.hold == holdQuarantined, stand) {
		return nil
	}
	return p.remove(d, jobs, stand)
}

const (
	deleteAttempts = "DELETE FROM attempts WHERE job = ?"
	deleteJobs     = "DELETE FROM jobs WHERE delivery = ?"
	deleteDelivery = "DELETE FROM deliveries WHERE id = ?"
	deletePayload  = "DELETE FROM payloads WHERE id = ?"
	deleteOldKey   = "DELETE FROM dedup WHERE source = ? AND event_id = ? AND delivery = ? AND expires_at <= ?"
	loosenKey      = "UPDATE OR FAIL dedup SET loose = 1 WHERE source = ? AND event_id = ? AND delivery = ?"
	selectSharing  = `SELECT EXISTS (SELECT 1 FROM deliveries WHERE id = ?1 AND payload = ?1)
		OR EXISTS (SELECT 1 FROM deliveries INDEXED BY deliveries_shared WHERE payload = ?1 AND payload <> id AND payload <> 0)`
	selectPayloadSize = "SELECT length(headers) + length(body) FROM payloads WHERE id = ?"
)

// remove takes the delivery out with all that is its own.
func (p *purge) remove(d walked, jobs []jobOf, stand []engine.Standing) error {
	w := p.w
	for i, j := range jobs {
		n, err := w.exec(deleteAttempts, j.id)
		if err != nil {
			return err
		}
		p.work -= n
		w.moved(j.line.destination, stand[i].State, 0)
	}
	if len(jobs) > 0 {
		if _, err := w.exec(deleteJobs, d.id); err != nil {
			return err
		}
	}
	for _, j := range jobs {
		if j.turn == engine.NoTurn {
			continue
		}
		if err := w.advance(j.line, ms(p.rule.Now)); err != nil { // a strict dead letter held up its order
			return err
		}
	}
	if _, err := w.exec(deleteDelivery, d.id); err != nil {
		return err
	}
	if d.hold == holdQuarantined {
		w.quarantined(-1)
	} else if err := p.key(d); err != nil {
		return err
	}
	freed, err := w.dropPayload(d.payload)
	if err != nil {
		return err
	}
	p.work -= int(freed / engine.WorkBytes)
	p.over -= freed + engine.RowBytes
	p.out.Bytes += freed
	p.out.Deliveries++
	return nil
}

// key removes the delivery's key when it has expired, else leaves it to keys.
func (p *purge) key(d walked) error {
	if !p.rule.KeepKeys {
		n, err := p.w.exec(deleteOldKey, d.source, d.eventID, d.id, ms(p.rule.Now))
		if err != nil || n > 0 {
			p.out.Keys += n
			return err
		}
	}
	_, err := p.w.exec(loosenKey, d.source, d.eventID, d.id)
	return err
}

// dropPayload removes a payload that no delivery has any more and returns its size.
func (w *writer) dropPayload(id int64) (int64, error) {
	if id == 0 {
		return 0, nil
	}
	if shared, err := w.number(selectSharing, id); err != nil || shared != 0 {
		return 0, err
	}
	size, err := w.number(selectPayloadSize, id)
	if err != nil {
		return 0, err
	}
	_, err = w.exec(deletePayload, id)
	return size, err
}

// liveBytes is what the file uses: its pages less the free ones.
func (w *writer) liveBytes() (int64, error) {
	pages, err := w.number("PRAGMA page_count")
	if err != nil {
		return 0, err
	}
	free, err := w.number("PRAGMA freelist_count")
	return (pages - free) * pageSize, err
}
