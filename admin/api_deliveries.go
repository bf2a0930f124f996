package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"acuse/access"
	"acuse/problem"
	"acuse/store"
)

// Delivery is a delivery in the API, the export and the command line.
type Delivery struct {
	ID              int64   `json:"id"`
	Source          string  `json:"source"`
	Provider        string  `json:"provider"`
	EventID         string  `json:"event_id"` // empty while quarantined
	Type            string  `json:"type"`
	Resource        string  `json:"resource"`
	State           string  `json:"state"`
	ReceivedAt      *string `json:"received_at"`
	Duplicates      int     `json:"duplicates"`
	LastDuplicateAt *string `json:"last_duplicate_at"`
	BodyDiffers     int     `json:"body_differs"`
	Test            bool    `json:"test"`
	Size            int     `json:"size"`
	SecretSlot      *int    `json:"secret_slot"` // from 1; null: none verified it
	Jobs            []Job   `json:"jobs"`
}

// Job is one delivery for one destination.
type Job struct {
	ID             int64   `json:"id"`
	Destination    string  `json:"destination"`
	State          string  `json:"state"`
	Attempts       int     `json:"attempts"`
	DueAt          *string `json:"due_at"` // of a queued job
	SettledAt      *string `json:"settled_at"`
	LastStatus     *int    `json:"last_status"`
	LastError      *string `json:"last_error"`
	LastUS         *int64  `json:"last_duration_us"`
	IdempotencyKey string  `json:"idempotency_key"`
	Rule           *string `json:"rule"`          // that filtered or parked it, or failed
	RuleError      *string `json:"rule_error"`    // where and how it failed: "filter 1:6 kind"
	Order          *string `json:"order"`         // value of its order
	Waits          bool    `json:"waits"`         // queued, and another one of its order has the turn
	Moved          bool    `json:"moved"`         // went to the end of its order: resent or revived
	TurnAt         *string `json:"turn_at"`       // when its turn in the order came
	SupersededBy   *int64  `json:"superseded_by"` // delivery that replaced it
}

// OneDelivery is a delivery with all that is known of it.
type OneDelivery struct {
	Delivery
	Quarantine  *string             `json:"quarantine"` // why it is not delivered
	DuplicateOf *int64              `json:"duplicate_of"`
	CopyOf      *int64              `json:"copy_of"`
	PayloadGone bool                `json:"payload_gone"`
	Orders      []OrderPlace        `json:"orders"`  // of the jobs that stand in one
	Headers     map[string][]string `json:"headers"` // secret values are "[hidden]"
	Attempts    []Attempt           `json:"attempts"`
	Effects     []struct{}          `json:"effects"`
}

// OrderPlace is where a job stands in its order.
type OrderPlace struct {
	Job    int64   `json:"job"`
	Ahead  int     `json:"ahead"`  // jobs before it; 1000 at most are counted
	Head   int64   `json:"head"`   // delivery whose turn it is
	Since  *string `json:"since"`  // when that turn came
	State  string  `json:"state"`  // of that job: queued, leased, dead
	Behind int     `json:"behind"` // jobs after it; likewise
}

// Attempt is one try of a job.
type Attempt struct {
	ID          int64               `json:"id"`
	Job         int64               `json:"job"`
	Attempt     int                 `json:"attempt"` // ordinal within the job
	StartedAt   *string             `json:"started_at"`
	Outcome     string              `json:"outcome"` // running, succeeded, failed, interrupted
	Resend      bool                `json:"resend"`
	Status      *int                `json:"status"`
	Class       *string             `json:"class"`
	Error       *string             `json:"error"`
	Maybe       bool                `json:"maybe_delivered"`
	DurationUS  int64               `json:"duration_us"`
	ConnectUS   int64               `json:"connect_us"`
	TLSUS       int64               `json:"tls_us"`
	FirstByteUS int64               `json:"first_byte_us"`
	Headers     map[string][]string `json:"headers"`     // of the answer
	BodyBase64  []byte              `json:"body_base64"` // of the answer; null without the scope body
}

func apiDeliveryOf(d *store.Delivery) Delivery {
	out := Delivery{ID: d.ID, Source: d.Source, Provider: d.Provider, EventID: d.EventID, Type: d.Type, Resource: d.Resource,
		State: string(d.State), ReceivedAt: stamp(d.ReceivedAt), Duplicates: d.Duplicates, LastDuplicateAt: stamp(d.LastDuplicateAt),
		BodyDiffers: d.BodyDiffers, Test: d.Test, Size: d.Size, SecretSlot: orNull(d.Slot), Jobs: []Job{}}
	for i := range d.Jobs {
		out.Jobs = append(out.Jobs, apiJobOf(&d.Jobs[i]))
	}
	return out
}

