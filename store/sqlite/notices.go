package sqlite

import (
	"context"
	"database/sql"
	"time"

	"acuse/store"
)

// NoticeList lists what is open or ended lately; see store.Notices.
func (d *DB) NoticeList(ctx context.Context, now time.Time) (list []store.Notice, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, noticeColumns+`
			WHERE ended_at = 0 OR ended_at > ? ORDER BY since, rule, subject`, func(s scanner) error {
			n, err := scanNotice(s)
			list = append(list, n)
			return err
		}, ms(now.Add(-24*time.Hour)))
	})
	return list, wrap(err, "list notices")
}

const noticeColumns = "SELECT rule, subject, since, ended_at, sent_at, sent_end, count, text, error FROM notices"

func scanNotice(s scanner) (n store.Notice, err error) {
	var since, ended, sent int64
	err = s.Scan(&n.Rule, &n.Subject, &since, &ended, &sent, &n.SentEnd, &n.Count, &n.Text, &n.Error)
	n.Since, n.Ended, n.SentAt = instant(since), instant(ended), instant(sent)
	return n, err
}

// PutNotice writes one; see store.Notices.
func (d *DB) PutNotice(ctx context.Context, n store.Notice) error {
	return wrap(d.put(ctx, `INSERT OR REPLACE INTO notices (rule, subject, since, ended_at, sent_at, sent_end, count, text, error)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, n.Rule, n.Subject, ms(n.Since), ms(n.Ended), ms(n.SentAt), flag(n.SentEnd), n.Count, n.Text, n.Error),
		"notice %s", n.Rule)
}

// put commits one statement.
func (d *DB) put(ctx context.Context, text string, args ...val) error {
	return d.do(ctx, func(w *writer) error {
		_, err := w.exec(text, args...)
		return err
	})
}
