package bolt

import (
	"cmp"
	"context"
	"slices"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// NoticeList lists what is open or ended lately; see store.Notices.
func (d *DB) NoticeList(ctx context.Context, now time.Time) (list []store.Notice, err error) {
	err = d.view(ctx, func(x *tx) error {
		for _, v := range x.pairs(tNotices, nil, false) {
			n, err := decodeNotice(v)
			if err != nil {
				return err
			}
			if n.Ended.IsZero() || engine.Milli(n.Ended) > engine.Milli(now.Add(-24*time.Hour)) {
				list = append(list, n)
			}
		}
		return nil
	})
	slices.SortStableFunc(list, func(a, b store.Notice) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject))
	})
	return list, wrap(err, "list notices")
}

func decodeNotice(b []byte) (n store.Notice, err error) {
	r := reading(b)
	n = store.Notice{Rule: r.text(), Subject: r.text(), Since: engine.Instant(r.int()), Ended: engine.Instant(r.int()), SentAt: engine.Instant(r.int()),
		SentEnd: r.flags()[0], Count: r.int(), Text: r.text(), Error: r.text()}
	return n, r.done("notices")
}

// PutNotice writes one; see store.Notices.
func (d *DB) PutNotice(ctx context.Context, n store.Notice) error {
	return wrap(d.do(ctx, func(w *writer) error { return w.putNotice(&n) }), "notice %s", n.Rule)
}

func (w *writer) putNotice(n *store.Notice) error {
	r := record(96).text(n.Rule, n.Subject).int(engine.Milli(n.Since), engine.Milli(n.Ended), engine.Milli(n.SentAt)).flags(n.SentEnd).int(n.Count).text(n.Text, n.Error)
	return w.put(tNotices, key(text(n.Rule), []byte(n.Subject)), r.b)
}

// put commits one record.
func (d *DB) put(ctx context.Context, t table, key, value []byte) error {
	return d.do(ctx, func(w *writer) error { return w.put(t, key, value) })
}

// remove commits the removal of a record that must be there.
func (d *DB) remove(ctx context.Context, t table, key []byte) error {
	return d.do(ctx, func(w *writer) error {
		if w.get(t, key) == nil {
			return store.ErrNotFound
		}
		return w.del(t, key)
	})
}

// dropNoticesBefore removes those that ended before an instant.
func (w *writer) dropNoticesBefore(oldest int64) (int, error) {
	var old [][]byte
	for k, v := range w.pairs(tNotices, nil, false) {
		n, err := decodeNotice(v)
		if err != nil {
			return 0, err
		}
		if !n.Ended.IsZero() && engine.Milli(n.Ended) < oldest {
			old = append(old, append([]byte{}, k...))
		}
	}
	for _, k := range old {
		if err := w.del(tNotices, k); err != nil {
			return 0, err
		}
	}
	return len(old), nil
}