func apiJobOf(j *store.Job) Job {
	out := Job{ID: j.ID, Destination: j.Destination, State: stateWords[j.State], Attempts: j.Attempts, SettledAt: stamp(j.SettledAt),
		LastStatus: orNull(j.LastStatus), LastError: orNull(j.LastError), LastUS: orNull(j.LastMicros), IdempotencyKey: j.Key}
	if j.State == store.Queued {
		out.DueAt = stamp(j.DueAt)
	}
	n := store.ParseNote(j.Note)
	out.Rule, out.Order, out.Waits, out.Moved, out.TurnAt, out.SupersededBy = orNull(n.Rule), orNull(j.Order), j.Waits, j.Moved, stamp(j.TurnAt), orNull(j.SupersededBy)
	if n.Failed != "" {
		text := fmt.Sprintf("%s %d:%d %s", n.Key, n.Line, n.Column, n.Failed)
		out.RuleError = &text
	}
	return out
}

var listParams = map[string]bool{"source": true, "state": true, "type": true, "destination": true, "q": true, "since": true, "until": true,
	"before": true, "after": true, "limit": true, "answer": true, "duplicates": true, "resent": true, "failing": true}

func (a *Admin) apiDeliveries(w http.ResponseWriter, r *http.Request) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badInput("the query cannot be read")
	}
	for k, vs := range values {
		if !listParams[k] {
			return badInput("%.40q is no filter", k)
		}
		if len(vs) > 1 {
			return badInput("%s is given twice", k)
		}
	}
	q := a.readQuery(values)
	if q.bad != "" {
		return badInput("%s: not understood", q.bad)
	}
	for _, k := range []string{"before", "after"} {
		if s := values.Get(k); s != "" {
			if _, ok := readID(s); !ok {
				return badInput("%s: not a number", k)
			}
		}
	}
	if q.filter.Limit, err = readLimit(values.Get("limit")); err != nil {
		return err
	}
	list, next, err := a.list(r.Context(), q.filter)
	if err != nil {
		return err
	}
	out := struct {
		Deliveries []Delivery `json:"deliveries"`
		Next       string     `json:"next"`
	}{[]Delivery{}, cursor(next)}
	for i := range list {
		out.Deliveries = append(out.Deliveries, apiDeliveryOf(&list[i]))
	}
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

