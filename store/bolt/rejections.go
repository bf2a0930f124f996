package bolt

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// The ring of refused requests.
const (
	maxRejections     = 2000
	maxRejectionBytes = 16 << 20
	rejectionLife     = 7 * 24 * time.Hour
)

// Reject keeps a refused request; see store.Rejections.
func (d *DB) Reject(ctx context.Context, r store.Rejection) error {
	return wrap(d.do(ctx, func(w *writer) error { return w.reject(r) }), "keep a rejection of %s", r.Source)
}

func encodeRejection(r *store.Rejection) []byte {
	e := record(160+len(r.Header)+len(r.Body)).text(r.Source, r.Reason, r.Detail, r.Remote).int(engine.Milli(r.FirstAt), engine.Milli(r.At), int64(r.Count), int64(r.Status))
	return e.flags(r.Signed).text(r.Method, r.Target).int(int64(r.Size)).bytes(r.Header).bytes(r.Body).b
}

// decodeRejection reads one, without headers and body when whole is not set.
func decodeRejection(id int64, b []byte, whole bool) (r store.Rejection, err error) {
	d := reading(b)
	r = store.Rejection{ID: id, Source: d.text(), Reason: d.text(), Detail: d.text(), Remote: d.text(), FirstAt: engine.Instant(d.int()), At: engine.Instant(d.int()),
		Count: int(d.int()), Status: int(d.int()), Signed: d.flags()[0], Method: d.text(), Target: d.text(), Size: int(d.int())}
	if whole {
		r.Header, r.Body = d.bytes(), d.bytes()
	}
	return r, d.done("rejections")
}

// ringKeys are the keys under which a rejection is found.
func ringKeys(r *store.Rejection) (same, ring, age []byte) {
	sum := sha256.Sum256(r.Body)
	signed := byte(0)
	if r.Signed {
		signed = 1
	}
	at := num(engine.Milli(r.At))
	return key(text(r.Source), text(r.Reason), sum[:8]), key(text(r.Source), []byte{signed}, at, num(r.ID)), key(at, num(r.ID))
}

func (w *writer) reject(r store.Rejection) error {
	same, _, _ := ringKeys(&r)
	r.FirstAt, r.Count = r.At, 1
	if v := w.get(tSame, same); v != nil {
		id := int64(binary.BigEndian.Uint64(v))
		old, err := decodeRejection(id, w.get(tRejections, num(id)), true)
		if err != nil {
			return err
		}
		if err := w.dropRejection(&old); err != nil {
			return err
		}
		// What is kept of the first one stays: its headers, body and size.
		n := old
		n.Count, n.At, n.Remote, n.Status, n.Signed = old.Count+1, r.At, r.Remote, r.Status, old.Signed || r.Signed
		if !r.Undiagnosed {
			n.Detail = r.Detail
		}
		r = n
	} else {
		id, err := w.next(tRejections)
		if err != nil {
			return err
		}
		r.ID = id
	}
	if err := w.putRejection(&r); err != nil {
		return err
	}
	minute := num(engine.Milli(r.At) / 60000)
	n := uint64(0)
	if v := w.get(tMinutes, minute); v != nil {
		n = binary.BigEndian.Uint64(v)
	}
	if err := w.put(tMinutes, minute, binary.BigEndian.AppendUint64(nil, n+1)); err != nil {
		return err
	}
	return w.trimRing(engine.Milli(r.At.Add(-rejectionLife)))
}

