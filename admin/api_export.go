package admin

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"acuse/problem"
	"acuse/store"
)

// Exported is a line of an export: a delivery with all that brings it back elsewhere. Its
// headers are whole, secrets included, as they are in a backup.
type Exported struct {
	OneDelivery
	EventIDRaw []byte `json:"event_id_base64,omitempty"` // of an id that is no text
	Version    string `json:"version"`
	Unit       string `json:"version_unit"`
	Made       bool   `json:"event_id_made"` // acuse made it
	Part       int    `json:"part"`          // item of a batch; -1: the whole body
	AckUS      int64  `json:"ack_us"`
	Remote     string `json:"remote"`
	Method     string `json:"method"`
	Target     string `json:"target"`
	BodyBase64 []byte `json:"body_base64"` // null: the payload is gone
}

// exportAtOnce is how many deliveries are read at once: no read lasts while a slow client
// takes its time.
const exportAtOnce = 100

// maxImportLine is the longest line of an import: the largest body in base64, and headers.
const maxImportLine = 64 << 20

// apiExport streams the deliveries that match, oldest first: JSON lines, or CSV without
// the bodies.
func (a *Admin) apiExport(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()
	format := values.Get("format")
	values.Del("format")
	if format != "jsonl" && format != "csv" {
		return badInput("format: jsonl or csv")
	}
	for k := range values {
		if !listParams[k] || slices.Contains([]string{"before", "after", "limit"}, k) {
			return badInput("%.40q is no filter", k)
		}
	}
	q := a.readQuery(values)
	if q.bad != "" {
		return badInput("%s: not understood", q.bad)
	}
	q.filter.Limit = exportAtOnce
	out := bufio.NewWriterSize(w, 64<<10)
	var write func(d *store.Delivery) error
	if format == "csv" {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		table := csv.NewWriter(out)
		if err := table.Write(csvHead); err != nil {
			return err
		}
		write = func(d *store.Delivery) error {
			err := table.Write(csvRow(d))
			table.Flush()
			return err
		}
	} else {
		w.Header().Set("Content-Type", "application/x-ndjson")
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		write = func(d *store.Delivery) error {
			line, err := a.exported(r, d)
			if err != nil {
				return err
			}
			return enc.Encode(line)
		}
	}
	control := http.NewResponseController(w)
	for q.filter.After = 0; ; {
		_ = control.SetWriteDeadline(time.Now().Add(5 * time.Minute))
		list, next, err := a.oldest(r, q.filter)
		if err == nil {
			for i := range list {
				if err = write(&list[i]); err != nil {
					break
				}
			}
		}
		if err != nil || next == 0 {
			return a.endExport(r, out, err)
		}
		q.filter.After = next
	}
}

// oldest lists from the lowest number above f.After on, ascending. The first page starts
// above 0, which the store takes for "the newest": it is asked from number 1 on.
func (a *Admin) oldest(r *http.Request, f store.DeliveryFilter) (list []store.Delivery, next int64, err error) {
	if f.After == 0 {
		one := f
		one.After, one.Before, one.Limit = 0, 2, 1 // number 1 alone
		if list, _, err = a.opt.Archive.Deliveries(r.Context(), one); err != nil {
			return nil, 0, err
		}
		return list, 1, nil
	}
	list, next, err = a.opt.Archive.Deliveries(r.Context(), f)
	slices.Reverse(list)
	return list, next, err
}