func readLimit(s string) (int, error) {
	if s == "" {
		return pageSize, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 500 {
		return 0, badInput("limit: 1 to 500")
	}
	return n, nil
}

func cursor(next int64) string {
	if next == 0 {
		return ""
	}
	return strconv.FormatInt(next, 10)
}

func (a *Admin) apiDelivery(w http.ResponseWriter, r *http.Request) error {
	d, err := a.deliveryOf(r)
	if err != nil {
		return err
	}
	attempts, err := a.opt.Archive.Attempts(r.Context(), d.ID)
	if err != nil {
		return err
	}
	m := maskOf(a.sourceOf(&d))
	out := OneDelivery{Delivery: apiDeliveryOf(&d), Quarantine: orNull(d.Quarantine), DuplicateOf: orNull(d.DuplicateOf), CopyOf: orNull(d.CopyOf),
		PayloadGone: d.PayloadGone, Orders: []OrderPlace{}, Headers: map[string][]string{}, Attempts: []Attempt{}, Effects: []struct{}{}}
	p, err := a.opt.Archive.Payload(r.Context(), d.ID)
	switch {
	case errors.Is(err, store.ErrPayloadGone), errors.Is(err, store.ErrNotFound):
		out.PayloadGone = true
	case err != nil:
		return err
	default:
		h, err := store.DecodeHeader(p.Header)
		if err != nil {
			return err
		}
		out.Headers = m.headersOf(h)
	}
	for i := range d.Jobs {
		line, ok, err := a.lineOf(r.Context(), &d.Jobs[i])
		if err != nil {
			return err
		}
		if ok {
			out.Orders = append(out.Orders, OrderPlace{Job: d.Jobs[i].ID, Ahead: line.Ahead, Head: line.Head.Delivery, Since: stamp(line.Head.Since),
				State: stateWords[line.Head.State], Behind: line.Head.Behind})
		}
	}
	body := grantOf(r).May(access.Body)
	for i := range attempts {
		at, err := apiAttemptOf(&attempts[i], body)
		if err != nil {
			return err
		}
		out.Attempts = append(out.Attempts, at)
	}
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

func apiAttemptOf(at *store.Attempt, body bool) (Attempt, error) {
	h, err := store.DecodeHeader(at.Header)
	if err != nil {
		return Attempt{}, err
	}
	out := Attempt{ID: at.ID, Job: at.Job, Attempt: at.N, StartedAt: stamp(at.StartedAt), Outcome: outcomeWords[at.Outcome], Resend: at.Resend,
		Status: orNull(at.Status), Class: orNull(at.Class), Error: orNull(at.Error), Maybe: at.Maybe, DurationUS: at.Duration.Microseconds(),
		ConnectUS: at.Connect.Microseconds(), TLSUS: at.TLS.Microseconds(), FirstByteUS: at.FirstByte.Microseconds(), Headers: mask{}.headersOf(h)}
	if body {
		out.BodyBase64 = append([]byte{}, at.Body...)
	}
	return out, nil
}

func (a *Admin) apiBody(w http.ResponseWriter, r *http.Request) error {
	id, ok := readID(r.PathValue("id"))
	if !ok {
		return store.ErrNotFound
	}
	p, err := a.opt.Archive.Payload(r.Context(), id)
	if err != nil {
		return err
	}
	sendBody(w, id, p.Body)
	return nil
}

func (a *Admin) apiResend(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Destination string `json:"destination"`
		AsNew       bool   `json:"as_new"`
		Signature   string `json:"signature"`
		Reason      string `json:"reason"`
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	switch {
	case in.Signature != "" && in.Signature != "fresh" && in.Signature != "passthrough":
		return badInput("signature: fresh or passthrough")
	case in.AsNew && strings.TrimSpace(in.Reason) == "":
		return badInput("reason: as_new needs one")
	}
	d, err := a.deliveryOf(r)
	if err != nil {
		return err
	}
	done, err := a.doResend(r.Context(), &d, store.Resend{Destination: in.Destination, AsNew: in.AsNew,
		Passthrough: in.Signature == "passthrough", Reason: in.Reason, By: actor(r, grantOf(r))})
	if err != nil {
		return err
	}
	after, err := a.opt.Archive.Delivery(r.Context(), done.Delivery)
	if err != nil {
		return err
	}
	chosen := map[int64]bool{}
	for _, id := range done.Jobs {
		chosen[id] = true
	}
	out := struct {
		Delivery      int64 `json:"delivery"`
		Jobs          []Job `json:"jobs"`
		AlreadyQueued bool  `json:"already_queued"`
	}{done.Delivery, []Job{}, done.AlreadyQueued}
	for i := range after.Jobs {
		if chosen[after.Jobs[i].ID] {
			out.Jobs = append(out.Jobs, apiJobOf(&after.Jobs[i]))
		}
	}
	problem.WriteJSON(w, http.StatusAccepted, out)
	return nil
}

func (a *Admin) apiCancel(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Destination string `json:"destination"`
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	id, ok := readID(r.PathValue("id"))
	if !ok {
		return store.ErrNotFound
	}
	n, err := a.opt.Operator.Cancel(r.Context(), id, in.Destination, actor(r, grantOf(r)), a.opt.Now().UTC())
	if err != nil {
		return err
	}
	a.Changed(id)
	problem.WriteJSON(w, http.StatusOK, struct {
		Cancelled int `json:"cancelled"`
	}{n})
	return nil
}

func (a *Admin) apiRelease(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Source string  `json:"source"`
		IDs    []int64 `json:"ids"`
		DryRun bool    `json:"dry_run"`
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	if a.opt.Release == nil {
		return errAbsent
	}
	released, dup, err := a.opt.Release(r.Context(), in.Source, in.IDs, in.DryRun, actor(r, grantOf(r)))
	if err != nil {
		return err
	}
	for _, id := range in.IDs {
		a.Changed(id)
	}
	problem.WriteJSON(w, http.StatusOK, struct {
		Released   int  `json:"released"`
		Duplicates int  `json:"duplicates"`
		DryRun     bool `json:"dry_run"`
	}{released, dup, in.DryRun})
	return nil
}
