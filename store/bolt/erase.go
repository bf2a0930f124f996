package bolt

import (
	"bytes"
	"context"
	"fmt"
	"strings"

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

// erasable finds the deliveries: by a search through all, in parts, since such a demand is
// rare and an index would cost every event.
func (d *DB) erasable(ctx context.Context, q store.Erasure) (ids []int64, err error) {
	for from, more := int64(0), true; more; {
		if err := d.view(ctx, func(x *tx) error {
			source, looked := x.named(q.Source), 0
			more = false
			for k, v := range x.between(tDeliveries, nil, num(from+1), nil, false) {
				if looked++; looked > eraseLook {
					more = true
					return nil
				}
				from = numAt(k, 0)
				r, err := decodeDelivery(from, v)
				if err != nil {
					return err
				}
				if (q.Source == "" || r.source == source) && r.erasable(&q) {
					ids = append(ids, r.id)
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// erasable tells whether the demand means the delivery, and it still holds contents.
func (d *delivery) erasable(q *store.Erasure) bool {
	if d.payload == 0 && d.resource == "" && d.remote == "" {
		return false
	}
	return q.Resource != "" && d.resource == q.Resource ||
		q.EventID != "" && (d.eventID == q.EventID || d.copyOf != 0 && strings.HasPrefix(d.eventID, q.EventID+"~"))
}

// sharers are the deliveries that have a payload.
func (x *tx) sharers(payload int64) (ids []int64, err error) {
	first, ok, err := x.delivery(payload)
	if ok && first.payload == payload {
		ids = append(ids, payload)
	}
	for k := range x.keys(tShared, num(payload), false) {
		ids = append(ids, last(k))
	}
	return ids, err
}

// rejected are the rejections that hold the text.
func (x *tx) rejected(q *store.Erasure) (list []store.Rejection, err error) {
	word := []byte(q.Resource + q.EventID)
	for k, v := range x.pairs(tRejections, nil, false) {
		r, err := decodeRejection(numAt(k, 0), v, true)
		if err != nil {
			return nil, err
		}
		if (q.Source == "" || r.Source == q.Source) && (bytes.Contains(r.Body, word) || bytes.Contains(r.Header, word) || strings.Contains(r.Target, string(word))) {
			list = append(list, r)
		}
	}
	return list, nil
}

// unfinished are the jobs that an erasure cancels.
func unfinished(jobs []job) (list []job) {
	for _, j := range jobs {
		if j.state == store.Queued || j.state == store.Leased || j.state == store.Dead {
			list = append(list, j)
		}
	}
	return list
}

func (d *DB) previewErase(ctx context.Context, q store.Erasure, ids []int64) (out store.Erased, err error) {
	err = d.view(ctx, func(x *tx) error {
		touched, payloads := engine.Set(ids), map[int64]bool{}
		out.Deliveries = len(ids)
		for _, id := range ids {
			r, ok, err := x.delivery(id)
			if err != nil || !ok || r.payload == 0 || payloads[r.payload] {
				if err != nil {
					return err
				}
				continue
			}
			payloads[r.payload] = true
			out.Bytes += int64(len(x.get(tPayloads, num(r.payload))))
			sharers, err := x.sharers(r.payload)
			if err != nil {
				return err
			}
			for _, s := range sharers {
				if !touched[s] {
					touched[s] = true
					out.Shared++
				}
			}
		}
		for id := range touched {
			r, ok, err := x.delivery(id)
			if err != nil || !ok {
				return err
			}
			jobs, err := x.jobsOf(&r)
			if err != nil {
				return err
			}
			out.Cancelled += len(unfinished(jobs))
		}
		list, err := x.rejected(&q)
		out.Rejections = len(list)
		return err
	})
	return out, err
}

func (d *DB) erase(ctx context.Context, q store.Erasure, ids []int64) (sum store.Erased, err error) {
	matched := engine.Set(ids)
	for first := true; first || len(ids) > 0; first = false {
		n := min(len(ids), eraseAtOnce)
		var part store.Erased
		if err := d.do(ctx, func(w *writer) (err error) {
			part, err = w.erasePart(&q, ids[:n], matched, first)
			return err
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
	if sum.Traces, err = d.scrub(ctx); err != nil {
		return sum, err
	}
	return sum, nil
}

func (w *writer) erasePart(q *store.Erasure, ids []int64, matched map[int64]bool, first bool) (out store.Erased, err error) {
	if first {
		list, err := w.rejected(q)
		if err != nil {
			return out, err
		}
		for i := range list {
			if err := w.dropRejection(&list[i]); err != nil {
				return out, err
			}
		}
		if out.Rejections = len(list); len(list)+len(ids) == 0 {
			return out, nil
		}
	}
	for _, id := range ids {
		if err := w.eraseOne(&out, q, id, matched); err != nil {
			return out, err
		}
	}
	return out, w.audit(store.AuditEntry{At: q.At, By: q.By, Act: "erase", Subject: engine.EraseSubject(q), Reason: q.Reason})
}

func (w *writer) eraseOne(out *store.Erased, q *store.Erasure, id int64, matched map[int64]bool) error {
	d, ok, err := w.delivery(id)
	if err != nil || !ok {
		return err // gone meanwhile
	}
	out.Deliveries++
	if d.payload != 0 {
		sharers, err := w.sharers(d.payload)
		if err != nil {
			return err
		}
		out.Bytes += int64(len(w.get(tPayloads, num(d.payload))))
		if err := w.del(tPayloads, num(d.payload)); err != nil {
			return err
		}
		for _, s := range sharers {
			if err := w.unload(out, q, s, s != id && !matched[s]); err != nil {
				return err
			}
		}
		d.payload = 0
	}
	old := d
	d.resource, d.version, d.remote = "", "", ""
	if err := w.changeDelivery(&old, &d); err != nil {
		return err
	}
	if err := w.eraseAttempts(&d); err != nil {
		return err
	}
	if err := w.endJobs(out, q, &d); err != nil {
		return err
	}
	if err := w.eraseOrder(&d); err != nil {
		return err
	}
	return w.audit(store.AuditEntry{At: q.At, By: q.By, Act: "erase", Delivery: id, Reason: q.Reason})
}

// unload takes the payload from a delivery. One that the demand does not name cannot be
// delivered any more either.
func (w *writer) unload(out *store.Erased, q *store.Erasure, id int64, other bool) error {
	d, err := w.found(id)
	if err != nil {
		return fault{where: "deliveries", err: err}
	}
	w.cache.Drop(id)
	old := d
	d.payload = 0
	if err := w.changeDelivery(&old, &d); err != nil || !other {
		return err
	}
	out.Shared++
	return w.endJobs(out, q, &d)
}

// eraseAttempts removes answers and errors.
func (w *writer) eraseAttempts(d *delivery) error {
	jobs, err := w.jobsOf(d)
	if err != nil {
		return err
	}
	for i := range jobs {
		var tries []attempt
		for k, v := range w.pairs(tAttempts, num(jobs[i].id), false) {
			a, err := decodeAttempt(k, v)
			if err != nil {
				return err
			}
			a.result.Header, a.result.Body, a.result.Error = nil, nil, ""
			tries = append(tries, a)
		}
		for n := range tries {
			if err := w.putAttempt(&tries[n]); err != nil {
				return err
			}
		}
		j := jobs[i]
		j.lastError = ""
		if err := w.change(&jobs[i], &j); err != nil {
			return err
		}
	}
	return nil
}

// eraseOrder removes the order values, which may be the resource, of jobs that have ended.
func (w *writer) eraseOrder(d *delivery) error {
	jobs, err := w.jobsOf(d)
	if err != nil {
		return err
	}
	for i := range jobs {
		j := jobs[i]
		j.order, j.place, j.latest = "", 0, 0
		if err := w.change(&jobs[i], &j); err != nil {
			return err
		}
	}
	return nil
}

// endJobs cancels what a delivery without its payload cannot do any more.
func (w *writer) endJobs(out *store.Erased, q *store.Erasure, d *delivery) error {
	jobs, err := w.jobsOf(d)
	if err != nil {
		return err
	}
	for _, j := range unfinished(jobs) {
		out.Cancelled++
		if j.state == store.Leased {
			a, err := w.attempt(j.id, j.token)
			if err != nil {
				return err
			}
			a.result.Outcome = store.Interrupted
			if err := w.putAttempt(&a); err != nil {
				return err
			}
		}
		old := j
		j.state, j.settled, j.token, j.until, j.reason = store.Cancelled, engine.Milli(q.At), 0, 0, 0
		if err := w.leaves(&old, &j, engine.Milli(q.At)); err != nil {
			return err
		}
	}
	return nil
}
