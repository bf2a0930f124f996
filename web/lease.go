package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"acuse/store"
)

// maxCall is the largest body of a call.
const maxCall = 64 << 10

// leaseCall is the body of a lease.
type leaseCall struct {
	Destination string `json:"destination"`
	Max         *int   `json:"max"`
	TTL         *int   `json:"ttl_seconds"`
	Wait        *int   `json:"wait_seconds"`
}

// leased is one job in a worker's hands.
type leased struct {
	Job      int64           `json:"job"`
	Lease    string          `json:"lease"`
	Until    string          `json:"lease_until"`
	Attempt  int             `json:"attempt"`
	Delivery int64           `json:"delivery"`
	Source   string          `json:"source"`
	EventID  string          `json:"event_id"`
	Type     string          `json:"type"`
	Key      string          `json:"idempotency_key"`
	Resource string          `json:"resource"`
	Received string          `json:"received_at"`
	Method   string          `json:"method"`
	Resend   bool            `json:"resend"`
	Test     bool            `json:"test"`
	Headers  json.RawMessage `json:"headers"`
	Body     []byte          `json:"body_base64"`
}

// lease gives out jobs, waiting for some when there are none. read is called once the
// call is read: from then on the connection may be silent.
func (p *Pull) lease(r *http.Request, read func()) (any, error) {
	var c leaseCall
	if err := decode(r, &c); err != nil {
		return nil, err
	}
	read()
	if c.Destination == "" {
		return nil, bad("destination is missing")
	}
	if p.o.Allow(r, "pull:"+c.Destination) != nil {
		return nil, errNotAllowed
	}
	d, ok := p.destination(c.Destination)
	if !ok {
		return nil, &callError{http.StatusNotFound, "no-such-destination", "no pull destination has this name"}
	}
	most, err := number(c.Max, "max", 1, 1, maxJobs)
	if err != nil {
		return nil, err
	}
	ttl, err := number(c.TTL, "ttl_seconds", 0, 1, maxTTL)
	if err != nil {
		return nil, err
	}
	wait, err := number(c.Wait, "wait_seconds", 0, 0, maxPoll)
	if err != nil {
		return nil, err
	}
	q := store.LeaseQuery{
		Destination: c.Destination, Owner: p.owner(r), Max: most, TTL: d.Lease, Budget: d.Budget, MaxAge: d.MaxAge,
	}
	if ttl > 0 {
		q.TTL = time.Duration(ttl) * time.Second
	}
	if d.HardLimit > 0 {
		q.TTL = min(q.TTL, d.HardLimit)
	}
	list, err := p.poll(r.Context(), &q, time.Duration(wait)*time.Second)
	if err != nil {
		return nil, err
	}
	return struct {
		Jobs []leased `json:"jobs"`
	}{p.give(r.Context(), list, q)}, nil
}

// owner marks leases of workers outside. It does not begin with this node's name, so
// that they live on when acuse starts again.
func (p *Pull) owner(r *http.Request) string { return "pull/" + p.o.Who(r) }

