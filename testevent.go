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
	"strconv"
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
		return says(nil, admin.SaysNoSource, r.Source)
	}
	begin := time.Now()
	req, rehearsal, err := src.sample(r.Type, begin)
	if err != nil {
		return err
	}
	step(emit, "signed", begin, src.signedBy(rehearsal != nil))
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
	deliveries, status, err := s.post(ctx, req)
	if err != nil {
		return err
	}
	step(emit, "accepted", begin, admin.Says{Key: admin.SaysAnswered, Args: []any{numbers(deliveries), strconv.Itoa(status)}})
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

func step(emit func(admin.TestStep), name string, begin time.Time, text admin.Says) {
	emit(admin.TestStep{Step: name, Says: text, Ms: time.Since(begin).Milliseconds(), OK: true})
}

// says is an error that a person is told; the cause, which may be nil, is for the log.
func says(cause error, key string, args ...any) error {
	return &admin.TestError{Says: admin.Says{Key: key, Args: args}, Cause: cause}
}

func (src *source) signedBy(rehearsal bool) admin.Says {
	n := len(src.cfg.Secrets.Values) + len(src.cfg.MoreSecrets)
	switch {
	case rehearsal:
		return admin.Says{Key: admin.SaysTestKey}
	case n == 0:
		return admin.Says{Key: admin.SaysUnsigned}
	}
	return admin.Says{Key: admin.SaysSecret, Args: []any{1, n}}
}

// sample is a signed test event of the source. Where only the provider could sign it,
// it is signed for a rehearsal, whose keys nobody has but this process.
func (src *source) sample(typ string, now time.Time) (req *provider.Request, rehearsal *provider.Checker, err error) {
	sample, err := src.provider.Sample(typ, src.provider.SampleID(uint64(now.UnixMicro())))
	if errors.Is(err, provider.ErrNoSample) {
		if types := src.provider.Types(); len(types) > 0 {
			return nil, nil, says(nil, admin.SaysNoSample, typ, strings.Join(types, ", "))
		}
		return nil, nil, says(nil, admin.SaysNoSamples, src.provider.Name)
	}
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
		return nil, nil, refusedSample(err)
	case len(res.Events) == 0 || res.Quarantine != "":
		return nil, nil, says(nil, admin.SaysNoEvent)
	}
	return req, rehearsal, nil
}

// refusedSample is the error of a test event that its own source would refuse.
func refusedSample(err error) error {
	var r *provider.Refusal
	if errors.As(err, &r) {
		return says(err, admin.SaysRefused, r.Reason)
	}
	return fmt.Errorf("judge the test event: %w", err)
}

// post sends the request to the public listener of this process.
func (s *server) post(ctx context.Context, r *provider.Request) (deliveries []int64, status int, err error) {
	url := "http://" + shownAddress(s.publicAddr.String()) + r.Target
	req, err := http.NewRequestWithContext(ctx, r.Method, url, bytes.NewReader(r.Body))
	if err != nil {
		return nil, 0, err
	}
	req.Header = r.Header
	res, err := s.client.Do(req)
	if err != nil {
		return nil, 0, says(err, admin.SaysNoAnswer)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return nil, 0, err
	}
	var answer struct {
		Delivery int64 `json:"delivery"`
	}
	if res.StatusCode/100 != 2 {
		return nil, 0, says(fmt.Errorf("%s: %s", res.Status, body), admin.SaysStatus, strconv.Itoa(res.StatusCode))
	}
	if json.Unmarshal(body, &answer) == nil && answer.Delivery > 0 {
		deliveries = []int64{answer.Delivery}
	} else { // several, or the provider wants an answer of its own: ask the archive
		deliveries, err = s.made(ctx, r)
	}
	return deliveries, res.StatusCode, err
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
		return nil, says(nil, admin.SaysLost)
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
			emit(admin.TestStep{Step: "queued", Says: admin.Says{Key: admin.SaysWaits}, OK: true})
			return nil
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return says(nil, admin.SaysGoesOn, numbers([]int64{delivery}), int(testWait/time.Second))
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
		emit(admin.TestStep{Step: "leased", Says: admin.Says{Key: admin.SaysLeased, Args: []any{kind}}, Ms: a.StartedAt.Sub(d.ReceivedAt).Milliseconds(), OK: true})
		ended := admin.Outcome{Status: a.Status, Class: a.Class}
		st := admin.TestStep{Ms: a.Duration.Milliseconds(), OK: a.Outcome == store.Succeeded}
		if st.OK {
			st.Step, st.Says = "delivered", admin.Says{Key: admin.SaysDelivered, Args: []any{name[a.Job], ended}}
		} else {
			st.Step, st.Says = "failed", admin.Says{Key: admin.SaysFailed, Args: []any{name[a.Job], a.N, ended}}
		}
		emit(st)
	}
	if done && len(d.Jobs) == 0 {
		emit(admin.TestStep{Step: "kept", Says: admin.Says{Key: admin.SaysNowhere}, OK: true})
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
