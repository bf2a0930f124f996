package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"acuse/store"
)

// Accept writes one request; see store.Inbox.
func (d *DB) Accept(ctx context.Context, a store.Arrival) ([]store.Outcome, error) {
	if err := check(a); err != nil {
		return nil, fmt.Errorf("accept %s: %w", a.Source, err)
	}
	if d.space.low() {
		return nil, fmt.Errorf("accept %s: %w: %d bytes are free on the volume, the floor is %d", a.Source, store.ErrUnavailable, d.space.now(), d.space.minFree)
	}
	w := &write{arrival: &a}
	if err := d.submit(ctx, w, len(a.Body)+len(a.Header)+512); err != nil {
		return nil, fmt.Errorf("accept %s: %w", a.Source, err)
	}
	return w.outcomes, nil
}

// check refuses what no engine could keep in a meaningful way. The rest is refused by
// the tables' constraints.
func check(a store.Arrival) error {
	if a.Source == "" || len(a.Events) == 0 {
		return fmt.Errorf("%w: no source or no event", store.ErrRefused)
	}
	for _, e := range a.Events {
		if e.ID == "" && e.Quarantine == "" {
			return fmt.Errorf("%w: an event without an id is quarantined, with a reason", store.ErrRefused)
		}
		for _, j := range e.Jobs {
			if j.Destination == "" || (j.State != store.Queued && j.State != store.Filtered) {
				return fmt.Errorf("%w: a job needs a destination and is queued or filtered", store.ErrRefused)
			}
		}
	}
	return nil
}

// item is one event of a batch on its way into the tables.
type item struct {
	w       *write
	event   *store.Event
	index   int // among the arrival's events
	source  int64
	id      int64 // its delivery, or the first one of a duplicate
	dup     bool
	earlier int64 // delivery that had the same event id before
	payload int64
}

