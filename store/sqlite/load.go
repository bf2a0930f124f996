package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"acuse/store"
	"acuse/store/engine"
)

// What one transaction of a load holds at most.
const (
	loadRecords = 500
	loadBytes   = 4 << 20
)

// Load writes the records of a dump into an empty store; see store.Dumper.
func (d *DB) Load(ctx context.Context, next func() (store.Record, error)) error {
	if err := d.do(ctx, (*writer).mustBeEmpty); err != nil {
		return wrap(err, "load")
	}
	for more := true; more; {
		var batch []store.Record
		for bytes := 0; len(batch) < loadRecords && bytes < loadBytes; {
			r, err := next()
			if errors.Is(err, io.EOF) {
				more = false
				break
			}
			if err != nil {
				return wrap(err, "load")
			}
			if r.Payload != nil {
				bytes += len(r.Payload.Body)
			}
			batch = append(batch, r)
		}
		if err := d.do(ctx, func(w *writer) error {
			for _, r := range batch {
				if err := w.loadRecord(r); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return wrap(err, "load")
		}
	}
	return wrap(d.do(ctx, (*writer).loosen), "load")
}

func (w *writer) mustBeEmpty() error {
	n, err := w.number(`SELECT EXISTS (SELECT 1 FROM deliveries) OR EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM rejections)
		OR (SELECT delivery <> 0 FROM marks)`)
	if err == nil && n != 0 {
		err = fmt.Errorf("%w: the store is not empty", store.ErrState)
	}
	return err
}

// loosen marks the keys whose delivery is gone.
func (w *writer) loosen() error {
	_, err := w.exec("UPDATE OR FAIL dedup SET loose = 1 WHERE NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.id = dedup.delivery)")
	return err
}

// loadMarks sets what was given out; SQLite itself numbers rejections and the audit log.
func (w *writer) loadMarks(m *store.Marks) error {
	if _, err := w.exec("UPDATE OR FAIL marks SET delivery = ?, job = ?, attempt = ?", m.Delivery, m.Job, m.Attempt); err != nil {
		return err
	}
	if _, err := w.exec("DELETE FROM sqlite_sequence WHERE name IN ('rejections', 'audit')"); err != nil {
		return err
	}
	_, err := w.exec("INSERT INTO sqlite_sequence (name, seq) VALUES ('rejections', ?), ('audit', ?)", m.Rejection, m.Audit)
	return err
}

func (w *writer) loadRecord(r store.Record) (err error) {
	switch {
	case r.Marks != nil:
		err = w.loadMarks(r.Marks)
		w.numbers.delivery, w.numbers.job, w.numbers.attempt = r.Marks.Delivery+1, r.Marks.Job+1, r.Marks.Attempt+1
	case r.Setting != nil:
		_, err = w.exec("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", r.Setting.Name, r.Setting.Value)
	case r.User != nil:
		u := r.User
		_, err = w.exec("INSERT OR FAIL INTO users (name, role, password, language, created_at) VALUES (?, ?, ?, ?, ?)", u.Name, u.Role, u.Password, u.Language, ms(u.CreatedAt))
	case r.Token != nil:
		t := r.Token
		scopes, jerr := json.Marshal(append([]string{}, t.Scopes...))
		if jerr != nil {
			return jerr
		}
		_, err = w.exec("INSERT OR FAIL INTO tokens (id, name, agent, hash, scopes, created_at, last_used, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			t.ID, t.Name, t.Agent, blob(t.Hash), string(scopes), ms(t.CreatedAt), ms(t.LastUsed), ms(t.Expires))
	case r.Session != nil:
		s := r.Session
		_, err = w.exec("INSERT OR FAIL INTO sessions (id, user, data, expires) VALUES (?, ?, ?, ?)", s.ID, s.User, blob(s.Data), ms(s.Expires))
	case r.Notice != nil:
		n := r.Notice
		_, err = w.exec("INSERT OR FAIL INTO notices (rule, subject, since, ended_at, sent_at, sent_end, count, text, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			n.Rule, n.Subject, ms(n.Since), ms(n.Ended), ms(n.SentAt), flag(n.SentEnd), n.Count, n.Text, n.Error)
	case r.Audit != nil:
		e := r.Audit
		_, err = w.exec("INSERT OR FAIL INTO audit (id, at, by_name, by_from, act, delivery, subject, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			e.ID, ms(e.At), e.By.Name, e.By.From, e.Act, e.Delivery, e.Subject, e.Reason)
	case r.Minute != nil:
		_, err = w.exec("INSERT OR FAIL INTO rejection_minutes (minute, count) VALUES (?, ?)", ms(r.Minute.Minute)/60_000, r.Minute.Count)
	case r.Rejection != nil:
		err = w.loadRejection(r.Rejection)
	case r.Payload != nil:
		p := r.Payload
		_, err = w.exec(insertPayload.rows(1), p.ID, p.Method, p.Target, blob(p.Header), blob(p.Body))
	case r.Delivery != nil:
		err = w.loadDelivery(r.Delivery)
	case r.Job != nil:
		err = w.loadJob(r.Job)
	case r.Attempt != nil:
		err = w.loadAttempt(r.Attempt)
	case r.Key != nil:
		var source int64
		if source, err = w.name(r.Key.Source); err == nil {
			_, err = w.exec("INSERT OR FAIL INTO dedup (source, event_id, delivery, expires_at) VALUES (?, ?, ?, ?)", source, r.Key.EventID, r.Key.Delivery, ms(r.Key.Expires))
		}
	}
	return err
}

func (w *writer) loadRejection(r *store.Rejection) error {
	_, err := w.exec(`INSERT OR FAIL INTO rejections (id, source, reason, digest, detail, remote, first_at, at, count, status, signed, method, target, size, bytes, headers, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, r.ID, r.Source, r.Reason, digest(r.Body), r.Detail, r.Remote, ms(r.FirstAt), ms(r.At),
		int64(r.Count), int64(r.Status), flag(r.Signed), r.Method, r.Target, int64(r.Size), int64(len(r.Header)+len(r.Body)), blob(r.Header), r.Body)
	return err
}

func (w *writer) loadDelivery(d *store.DeliveryRow) error {
	source, err := w.name(d.Source)
	if err != nil {
		return err
	}
	provider, err := w.name(d.Provider)
	if err != nil {
		return err
	}
	hold := int64(holdNone)
	switch {
	case d.State == store.StateQuarantined:
		hold = holdQuarantined
		w.quarantined(1)
	case d.Jobless:
		hold = holdJobless
	}
	_, err = w.exec(`INSERT OR FAIL INTO deliveries (id, source, provider, event_id, type, resource, version, unit, received_at, size, digest, slot, part, payload,
		hold, quarantine, made, test, duplicates, last_duplicate_at, body_differs, ack_us, remote, duplicate_of, copy_of, earlier)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.ID, source, provider, d.EventID, d.Type, d.Resource, d.Version, d.Unit, ms(d.ReceivedAt), int64(d.Size), d.Digest, int64(d.Slot), int64(d.Part), d.Payload,
		hold, d.Quarantine, flag(d.Made), flag(d.Test), int64(d.Duplicates), ms(d.LastDuplicateAt), int64(d.BodyDiffers), d.AckMicros, d.Remote,
		d.DuplicateOf, d.CopyOf, d.Earlier)
	w.pending.newest = ms(d.ReceivedAt)
	return err
}

func (w *writer) loadJob(j *store.JobRow) error {
	destination, err := w.name(j.Destination)
	if err != nil {
		return err
	}
	w.moved(destination, 0, j.State)
	due := ms(j.DueAt)
	if j.Turn == engine.Waits {
		due = engine.Never
	}
	_, err = w.exec(`INSERT OR FAIL INTO jobs (id, delivery, destination, state, due_at, since, attempts, spent, lease_token, lease_owner, lease_until, settled_at,
		reason, last_status, last_class, last_error, last_us, resend, passthrough, revived, key, note,
		order_value, order_strict, order_place, order_turn, order_since, latest, superseded_by)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		j.ID, j.Delivery, destination, int64(j.State), due, ms(j.Since), int64(j.Attempts), int64(j.Spent), j.LeaseToken, j.LeaseOwner, ms(j.LeaseUntil), ms(j.SettledAt),
		int64(j.Reason), int64(j.LastStatus), j.LastClass, j.LastError, j.LastMicros, flag(j.Resend), flag(j.Passthrough), flag(j.Revived), j.Key, j.Note,
		j.Order, flag(j.Strict), j.Place, int64(j.Turn), ms(j.TurnAt), j.Latest, j.SupersededBy)
	return err
}

func (w *writer) loadAttempt(a *store.Attempt) error {
	_, err := w.exec(`INSERT OR FAIL INTO attempts (id, job, n, started_at, outcome, status, maybe, resend, total_us, connect_us, tls_us, first_byte_us, owner, worker,
		class, error, answer_headers, answer_body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.Job, int64(a.N), ms(a.StartedAt), int64(a.Outcome), int64(a.Status), flag(a.Maybe), flag(a.Resend), a.Duration.Microseconds(), a.Connect.Microseconds(),
		a.TLS.Microseconds(), a.FirstByte.Microseconds(), a.Owner, a.Worker, a.Class, a.Error, a.Header, a.Body)
	return err
}
