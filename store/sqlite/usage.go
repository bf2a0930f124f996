package sqlite

import (
	"context"
	"database/sql"

	"acuse/store"
	"acuse/store/engine"
)

// sampled is how many rows at each end of a table tell what one takes.
const sampled = 200

// tables are told in this order. size is what a row takes, indexes included, about.
var tables = []struct{ name, size string }{
	{"deliveries", "200 + length(event_id) + length(type) + length(resource) + length(remote)"},
	{"payloads", "40 + length(method) + length(target) + length(headers) + length(body)"},
	{"jobs", "180 + length(key) + length(last_error) + length(note)"},
	{"attempts", "100 + length(owner) + length(error) + ifnull(length(answer_headers), 0) + ifnull(length(answer_body), 0)"},
	{"rejections", "200 + length(target) + bytes"},
}

// selectRemovable counts what would go by age: finished, and not a dead letter. It looks
// at 200 000 rows at most.
const selectRemovable = `SELECT count(*), ifnull(sum(size + 2000), 0) FROM (
	SELECT d.size FROM deliveries d INDEXED BY deliveries_received WHERE d.received_at <= ?1 AND d.hold <> 1
	AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.delivery = d.id AND (j.state IN (1, 2, 4) OR j.settled_at > ?1)) LIMIT 200000)`

// Usage tells what the archive takes; see store.Retention. Rows and bytes by table are
// reckoned from the numbers given out and from samples: counting would read the file.
func (d *DB) Usage(ctx context.Context, r store.PurgeRule) (u store.Usage, err error) {
	h := d.Health()
	u.Bytes, u.Journal = h.Bytes, h.Journal
	err = d.view(ctx, func(tx *sql.Tx) error {
		var pages, free int64
		if err := tx.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
			return err
		}
		u.Live, u.Free = (pages-free)*pageSize, free*pageSize
		var oldest sql.NullInt64
		if err := tx.QueryRowContext(ctx, "SELECT min(received_at) FROM deliveries").Scan(&oldest); err != nil {
			return err
		}
		u.Oldest = instant(oldest.Int64)
		for _, t := range tables {
			one, err := sample(ctx, tx, t.name, t.size)
			if err != nil {
				return err
			}
			u.Tables = append(u.Tables, one)
		}
		u.Tables = append(u.Tables, store.TableUsage{Name: "dedup", Rows: u.Tables[0].Rows, Bytes: u.Tables[0].Rows * 60})
		if r.Age > 0 {
			if err := tx.QueryRowContext(ctx, selectRemovable, engine.Before(&r, r.Age)).Scan(&u.Removable, &u.RemovableBytes); err != nil {
				return err
			}
		}
		if over := u.Live - r.MaxBytes; r.MaxBytes > 0 && over > u.RemovableBytes {
			u.RemovableBytes = over
			u.Removable = max(u.Removable, over/max(1, u.Live/max(1, u.Tables[0].Rows)))
		}
		return nil
	})
	return u, wrap(err, "usage")
}

// sample reckons a table from both its ends.
func sample(ctx context.Context, tx *sql.Tx, name, size string) (store.TableUsage, error) {
	u := store.TableUsage{Name: name}
	var rows, bytes int64
	var lo, hi, dense int64
	for _, order := range []string{"ASC", "DESC"} {
		var n, b, low, high int64
		if err := tx.QueryRowContext(ctx, "SELECT count(*), ifnull(sum(size), 0), ifnull(min(id), 0), ifnull(max(id), 0) FROM (SELECT id, "+size+
			" AS size FROM "+name+" ORDER BY id "+order+" LIMIT ?)", sampled).Scan(&n, &b, &low, &high); err != nil {
			return u, err
		}
		if n < sampled {
			u.Rows, u.Bytes = n, b
			return u, nil
		}
		rows, bytes, dense = rows+n, bytes+b, dense+high-low+1
		if order == "ASC" {
			lo = low
		} else {
			hi = high
		}
	}
	u.Rows = (hi - lo + 1) * rows / dense
	u.Bytes = u.Rows * bytes / rows
	return u, nil
}