// accept writes the arrivals of a batch, table by table.
func (w *writer) accept(list []*write) error {
	if len(list) == 0 {
		return nil
	}
	items, err := w.items(list)
	if err != nil {
		return err
	}
	if err := w.claim(items); err != nil {
		return err
	}
	if err := w.insertPayloads(items); err != nil {
		return err
	}
	if err := w.insertDeliveries(items); err != nil {
		return err
	}
	if err := w.insertJobs(items); err != nil {
		return err
	}
	for i := range items {
		if err := w.accepted(&items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) items(list []*write) ([]item, error) {
	items := make([]item, 0, len(list))
	for _, one := range list {
		a := one.arrival
		one.err, one.outcomes = nil, make([]store.Outcome, len(a.Events))
		source, err := w.name(a.Source)
		if err != nil {
			return nil, err
		}
		for i := range a.Events {
			items = append(items, item{w: one, event: &a.Events[i], index: i, source: source})
		}
	}
	return items, nil
}

// accepted tells the request what became of one of its events.
func (w *writer) accepted(it *item) error {
	out := &it.w.outcomes[it.index]
	*out = store.Outcome{Kind: store.Accepted, Delivery: it.id}
	switch {
	case it.dup:
		out.Kind = store.Duplicate
		var err error
		out.Revived, err = w.duplicate(it.id, it.event, it.w.arrival.ReceivedAt)
		return err
	case it.event.Quarantine != "":
		out.Kind = store.Quarantined
		w.pending.moves = append(w.pending.moves, move{n: 1})
	}
	w.pending.newest = ms(it.w.arrival.ReceivedAt)
	w.remember(it)
	return nil
}

// claim claims the dedup keys of the items and gives each its number: a new one, or
// that of the delivery which has the key. Duplicates use up no number.
func (w *writer) claim(items []item) error {
	for len(items) > 0 {
		if items[0].event.Quarantine != "" {
			items[0].id = w.numbers.delivery
			w.numbers.delivery++
			items = items[1:]
			continue
		}
		n := slices.IndexFunc(items, func(it item) bool { return it.event.Quarantine != "" })
		if n < 0 {
			n = len(items)
		}
		n = chunk(n)
		if err := w.claimChunk(items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// claimChunk claims up to eight keys by one statement. When all are new, which is the
// normal case, that is all; else it asks for each who has it.
func (w *writer) claimChunk(items []item) error {
	var args [8 * 4]val
	for i := range items {
		it := &items[i]
		it.id = w.numbers.delivery + int64(i)
		copy(args[i*4:], []val{it.source, it.event.ID, it.id, it.expires()})
	}
	changed, err := w.exec(insertDedup.rows(len(items)), args[:len(items)*4]...)
	if err != nil {
		return err
	}
	if changed == len(items) {
		w.numbers.delivery += int64(len(items))
		return nil
	}
	for i := range items {
		if err := w.claimOne(&items[i]); err != nil {
			return err
		}
	}
	return nil
}

// claimOne finds out whether the item has its key: it is the row's delivery, or the
// row has run out and is taken over.
func (w *writer) claimOne(it *item) error {
	row, ok, err := w.row(selectHolder, it.source, it.event.ID)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("claim: the key of %d/%.40q is neither ours nor anyone's", it.source, it.event.ID)
	}
	holder, expires := row[0].(int64), row[1].(int64)
	switch {
	case holder == it.id: // ours; a duplicate before it may have left a lower number free
	case expires <= ms(it.w.arrival.ReceivedAt):
		it.earlier = holder
	default:
		it.id, it.dup = holder, true
		return nil
	}
	next := w.numbers.delivery
	w.numbers.delivery++
	if holder == next {
		it.id = next
		return nil
	}
	it.id = next
	_, err = w.exec("UPDATE OR FAIL dedup SET delivery = ?, expires_at = ? WHERE source = ? AND event_id = ?", next, it.expires(), it.source, it.event.ID)
	return err
}

const (
	selectHolder    = "SELECT delivery, expires_at FROM dedup WHERE source = ? AND event_id = ?"
	updateDuplicate = `UPDATE OR FAIL deliveries SET duplicates = duplicates + 1, last_duplicate_at = max(last_duplicate_at, ?),
		body_differs = body_differs + (digest <> ?) WHERE id = ?`
	selectExhausted = `SELECT j.id, j.destination FROM jobs j CROSS JOIN deliveries d ON d.id = j.delivery
		WHERE j.delivery = ? AND j.state = 4 AND j.reason = 1 AND j.revived = 0 AND d.payload <> 0`
)

func (it *item) expires() int64 { return ms(it.w.arrival.ReceivedAt.Add(it.event.Window)) }

// duplicate counts a repeat on the delivery and, if its event says so, revives the
// delivery's dead letters that died of exhausted attempts, once each.
func (w *writer) duplicate(delivery int64, e *store.Event, at time.Time) (revived bool, err error) {
	if _, err := w.exec(updateDuplicate, ms(at), e.Digest, delivery); err != nil {
		return false, err
	}
	if !e.Revive {
		return false, nil
	}
	var jobs [][2]int64
	if err := w.query(selectExhausted, func(r []val) error {
		jobs = append(jobs, [2]int64{r[0].(int64), r[1].(int64)})
		return nil
	}, delivery); err != nil {
		return false, err
	}
	for _, j := range jobs {
		if _, err := w.exec(`UPDATE OR FAIL jobs SET state = 1, due_at = ?2, since = ?2, spent = 0, settled_at = 0, reason = 0, revived = 1
			WHERE id = ?1`, j[0], ms(at)); err != nil {
			return false, err
		}
		w.moved(j[1], store.Dead, store.Queued)
	}
	return len(jobs) > 0, nil
}

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
	insertJob = newInsert(`INSERT OR FAIL INTO jobs (id, delivery, destination, state, due_at, since, settled_at, resend, passthrough, key, note,
		attempts, spent, lease_token, lease_owner, lease_until, reason, last_status, last_class, last_error, last_us, revived)`,
		"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, '', 0, 0, 0, '', '', 0, 0)")
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
	out := rows{w: w, in: &insertJob}
	for i := range items {
		it := &items[i]
		if it.dup || it.event.Quarantine != "" {
			continue
		}
		for _, j := range it.event.Jobs {
			if _, err := w.addJob(&out, it.id, j, it.w.arrival.ReceivedAt, false, false); err != nil {
				return err
			}
		}
	}
	return out.flush()
}

// addJob adds one new job to out.
func (w *writer) addJob(out *rows, delivery int64, j store.NewJob, at time.Time, resend, passthrough bool) (id int64, err error) {
	destination, err := w.name(j.Destination)
	if err != nil {
		return 0, err
	}
	id = w.numbers.job
	w.numbers.job++
	settled := int64(0)
	if j.State != store.Queued {
		settled = ms(at)
	}
	w.moved(destination, 0, j.State)
	return id, out.add(id, delivery, destination, int64(j.State), ms(at), ms(at), settled, flag(resend), flag(passthrough), j.Key, j.Note)
}

// The values of deliveries.hold.
const (
	holdNone = iota
	holdQuarantined
	holdJobless
)

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// blob makes nil an empty BLOB: the column is NOT NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// ms is t in unix milliseconds; 0 for the zero time.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant reads what ms wrote.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}