// endExport ends the stream. What went wrong after its beginning can only be told by
// cutting it: a whole export ends well.
func (a *Admin) endExport(r *http.Request, out *bufio.Writer, err error) error {
	if err = errors.Join(err, out.Flush()); err != nil {
		if r.Context().Err() == nil {
			a.opt.Log.Error("export", "err", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (a *Admin) exported(r *http.Request, d *store.Delivery) (out Exported, err error) {
	out = Exported{OneDelivery: OneDelivery{Delivery: apiDeliveryOf(d), Quarantine: orNull(d.Quarantine), DuplicateOf: orNull(d.DuplicateOf), CopyOf: orNull(d.CopyOf),
		PayloadGone: d.PayloadGone, Headers: map[string][]string{}, Attempts: []Attempt{}, Effects: []struct{}{}},
		Version: d.Version, Unit: d.Unit, Made: d.Made, Part: d.Part, AckUS: d.AckMicros, Remote: d.Remote}
	if !utf8.ValidString(d.EventID) {
		out.EventIDRaw = []byte(d.EventID)
	}
	attempts, err := a.opt.Archive.Attempts(r.Context(), d.ID)
	if err != nil {
		return out, err
	}
	for i := range attempts {
		at, err := apiAttemptOf(&attempts[i], true)
		if err != nil {
			return out, err
		}
		out.Attempts = append(out.Attempts, at)
	}
	p, err := a.opt.Archive.Payload(r.Context(), d.ID)
	switch {
	case errors.Is(err, store.ErrPayloadGone), errors.Is(err, store.ErrNotFound):
		out.PayloadGone = true
		return out, nil
	case err != nil:
		return out, err
	}
	h, err := store.DecodeHeader(p.Header)
	out.Headers, out.Method, out.Target, out.BodyBase64 = h, p.Method, p.Target, append([]byte{}, p.Body...)
	return out, err
}

var csvHead = []string{"id", "source", "provider", "event_id", "type", "resource", "state", "received_at", "duplicates", "size", "test", "destinations", "attempts", "last_status", "last_error"}

func csvRow(d *store.Delivery) []string {
	var destinations, attempts, statuses, problems []string
	for i := range d.Jobs {
		j := &d.Jobs[i]
		destinations = append(destinations, j.Destination+":"+stateWords[j.State])
		attempts = append(attempts, strconv.Itoa(j.Attempts))
		statuses = append(statuses, strconv.Itoa(j.LastStatus))
		problems = append(problems, j.LastError)
	}
	row := []string{strconv.FormatInt(d.ID, 10), d.Source, d.Provider, d.EventID, d.Type, d.Resource, string(d.State), *stamp(d.ReceivedAt),
		strconv.Itoa(d.Duplicates), strconv.Itoa(d.Size), strconv.FormatBool(d.Test), strings.Join(destinations, " "), strings.Join(attempts, " "),
		strings.Join(statuses, " "), strings.TrimSpace(strings.Join(problems, " "))}
	for i := range row {
		row[i] = cell(row[i])
	}
	return row
}

// cell makes a text that a sender chose harmless in a spreadsheet, which would take one
// that begins so for a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// ImportResult counts what became of an import.
type ImportResult struct {
	Imported   int    `json:"imported"`
	Renumbered int    `json:"renumbered"` // of those: under a new number
	Duplicates int    `json:"duplicates"` // their event ids were known here
	Cancelled  int    `json:"cancelled"`  // jobs that were unfinished
	Lines      int    `json:"lines"`
	Error      string `json:"error"` // of the line that ended it; empty: all were read
}

// apiImport takes an export as it streams in, line by line; each is committed by itself.
func (a *Admin) apiImport(w http.ResponseWriter, r *http.Request) error {
	if a.opt.Import == nil {
		return errAbsent
	}
	requeue := r.URL.Query().Get("requeue") == "true"
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(24 * time.Hour))
	var out ImportResult
	woken := map[string]bool{}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(make([]byte, 64<<10), maxImportLine)
	for lines.Scan() {
		_ = control.SetReadDeadline(time.Now().Add(5 * time.Minute))
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		out.Lines++
		i, err := a.importOf(lines.Bytes())
		if err == nil {
			i.Requeue = requeue
			err = a.importOne(r, i, &out)
		}
		if err != nil {
			out.Error = fmt.Sprintf("line %d: %v", out.Lines, err)
			break
		}
		for _, j := range i.Delivery.Jobs {
			woken[j.Destination] = requeue
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) && out.Error == "" {
		out.Error = fmt.Sprintf("line %d: %v", out.Lines+1, err)
	}
	var names []string
	for name, wake := range woken {
		if wake {
			names = append(names, name)
		}
	}
	a.opt.Wake(names)
	a.note(r.Context(), store.AuditEntry{By: actor(r, grantOf(r)), Act: "import", Subject: strconv.Itoa(out.Imported) + " deliveries"})
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (a *Admin) importOne(r *http.Request, i store.Import, out *ImportResult) error {
	done, err := a.opt.Import(r.Context(), i)
	switch {
	case err != nil:
		return err
	case done.Duplicate:
		out.Duplicates++
		return nil
	case !done.Kept:
		out.Renumbered++
	}
	out.Imported++
	out.Cancelled += done.Cancelled
	return nil
}

// keyLife is how long the key of an imported delivery is remembered where its source is
// not configured here.
const keyLife = 30 * 24 * time.Hour

// importOf reads a line of an export.
func (a *Admin) importOf(line []byte) (i store.Import, err error) {
	var e Exported
	if err := json.Unmarshal(line, &e); err != nil {
		return i, errors.New(plain(err))
	}
	received, err := instantOf(e.ReceivedAt)
	if err != nil || received.IsZero() {
		return i, errors.New("received_at: a time is needed")
	}
	last, err := instantOf(e.LastDuplicateAt)
	if err != nil {
		return i, errors.New("last_duplicate_at: no time")
	}
	i.At = a.opt.Now().UTC()
	i.Delivery = store.Delivery{DeliveryHead: store.DeliveryHead{ID: e.ID, Source: e.Source, Provider: e.Provider, EventID: e.EventID, Made: e.Made, Type: e.Type,
		Resource: e.Resource, Version: e.Version, Unit: e.Unit, Test: e.Test, ReceivedAt: received, Size: e.Size, Part: e.Part},
		State: store.DeliveryState(e.State), Duplicates: e.Duplicates, LastDuplicateAt: last, BodyDiffers: e.BodyDiffers, AckMicros: e.AckUS, Remote: e.Remote}
	if e.EventIDRaw != nil {
		i.Delivery.EventID = string(e.EventIDRaw)
	}
	if e.SecretSlot != nil {
		i.Delivery.Slot = *e.SecretSlot
	}
	if e.Quarantine != nil {
		i.Delivery.Quarantine = *e.Quarantine
	}
	if !e.PayloadGone {
		i.Payload = &store.Payload{Method: e.Method, Target: e.Target, Header: store.EncodeHeader(e.Headers), Body: e.BodyBase64}
		if e.Part < 0 {
			sum := sha256.Sum256(e.BodyBase64)
			i.Digest = int64(binary.BigEndian.Uint64(sum[:8]))
		}
	}
	window := keyLife
	for _, s := range a.opt.Sources() {
		if s.Name == e.Source && s.Window > 0 {
			window = s.Window
		}
	}
	i.Expires = received.Add(window)
	for _, j := range e.Jobs {
		job, err := importedJob(j)
		if err != nil {
			return i, err
		}
		i.Delivery.Jobs = append(i.Delivery.Jobs, job)
	}
	for _, at := range e.Attempts {
		attempt, err := importedAttempt(at)
		if err != nil {
			return i, err
		}
		i.Attempts = append(i.Attempts, attempt)
	}
	return i, nil
}

func importedJob(j Job) (out store.Job, err error) {
	out = store.Job{ID: j.ID, Destination: j.Destination, Key: j.IdempotencyKey, Attempts: j.Attempts}
	for state, word := range stateWords {
		if word == j.State {
			out.State = state
		}
	}
	if out.State == 0 || out.Destination == "" || out.Key == "" {
		return out, fmt.Errorf("a job needs a destination, an idempotency_key and a known state, not %.40q", j.State)
	}
	if out.State == store.Dead {
		out.Reason = store.RefusedByApp // a duplicate here does not revive it
	}
	if j.LastStatus != nil {
		out.LastStatus = *j.LastStatus
	}
	if j.LastError != nil {
		out.LastError = *j.LastError
	}
	if j.LastUS != nil {
		out.LastMicros = *j.LastUS
	}
	out.SettledAt, err = instantOf(j.SettledAt)
	return out, err
}

func importedAttempt(a Attempt) (out store.Attempt, err error) {
	out = store.Attempt{ID: a.ID, Job: a.Job, N: a.Attempt, Resend: a.Resend}
	for outcome, word := range outcomeWords {
		if word == a.Outcome {
			out.Outcome = outcome
		}
	}
	if out.Outcome == 0 {
		return out, fmt.Errorf("an attempt needs a known outcome, not %.40q", a.Outcome)
	}
	if a.Status != nil {
		out.Status = *a.Status
	}
	if a.Class != nil {
		out.Class = *a.Class
	}
	if a.Error != nil {
		out.Error = *a.Error
	}
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	out.Maybe, out.Duration, out.Connect, out.TLS, out.FirstByte = a.Maybe, us(a.DurationUS), us(a.ConnectUS), us(a.TLSUS), us(a.FirstByteUS)
	if len(a.Headers) > 0 {
		out.Header = store.EncodeHeader(a.Headers)
	}
	out.Body = a.BodyBase64
	out.StartedAt, err = instantOf(a.StartedAt)
	return out, err
}

func instantOf(s *string) (time.Time, error) {
	if s == nil || *s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, *s)
	return t.UTC(), err
}
