package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"acuse/admin"
	"acuse/provider"
	"acuse/store"
	"acuse/web"
)

// echo is the built-in destination of test events: it takes everything and keeps
// nothing. No configured destination can have this name.
const echo = "acuse:echo"

type echoSender struct{}

func (echoSender) Send(context.Context, store.Lease) store.Result {
	return store.Result{Outcome: store.Succeeded, Status: http.StatusOK}
}

// testWait is how long a test event is followed.
const testWait = 60 * time.Second

// test sends a signed sample through the public listener, like the provider would,
// and tells each step until the event is delivered or dead.
func (s *server) test(ctx context.Context, r admin.TestRequest, emit func(admin.TestStep)) error {
	ctx, cancel := context.WithTimeout(ctx, testWait)
	defer cancel()
	src := s.live.Load().sources[r.Source]
	if src == nil {
		return fmt.Errorf("no source %q", r.Source)
	}
	begin := time.Now()
	req, rehearsal, err := src.sample(r.Type, begin)
	if err != nil {
		return err
	}
	step(emit, "signed", begin, signedText(src, rehearsal != nil))
	to := []string{echo}
	if r.Deliver {
		to = src.cfg.DeliverTo
	}
	announce := web.Announcement{Source: src.name, Body: req.Body, Destinations: to}
	if rehearsal != nil {
		announce.Checker = rehearsal
	}
	s.edge.Announce(announce)
	begin = time.Now()
	deliveries, text, err := s.post(ctx, req)
	if err != nil {
		return err
	}
	step(emit, "accepted", begin, numbers(deliveries)+", "+text)
	for _, d := range deliveries {
		if err := s.follow(ctx, d, r.Deliver, emit); err != nil {
			return err
		}
	}
	return nil
}

// numbers writes deliveries as people see them: "#7, #8".
func numbers(deliveries []int64) string {
	out := make([]string, len(deliveries))
	for i, d := range deliveries {
		out[i] = fmt.Sprintf("#%d", d)
	}
	return strings.Join(out, ", ")
}

func step(emit func(admin.TestStep), name string, begin time.Time, text string) {
	emit(admin.TestStep{Step: name, Text: text, Ms: time.Since(begin).Milliseconds(), OK: name != "failed"})
}

func signedText(src *source, rehearsal bool) string {
	if rehearsal {
		return "with a test key of this process, in place of the provider's own"
	}
	n := len(src.cfg.Secrets.Values) + len(src.cfg.MoreSecrets)
	if n == 0 {
		return "nothing: the source takes unsigned events"
	}
	return fmt.Sprintf("with secret 1 of %d", n)
}

// sample is a signed test event of the source. Where only the provider could sign it,
// it is signed for a rehearsal, whose keys nobody has but this process.
func (src *source) sample(typ string, now time.Time) (req *provider.Request, rehearsal *provider.Checker, err error) {
	sample, err := src.provider.Sample(typ, src.provider.SampleID(uint64(now.UnixMicro())))
	if err != nil {
		return nil, nil, err
	}
	req = &provider.Request{
		Method: sample.Method, Target: "/in/" + src.name, URL: src.publicURL, Header: sample.Header, Body: sample.Body,
	}
	if sample.Query != "" {
		req.Target += "?" + sample.Query
		if req.URL != "" {
			req.URL += "?" + sample.Query
		}
	}
	checker := src.checker
	if !checker.CanSign() && !src.cfg.Unsigned {
		if rehearsal, err = src.rehearsal(); err != nil {
			return nil, nil, fmt.Errorf("make a test key: %w", err)
		}
		checker = rehearsal
	}
	if checker.CanSign() {
		if err := checker.Sign(req, 1, now); err != nil {
			return nil, nil, fmt.Errorf("sign the test event: %w", err)
		}
	}
	res, err := checker.Receive(req, now)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("the test event would be refused: %w", err)
	case len(res.Events) == 0 || res.Quarantine != "":
		return nil, nil, errors.New("this source cannot tell which event a sample is")
	}
	return req, rehearsal, nil
}

