package sqlite

import (
	"context"
	"fmt"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// held is a job as the holder of a lease finds it.
type held struct {
	destination, delivery, attempts int64
	state                           store.JobState
	order                           string
	strict                          bool
	turn                            int64
}

// current reads the job if token is its current one: the lease lives, or it ran out and
// nobody took the job since. store.ErrLeaseLost otherwise.
func (w *writer) current(job, token int64) (h held, err error) {
	row, ok, err := w.row(selectCurrent, job, token)
	if err == nil && (!ok || token == 0) {
		err = store.ErrLeaseLost
	}
	if err != nil {
		return held{}, fmt.Errorf("job %d: %w", job, err)
	}
	return held{row[0].(int64), row[1].(int64), row[2].(int64), store.JobState(row[3].(int64)), row[4].(string), row[5].(int64) != 0, row[6].(int64)}, nil
}

const selectCurrent = "SELECT destination, delivery, attempts, state, order_value, order_strict, order_turn FROM jobs WHERE id = ? AND lease_token = ? AND state IN (1, 2)"

// Renew moves a lease's deadline; see store.Jobs.
func (d *DB) Renew(ctx context.Context, job, token int64, until time.Time) error {
	return d.do(ctx, func(w *writer) error {
		h, err := w.current(job, token)
		if err != nil {
			return err
		}
		if h.state == store.Queued {
			if _, err := w.exec("UPDATE OR FAIL attempts SET outcome = 1, total_us = 0 WHERE id = ?", token); err != nil {
				return err
			}
			w.moved(h.destination, store.Queued, store.Leased)
		}
		_, err = w.exec("UPDATE OR FAIL jobs SET state = 2, lease_until = ? WHERE id = ? AND lease_token = ?", ms(until), job, token)
		return err
	})
}

// How much of an answer is kept: of the latest attempt, of those before.
const (
	latestAnswer = 64 << 10
	olderAnswer  = 4 << 10
)

// Settle writes an outcome; see store.Jobs.
func (d *DB) Settle(ctx context.Context, s store.Settlement) error {
	if s.State != store.Delivered && s.State != store.Dead && s.State != store.Queued {
		return fmt.Errorf("settle job %d: %w: to state %d", s.Job, store.ErrRefused, s.State)
	}
	if s.Result.Outcome == 0 {
		s.Result.Outcome = store.Failed
		if s.State == store.Delivered {
			s.Result.Outcome = store.Succeeded
		}
	}
	if len(s.Result.Body) > latestAnswer {
		s.Result.Body = s.Result.Body[:latestAnswer]
	}
	return d.submit(ctx, &write{do: func(w *writer) error { return w.settle(&s) }}, len(s.Result.Body)+len(s.Result.Header))
}

func (w *writer) settle(s *store.Settlement) error {
	h, err := w.current(s.Job, s.Token)
	if err != nil {
		return err
	}
	r, due, settled, reason := &s.Result, int64(0), ms(s.At), int64(0)
	switch s.State {
	case store.Queued:
		due, settled = ms(s.Due), 0
	case store.Dead:
		reason = int64(s.Reason)
	}
	turn := h.turn
	if !engine.Keeps(s.State, h.strict) {
		turn = engine.NoTurn
	}
	if _, err := w.exec(`UPDATE OR FAIL jobs SET state = ?, due_at = ?, settled_at = ?, reason = ?, lease_token = 0, lease_until = 0, order_turn = ?,
		last_status = ?, last_class = ?, last_error = ?, last_us = ? WHERE id = ? AND lease_token = ?`,
		int64(s.State), due, settled, reason, turn, int64(r.Status), r.Class, r.Error, r.Duration.Microseconds(), s.Job, s.Token); err != nil {
		return err
	}
	w.moved(h.destination, h.state, s.State)
	if turn != h.turn {
		if err := w.advance(line{h.destination, h.order}, ms(s.At)); err != nil {
			return err
		}
	}
	if _, err := w.exec(`UPDATE OR FAIL attempts SET outcome = ?, status = ?, class = ?, error = ?, maybe = ?, total_us = ?,
		connect_us = ?, tls_us = ?, first_byte_us = ?, worker = ?, answer_headers = ?, answer_body = ? WHERE id = ?`,
		int64(r.Outcome), int64(r.Status), r.Class, r.Error, flag(r.Maybe), r.Duration.Microseconds(),
		r.Connect.Microseconds(), r.TLS.Microseconds(), r.FirstByte.Microseconds(), r.Worker, r.Header, r.Body, s.Token); err != nil {
		return err
	}
	if h.attempts == 1 {
		return nil
	}
	_, err = w.exec(trimAnswers,
		int64(olderAnswer), s.Job, s.Token, int64(olderAnswer))
	return err
}

const trimAnswers = "UPDATE OR FAIL attempts SET answer_body = substr(answer_body, 1, ?) WHERE job = ? AND id < ? AND length(answer_body) > ?"
