package sqlite

import (
	"errors"
	"slices"
	"strings"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// insert is an INSERT of 8, 4, 2 or 1 rows: more rows a statement are slower again.
type insert [4]string

var chunks = [4]int{8, 4, 2, 1}

func newInsert(head, row string) (in insert) {
	for i, n := range chunks {
		in[i] = head + " VALUES " + strings.Repeat(row+", ", n-1) + row
	}
	return in
}

func (in *insert) rows(n int) string { return in[slices.Index(chunks[:], n)] }

// chunk is the size of the next statement when n rows are left.
func chunk(n int) int {
	for _, c := range chunks {
		if c <= n {
			return c
		}
	}
	return 0
}

// OR FAIL: an error ends the statement and leaves the transaction to us, without the
// statement journal that the default (ABORT) keeps for taking back a part of the rows.
var (
	insertDedup    = newInsert("INSERT OR IGNORE INTO dedup (source, event_id, delivery, expires_at)", "(?, ?, ?, ?)")
	insertPayload  = newInsert("INSERT OR FAIL INTO payloads (id, method, target, headers, body)", "(?, ?, ?, ?, ?)")
	insertDelivery = newInsert(`INSERT OR FAIL INTO deliveries (id, source, provider, event_id, type, resource, version, unit,
		received_at, size, digest, slot, part, payload, hold, quarantine, made, test, ack_us, remote, earlier,
		duplicates, last_duplicate_at, body_differs, duplicate_of, copy_of)`,
		"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0)")
	// The job that most events have: queued, in no order. Fewer values to bind.
	insertPlain = newInsert(`INSERT OR FAIL INTO jobs (id, delivery, destination, state, due_at, since, resend, passthrough, key, note,
		settled_at, reason, last_class, attempts, spent, lease_token, lease_owner, lease_until, last_status, last_error, last_us, revived)`,
		"(?, ?, ?, 1, ?, ?, ?, ?, ?, ?, 0, 0, '', 0, 0, 0, '', 0, 0, '', 0, 0)")
	insertJob = newInsert(`INSERT OR FAIL INTO jobs (id, delivery, destination, state, due_at, since, settled_at, resend, passthrough, key, note,
		order_value, order_strict, order_place, order_turn, latest, reason, last_class,
		attempts, spent, lease_token, lease_owner, lease_until, last_status, last_error, last_us, revived, order_since, superseded_by)`,
		"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, '', 0, 0, '', 0, 0, 0, 0)")
)

// rows gathers rows and writes them eight at a time.
type rows struct {
	w     *writer
	in    *insert
	width int
	args  []val
}

func (r *rows) add(v ...val) error {
	r.width = len(v)
	r.args = append(r.args, v...)
	if len(r.args) == 8*r.width {
		return r.flush()
	}
	return nil
}

func (r *rows) flush() error {
	for args := r.args; len(args) > 0; {
		n := chunk(len(args) / r.width)
		if _, err := r.w.exec(r.in.rows(n), args[:n*r.width]...); err != nil {
			return err
		}
		args = args[n*r.width:]
	}
	r.args = r.args[:0]
	return nil
}

// insertPayloads writes each request that brought something new, once.
func (w *writer) insertPayloads(items []item) error {
	out := rows{w: w, in: &insertPayload}
	var last *write
	var payload int64
	for i := range items {
		it := &items[i]
		if it.dup {
			continue
		}
		if it.w != last {
			last, payload = it.w, it.id
			a := it.w.arrival
			if err := out.add(payload, a.Method, a.Target, blob(a.Header), blob(a.Body)); err != nil {
				return err
			}
		}
		it.payload = payload
	}
	return out.flush()
}

func (w *writer) insertDeliveries(items []item) error {
	out := rows{w: w, in: &insertDelivery}
	for i := range items {
		it := &items[i]
		if it.dup {
			continue
		}
		a, e := it.w.arrival, it.event
		provider, err := w.name(a.Provider)
		if err != nil {
			return err
		}
		hold, eventID := int64(holdNone), e.ID
		if e.Quarantine != "" {
			hold, eventID = holdQuarantined, ""
		} else if len(e.Jobs) == 0 {
			hold = holdJobless
		}
		if err := out.add(it.id, it.source, provider, eventID, e.Type, e.Resource, e.Version, e.Unit,
			ms(a.ReceivedAt), int64(e.Size), e.Digest, int64(a.Slot), int64(e.Part), it.payload, hold, e.Quarantine,
			flag(e.Made), flag(e.Test), a.AckMicros, a.Remote, it.earlier); err != nil {
			return err
		}
	}
	return out.flush()
}

func (w *writer) insertJobs(items []item) error {
	out := w.newJobs()
	for i := range items {
		it := &items[i]
		if it.dup || it.event.Quarantine != "" {
			continue
		}
		for _, j := range it.event.Jobs {
			if _, err := out.add(of{it.id, it.source, it.w.arrival.Source, it.event}, j, it.w.arrival.Accepted(), false, false); err != nil {
				return err
			}
		}
	}
	return out.end()
}

// of is the delivery that a new job belongs to.
type of struct {
	delivery, source int64
	sourceName       string
	event            *store.Event // nil: it supersedes nothing
}

// newJobs gathers new jobs, and what is to be done once they are written.
type newJobs struct {
	plain, rows rows
	lines       []line
	starts      []int64 // by line: when its job was queued
	newest      []newest
}

func (w *writer) newJobs() newJobs {
	return newJobs{plain: rows{w: w, in: &insertPlain}, rows: rows{w: w, in: &insertJob}}
}

// end writes what is left, and gives out turns.
func (n *newJobs) end() error {
	if err := errors.Join(n.plain.flush(), n.rows.flush()); err != nil {
		return err
	}
	for i, l := range n.lines {
		if err := n.rows.w.advance(l, n.starts[i]); err != nil {
			return err
		}
	}
	for _, one := range n.newest {
		if err := n.rows.w.supersede(one); err != nil {
			return err
		}
	}
	return nil
}

// add adds one new job.
func (n *newJobs) add(o of, j store.NewJob, at time.Time, resend, passthrough bool) (id int64, err error) {
	w := n.rows.w
	destination, err := w.name(j.Destination)
	if err != nil {
		return 0, err
	}
	id = w.numbers.job
	w.numbers.job++
	due, settled, turn, place, latest := ms(at), int64(0), int64(engine.NoTurn), int64(0), int64(0)
	if j.State != store.Queued {
		settled = ms(at)
	} else {
		if j.Order != "" {
			due, turn, place = engine.Never, engine.Waits, engine.Place(o.delivery)
			n.lines, n.starts = append(n.lines, line{destination, j.Order}), append(n.starts, ms(at))
		}
		if j.Latest && o.event != nil {
			if latest = engine.Latest(o.sourceName, o.event); latest != 0 {
				n.newest = append(n.newest, newest{o.delivery, destination, o.source, latest, o.event, ms(at)})
			}
		}
	}
	if j.State == store.Queued && j.Order == "" && latest == 0 {
		w.moved(destination, 0, store.Queued)
		return id, n.plain.add(id, o.delivery, destination, due, due, flag(resend), flag(passthrough), j.Key, j.Note)
	}
	reason, class := int64(0), ""
	if j.State == store.Dead {
		reason, class = int64(store.RefusedByApp), engine.ClassRule
	}
	w.moved(destination, 0, j.State)
	return id, n.rows.add(id, o.delivery, destination, int64(j.State), due, ms(at), settled, flag(resend), flag(passthrough), j.Key, j.Note,
		j.Order, flag(j.Strict && j.Order != ""), place, turn, latest, reason, class)
}

// The values of deliveries.hold.
const (
	holdNone = iota
	holdQuarantined
	holdJobless
)