// post sends the request to the public listener of this process.
func (s *server) post(ctx context.Context, r *provider.Request) (deliveries []int64, text string, err error) {
	url := "http://" + shownAddress(s.publicAddr.String()) + r.Target
	req, err := http.NewRequestWithContext(ctx, r.Method, url, bytes.NewReader(r.Body))
	if err != nil {
		return nil, "", err
	}
	req.Header = r.Header
	res, err := s.client.Do(req)
	if err != nil {
		return nil, "", fmt.Errorf("the public listener does not answer: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return nil, "", err
	}
	var answer struct {
		Delivery int64 `json:"delivery"`
	}
	if res.StatusCode/100 != 2 {
		return nil, "", fmt.Errorf("answered %s: %s", res.Status, body)
	}
	if json.Unmarshal(body, &answer) == nil && answer.Delivery > 0 {
		deliveries = []int64{answer.Delivery}
	} else { // several, or the provider wants an answer of its own: ask the archive
		deliveries, err = s.made(ctx, r)
	}
	return deliveries, fmt.Sprintf("answered %d", res.StatusCode), err
}

// made finds the deliveries of a request, oldest first.
func (s *server) made(ctx context.Context, r *provider.Request) (deliveries []int64, err error) {
	source, _, _ := strings.Cut(strings.TrimPrefix(r.Target, "/in/"), "?")
	list, _, err := s.store.Deliveries(ctx, store.DeliveryFilter{Source: source, Limit: 20})
	if err != nil {
		return nil, err
	}
	for _, d := range slices.Backward(list) {
		p, err := s.store.Payload(ctx, d.ID)
		if err == nil && bytes.Equal(p.Body, r.Body) {
			deliveries = append(deliveries, d.ID)
		}
	}
	if len(deliveries) == 0 {
		return nil, errors.New("the event is not in the archive")
	}
	return deliveries, nil
}

// follow tells what becomes of the delivery's jobs.
func (s *server) follow(ctx context.Context, delivery int64, real bool, emit func(admin.TestStep)) error {
	changes, stop := s.watchers.watch(delivery)
	defer stop()
	told := map[int64]int{} // attempts told, by job
	for {
		d, err := s.store.Delivery(ctx, delivery)
		if err != nil {
			return err
		}
		attempts, err := s.store.Attempts(ctx, delivery)
		if err != nil {
			return err
		}
		if s.tell(d, attempts, told, emit) {
			return nil
		}
		if real && s.waitsForWorkers(d) {
			emit(admin.TestStep{Step: "queued", Text: "waits for a worker to lease it", OK: true})
			return nil
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return fmt.Errorf("delivery #%d is not done after %v; it goes on by itself", delivery, testWait)
		}
	}
}

// tell emits the attempts that ended and were not told yet; done is true once every
// job is settled.
func (s *server) tell(d store.Delivery, attempts []store.Attempt, told map[int64]int, emit func(admin.TestStep)) (done bool) {
	name := map[int64]string{}
	done = true
	for _, j := range d.Jobs {
		name[j.ID] = strings.TrimPrefix(j.Destination, "acuse:")
		done = done && j.State != store.Queued && j.State != store.Leased
	}
	for _, a := range attempts {
		if a.Outcome == store.Running || a.N <= told[a.Job] {
			continue
		}
		told[a.Job] = a.N
		kind := a.Owner[strings.LastIndexByte(a.Owner, '/')+1:]
		emit(admin.TestStep{Step: "leased", Text: "by " + kind, Ms: a.StartedAt.Sub(d.ReceivedAt).Milliseconds(), OK: true})
		st := admin.TestStep{Ms: a.Duration.Milliseconds(), OK: a.Outcome == store.Succeeded}
		if st.OK {
			st.Step, st.Text = "delivered", fmt.Sprintf("to %s, %d", name[a.Job], a.Status)
		} else {
			st.Step, st.Text = "failed", fmt.Sprintf("to %s, attempt %d: %s", name[a.Job], a.N, a.Error)
		}
		emit(st)
	}
	if done && len(d.Jobs) == 0 {
		emit(admin.TestStep{Step: "kept", Text: "the source delivers nowhere", OK: true})
	}
	return done
}

// waitsForWorkers is true when all that is left waits for a pull destination.
func (s *server) waitsForWorkers(d store.Delivery) bool {
	cfg := s.live.Load().cfg
	for _, j := range d.Jobs {
		dest := cfg.Destinations[j.Destination]
		if (j.State == store.Queued || j.State == store.Leased) && (dest == nil || dest.Pull == nil) {
			return false
		}
	}
	return true
}

// watchers are told when a delivery changes.
type watchers struct {
	mu sync.Mutex
	by map[int64][]chan struct{}
}

func (w *watchers) watch(delivery int64) (changes <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[int64][]chan struct{}{}
	}
	w.by[delivery] = append(w.by[delivery], c)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.by[delivery] = slices.DeleteFunc(w.by[delivery], func(o chan struct{}) bool { return o == c })
		if len(w.by[delivery]) == 0 {
			delete(w.by, delivery)
		}
	}
}

func (w *watchers) changed(delivery int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.by[delivery] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
