package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"acuse/store"
)

// ended is a lease to be ended from outside.
type ended struct{ job, destination, token int64 }

// Expire ends the leases that ran out; see store.Jobs.
func (d *DB) Expire(ctx context.Context, now time.Time) (map[string]int, error) {
	counts := map[string]int{}
	for {
		var part []string
		err := d.do(ctx, func(w *writer) error {
			part = nil
			list, err := w.leases(selectExpired, ms(now), int64(maxExpired))
			if err != nil {
				return err
			}
			for _, e := range list {
				part = append(part, w.byID[e.destination])
			}
			return w.end(list, true, now)
		})
		if err != nil {
			return counts, fmt.Errorf("expire leases: %w", err)
		}
		for _, name := range part {
			counts[name]++
		}
		if len(part) < maxExpired {
			return counts, nil
		}
	}
}

const selectExpired = "SELECT id, destination, lease_token FROM jobs INDEXED BY jobs_lease WHERE state = 2 AND lease_until < ? ORDER BY lease_until LIMIT ?"

// EndLeases ends the leases of owners with the prefix; see store.Jobs.
func (d *DB) EndLeases(ctx context.Context, prefix string, now time.Time) (int, error) {
	total := 0
	for {
		n := 0
		err := d.do(ctx, func(w *writer) error {
			list, err := w.leases("SELECT id, destination, lease_token FROM jobs INDEXED BY jobs_lease WHERE state = 2 AND substr(lease_owner, 1, ?) = ? LIMIT ?",
				int64(len([]rune(prefix))), strings.ToValidUTF8(prefix, ""), int64(maxExpired))
			if err != nil {
				return err
			}
			n = len(list)
			return w.end(list, false, now)
		})
		if err != nil {
			return total, fmt.Errorf("end leases of %s: %w", prefix, err)
		}
		if total += n; n < maxExpired {
			return total, nil
		}
	}
}

func (w *writer) leases(text string, args ...val) (list []ended, err error) {
	err = w.query(text, func(r []val) error {
		list = append(list, ended{r[0].(int64), r[1].(int64), r[2].(int64)})
		return nil
	}, args...)
	return list, err
}

// end queues the jobs again, due now. With late set the old worker may still settle
// until another one leases the job.
func (w *writer) end(list []ended, late bool, now time.Time) error {
	for _, e := range list {
		token := int64(0)
		if late {
			token = e.token
		}
		if _, err := w.exec(`UPDATE OR FAIL jobs SET state = 1, due_at = ?, lease_token = ?, lease_until = 0,
			last_status = 0, last_class = 'interrupted', last_error = '' WHERE id = ?`, ms(now), token, e.job); err != nil {
			return err
		}
		if _, err := w.exec("UPDATE OR FAIL attempts SET outcome = 4, total_us = max(0, ? - started_at) * 1000 WHERE id = ?", ms(now), e.token); err != nil {
			return err
		}
		w.moved(e.destination, store.Leased, store.Queued)
	}
	return nil
}