func (w *writer) putRejection(r *store.Rejection) error {
	same, ring, age := ringKeys(r)
	kept := binary.AppendVarint(nil, int64(len(r.Header)+len(r.Body)))
	for _, p := range []struct {
		t          table
		key, value []byte
	}{{tSame, same, binary.BigEndian.AppendUint64(nil, uint64(r.ID))}, {tRing, ring, kept}, {tRingAge, age, nil}, {tRejections, num(r.ID), encodeRejection(r)}} {
		if err := w.put(p.t, p.key, p.value); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) dropRejection(r *store.Rejection) error {
	same, ring, age := ringKeys(r)
	for t, k := range map[table][]byte{tSame: same, tRing: ring, tRingAge: age, tRejections: num(r.ID)} {
		if err := w.del(t, k); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) dropRejectionByID(id int64) error {
	r, err := decodeRejection(id, w.get(tRejections, num(id)), true)
	if err != nil {
		return err
	}
	return w.dropRejection(&r)
}

// RemoveRejection takes one out; see store.Rejections.
func (d *DB) RemoveRejection(ctx context.Context, id int64) error {
	return wrap(d.do(ctx, func(w *writer) error {
		if w.get(tRejections, num(id)) == nil {
			return nil
		}
		return w.dropRejectionByID(id)
	}), "remove rejection %d", id)
}

// trimRing takes out what is too old, then what is over: from the source that has the
// most, unsigned ones first, oldest first.
func (w *writer) trimRing(oldest int64) error {
	if _, err := w.dropRejectionsBefore(oldest, maxRejections); err != nil {
		return err
	}
	if err := w.dropMinutesBefore(oldest / 60000); err != nil {
		return err
	}
	for {
		id := w.over()
		if id == 0 {
			return nil
		}
		if err := w.dropRejectionByID(id); err != nil {
			return err
		}
	}
}

// dropRejectionsBefore removes up to most that were seen last before an instant.
func (w *writer) dropRejectionsBefore(oldest int64, most int) (int, error) {
	var old []int64
	for k := range w.keys(tRingAge, nil, false) {
		if numAt(k, 0) >= oldest || len(old) == most {
			break
		}
		old = append(old, last(k))
	}
	for _, id := range old {
		if err := w.dropRejectionByID(id); err != nil {
			return 0, err
		}
	}
	return len(old), nil
}

func (w *writer) dropMinutesBefore(minute int64) error {
	var old []int64
	for k := range w.keys(tMinutes, nil, false) {
		if numAt(k, 0) >= minute {
			break
		}
		old = append(old, numAt(k, 0))
	}
	for _, m := range old {
		if err := w.del(tMinutes, num(m)); err != nil {
			return err
		}
	}
	return nil
}

// share is what one source has in the ring, and the first of it to go.
type share struct{ rows, bytes, first int64 }

func (s share) weight() int64 { return max(s.rows*(maxRejectionBytes/maxRejections), s.bytes) }

// over is the rejection that has to go, 0 when the ring is within its bounds.
func (x *tx) over() int64 {
	var all, one, largest share
	source := ""
	end := func() {
		if one.weight() > largest.weight() {
			largest = one
		}
	}
	for k, v := range x.pairs(tRing, nil, false) {
		if s := string(k[:len(k)-17]); s != source || one.rows == 0 {
			end()
			source, one = s, share{first: last(k)}
		}
		n, _ := binary.Varint(v)
		one.rows, one.bytes = one.rows+1, one.bytes+n
		all.rows, all.bytes = all.rows+1, all.bytes+n
	}
	end()
	if all.rows <= maxRejections && all.bytes <= maxRejectionBytes {
		return 0
	}
	return largest.first
}

// RejectionList lists newest first; see store.Rejections.
func (d *DB) RejectionList(ctx context.Context, source string, before int64, limit int) (list []store.Rejection, err error) {
	if before <= 0 {
		before = 1 << 62
	}
	err = d.view(ctx, func(x *tx) error {
		for k, v := range x.between(tRejections, nil, nil, num(before), true) {
			if len(list) >= limit {
				break
			}
			r, err := decodeRejection(numAt(k, 0), v, false)
			if err != nil {
				return err
			}
			if source == "" || r.Source == source {
				list = append(list, r)
			}
		}
		return nil
	})
	return list, wrap(err, "list rejections")
}

// RejectionByID reads one; see store.Rejections.
func (d *DB) RejectionByID(ctx context.Context, id int64) (store.Rejection, error) {
	r, err := one(ctx, d, tRejections, num(id), func(b []byte) (store.Rejection, error) { return decodeRejection(id, b, true) })
	return r, wrap(err, "rejection %d", id)
}

// RejectionsSince counts, to the minute; see store.Rejections.
func (d *DB) RejectionsSince(ctx context.Context, t time.Time) (n int64, err error) {
	err = d.view(ctx, func(x *tx) error {
		for _, v := range x.between(tMinutes, nil, num(engine.Milli(t)/60000), nil, false) {
			n += int64(binary.BigEndian.Uint64(v))
		}
		return nil
	})
	return n, wrap(err, "count rejections")
}
