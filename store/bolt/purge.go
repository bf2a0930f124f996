package bolt

import (
	"context"

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
		if r.MaxBytes > 0 {
			p.over = d.inUse.Load() - r.MaxBytes
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

// keys removes those that expired and whose delivery is gone.
func (p *purge) keys() error {
	if p.rule.KeepKeys {
		return nil
	}
	var gone [][]byte
	for k := range p.w.keys(tLoose, nil, false) {
		if numAt(k, 0) > engine.Milli(p.rule.Now) || len(gone) == p.work {
			break
		}
		gone = append(gone, append([]byte{}, k[8:]...))
	}
	for _, k := range gone {
		if err := p.w.dropKey(smallAt(k, 0), string(k[4:])); err != nil {
			return err
		}
	}
	p.work -= len(gone)
	p.out.Keys += len(gone)
	return nil
}

func (p *purge) rejections() error {
	if p.rule.RejectionAge <= 0 {
		return nil
	}
	oldest := engine.Before(&p.rule, p.rule.RejectionAge)
	n, err := p.w.dropRejectionsBefore(oldest, p.work/4+1) // one may hold a large body
	if err != nil {
		return err
	}
	p.work -= 4 * n
	p.out.Rejections += n
	return p.w.dropMinutesBefore(oldest / 60000)
}

// others removes sessions, notices and audit entries.
func (p *purge) others() error {
	sessions, err := p.w.dropSessionsBefore(engine.Milli(p.rule.Now), p.work)
	if err != nil {
		return err
	}
	notices, audit := 0, 0
	if p.rule.NoticeAge > 0 {
		if notices, err = p.w.dropNoticesBefore(engine.Before(&p.rule, p.rule.NoticeAge)); err != nil {
			return err
		}
	}
	if p.rule.AuditAge > 0 {
		if audit, err = p.w.dropAuditBefore(engine.Before(&p.rule, p.rule.AuditAge), p.work); err != nil {
			return err
		}
	}
	p.work -= sessions + notices + audit
	p.out.Others += sessions + notices + audit
	return nil
}

// walk looks at the deliveries, oldest number first, and removes those that may go.
func (p *purge) walk() error {
	for p.work > 0 {
		var list []delivery
		for k, v := range p.w.between(tDeliveries, nil, num(p.out.Next+1), nil, false) {
			d, err := decodeDelivery(numAt(k, 0), v)
			if err != nil {
				return err
			}
			if list = append(list, d); len(list) == 64 {
				break
			}
		}
		for i := range list {
			if p.work <= 0 || engine.Ends(&p.rule, p.over > 0, list[i].receivedAt) {
				return nil
			}
			if err := p.look(&list[i]); err != nil {
				return err
			}
			p.out.Next = list[i].id
		}
		if len(list) < 64 {
			return nil
		}
	}
	return nil
}

func (p *purge) look(d *delivery) error {
	jobs, err := p.w.jobsOf(d)
	if err != nil {
		return err
	}
	p.work -= 1 + len(jobs)
	var stand []engine.Standing
	for _, j := range jobs {
		stand = append(stand, engine.Standing{State: j.state, Settled: j.settled})
	}
	if !engine.Goes(&p.rule, p.over > 0, d.receivedAt, d.hold == holdQuarantined, stand) {
		return nil
	}
	return p.remove(d, jobs)
}

// remove takes the delivery out with all that is its own.
func (p *purge) remove(d *delivery, jobs []job) error {
	w := p.w
	for i := range jobs {
		n, err := w.dropJob(&jobs[i])
		if err != nil {
			return err
		}
		p.work -= n
	}
	for i := range jobs {
		if jobs[i].turn == engine.NoTurn {
			continue
		}
		if err := w.advance(jobs[i].destination, jobs[i].order, engine.Milli(p.rule.Now)); err != nil { // a strict dead letter held up its order
			return err
		}
	}
	if err := w.reindex(d.indexKeys(), nil); err != nil {
		return err
	}
	if err := w.del(tDeliveries, num(d.id)); err != nil {
		return err
	}
	if d.hold == holdQuarantined {
		w.pending.moves = append(w.pending.moves, engine.Move{N: -1})
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

// dropJob removes a job and its attempts, and returns how many those were.
func (w *writer) dropJob(j *job) (attempts int, err error) {
	var keys [][]byte
	for k := range w.keys(tAttempts, num(j.id), false) {
		keys = append(keys, append([]byte{}, k...))
	}
	for _, k := range keys {
		if err := w.del(tAttempts, k); err != nil {
			return 0, err
		}
	}
	if err := w.reindex(j.indexKeys(), nil); err != nil {
		return 0, err
	}
	w.pending.moves = append(w.pending.moves, engine.Move{Destination: w.name(j.destination), From: j.state, N: 1})
	return len(keys), w.del(tJobs, num(j.id))
}

// key removes the delivery's key when it has expired, else leaves it to keys.
func (p *purge) key(d *delivery) error {
	holder, expires, err := p.w.holder(d.source, d.eventID)
	if err != nil || holder != d.id {
		return err
	}
	if p.rule.KeepKeys || expires > engine.Milli(p.rule.Now) {
		return p.w.put(tLoose, key(num(expires), dedupKey(d.source, d.eventID)), nil)
	}
	p.out.Keys++
	return p.w.dropKey(d.source, d.eventID)
}

// dropPayload removes a payload that no delivery has any more and returns its size.
func (w *writer) dropPayload(id int64) (int64, error) {
	if id == 0 {
		return 0, nil
	}
	first, ok, err := w.delivery(id)
	if err != nil || ok && first.payload == id {
		return 0, err
	}
	for range w.keys(tShared, num(id), false) {
		return 0, nil
	}
	size := int64(len(w.get(tPayloads, num(id))))
	return size, w.del(tPayloads, num(id))
}

// Reclaim gives nothing back: the file only shrinks by being copied; see Compact. What
// is free inside is used again.
func (d *DB) Reclaim(ctx context.Context, _ int64) (freed, left int64, err error) {
	err = d.view(ctx, func(x *tx) error {
		used, _ := room(x.Tx)
		left = max(0, d.Health().Bytes-used)
		return nil
	})
	return 0, left, wrap(err, "reclaim")
}