// poll leases, and waits for jobs as long as there are none and the time lasts. q.Now
// is the start of the leases then.
func (p *Pull) poll(ctx context.Context, q *store.LeaseQuery, wait time.Duration) ([]store.Lease, error) {
	p.polls.waiting.Add(1)
	defer p.polls.waiting.Add(-1)
	end := time.Now().Add(wait)
	for {
		woken := p.polls.next(q.Destination) // before looking, so that no wake is missed
		q.Now = p.o.Now().UTC()
		list, err := p.o.Jobs.Lease(ctx, *q)
		left := time.Until(end)
		if err != nil || len(list) > 0 || left <= 0 {
			return list, err
		}
		due, ok, err := p.o.Jobs.NextDue(ctx, q.Destination)
		if err != nil {
			return nil, err
		}
		if ok {
			if in := due.Sub(p.o.Now()); in > 0 {
				left = min(left, in)
			} else {
				left = min(left, time.Second) // due, and yet not given: somebody else was faster
			}
		}
		timer := time.NewTimer(left)
		select {
		case <-woken:
		case <-timer.C:
		case <-p.stop:
			timer.Stop()
			return nil, nil
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// give writes leases down for the worker. A job whose item cannot be cut out of its
// batch is put back as a failed attempt.
func (p *Pull) give(ctx context.Context, list []store.Lease, q store.LeaseQuery) []leased {
	out := make([]leased, 0, len(list))
	for _, l := range list {
		p.o.Changed(l.Delivery.ID)
		body, headers, err := p.payload(l)
		if err != nil {
			p.o.Log.Error("pull: payload", "job", l.Job, "delivery", l.Delivery.ID, "err", err.Error())
			p.putBack(ctx, l, q)
			continue
		}
		out = append(out, leased{
			Job: l.Job, Lease: leaseText(l.Token, q.Now), Until: stamp(l.Until), Attempt: l.Attempt, Delivery: l.Delivery.ID,
			Source: l.Delivery.Source, EventID: l.Delivery.EventID, Type: l.Delivery.Type, Key: l.Key,
			Resource: l.Delivery.Resource, Received: stamp(l.Delivery.ReceivedAt), Method: l.Payload.Method, Resend: l.Resend, Test: l.Delivery.Test,
			Headers: headers, Body: body,
		})
	}
	return out
}

// payload is what the worker gets to see of a request.
func (p *Pull) payload(l store.Lease) (body []byte, headers json.RawMessage, err error) {
	body = l.Payload.Body
	if l.Payload.Part >= 0 {
		if body, err = p.o.Item(l.Delivery.Source, body, l.Payload.Part); err != nil {
			return nil, nil, err
		}
	}
	if body == nil {
		body = []byte{} // "" and not null
	}
	h, err := store.DecodeHeader(l.Payload.Header)
	if err != nil {
		return nil, nil, err
	}
	return body, store.EncodeHeader(passOn(h)), nil
}

// putBack settles a lease that could not be handed over.
func (p *Pull) putBack(ctx context.Context, l store.Lease, q store.LeaseQuery) {
	d, _ := p.destination(q.Destination)
	s := p.failed(d, l.Spent, q.Now)
	s.Job, s.Token = l.Job, l.Token
	s.Result.Class, s.Result.Error = "payload", "the request could not be prepared for the worker"
	if err := p.o.Jobs.Settle(ctx, s); err != nil && !errors.Is(err, store.ErrLeaseLost) {
		p.o.Log.Error("pull: put back", "job", l.Job, "err", err.Error())
	}
}

// hop are headers that concern one connection, or that say things about the way here
// which nobody vouches for (design section 9).
var hop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true, "Proxy-Connection": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Cookie": true, "Forwarded": true,
}

// passOn is what a worker gets of the headers, under the same rules as an app.
func passOn(h http.Header) http.Header {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	out := make(http.Header, len(h))
	for k, vs := range h {
		switch {
		case hop[k], strings.HasPrefix(k, "X-Forwarded-"), strings.HasPrefix(k, "Acuse-"):
		case k == "Idempotency-Key":
			out["Acuse-Original-Idempotency-Key"] = vs
		default:
			out[k] = vs
		}
	}
	return out
}

// leaseText is a lease as a worker holds it: opaque to it, to us the fencing token and
// the start of the lease.
func leaseText(token int64, start time.Time) string {
	return strconv.FormatInt(token, 36) + "." + strconv.FormatInt(start.UnixMilli(), 36)
}

func parseLease(s string) (token int64, start time.Time, err error) {
	a, b, _ := strings.Cut(s, ".")
	token, err = strconv.ParseInt(a, 36, 64)
	ms, err2 := strconv.ParseInt(b, 36, 64)
	if err != nil || err2 != nil {
		return 0, time.Time{}, errLost
	}
	return token, time.UnixMilli(ms), nil
}

// polls lets those who wait for jobs of a destination be woken, all at once.
type polls struct {
	waiting atomic.Int32

	mu   sync.Mutex
	list map[string]chan struct{}
}

// next is closed by the next wake.
func (p *polls) next(destination string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list == nil {
		p.list = map[string]chan struct{}{}
	}
	c := p.list[destination]
	if c == nil {
		c = make(chan struct{})
		p.list[destination] = c
	}
	return c
}

func (p *polls) wake(destination string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.list[destination]; c != nil {
		close(c)
		delete(p.list, destination)
	}
}

// decode reads the one JSON object of a call; unknown fields are mistakes.
func decode(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more == io.EOF {
			return nil
		} else if err = more; err == nil {
			return bad("one JSON object is expected")
		}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &callError{http.StatusRequestEntityTooLarge, "too-large", "a call has at most 64 KiB"}
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return bad(wrong.Field + " has the wrong type")
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return bad("unknown field " + printable(strings.TrimPrefix(err.Error(), "json: unknown field ")))
	}
	return bad("the body is no JSON object of this call")
}

func bad(detail string) error { return &callError{http.StatusBadRequest, "bad-request", detail} }

// number reads an optional field.
func number(v *int, name string, or, least, most int) (int, error) {
	if v == nil {
		return or, nil
	}
	if *v < least || *v > most {
		return 0, bad(name + " must lie between " + strconv.Itoa(least) + " and " + strconv.Itoa(most))
	}
	return *v, nil
}

// stamp writes an instant as all of acuse's JSON does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
