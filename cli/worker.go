package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"acuse/store"
)

const (
	// poll is how long a lease call waits for work.
	poll = 30 * time.Second
	// longestPause is the longest wait between tries while the server is away.
	longestPause = 10 * time.Second
)

// worker fetches jobs of a pull destination and has them handled.
type worker struct {
	app         *app
	client      *client
	handle      Handler
	destination string
	most        int
	lease       time.Duration
	server      string
	tokenFile   string

	out sync.Mutex // one line at a time
}

// leasedJob is one of the lease call's answer.
type leasedJob struct {
	Job            int64       `json:"job"`
	Lease          string      `json:"lease"`
	Attempt        int         `json:"attempt"`
	Delivery       int64       `json:"delivery"`
	Source         string      `json:"source"`
	EventID        string      `json:"event_id"`
	Type           string      `json:"type"`
	Resource       string      `json:"resource"`
	ReceivedAt     time.Time   `json:"received_at"`
	Method         string      `json:"method"`
	Resend         bool        `json:"resend"`
	Test           bool        `json:"test"`
	IdempotencyKey string      `json:"idempotency_key"`
	Headers        http.Header `json:"headers"`
	Body           []byte      `json:"body_base64"`
}

// run works until the command is asked to end, then lets what is under way finish; asked
// again it gives that up.
func (w *worker) run(cmd *cobra.Command) (err error) {
	if w.most < 1 || w.most > 100 {
		return w.app.misuse(cmd, w.app.w("pull.concurrency"))
	}
	if w.lease < time.Second || w.lease > time.Hour {
		return w.app.misuse(cmd, w.app.w("pull.lease"))
	}
	if w.client, err = w.app.remote(cmd, w.server, w.tokenFile); err != nil {
		return err
	}
	stop := cmd.Context()
	work, giveUp := context.WithCancelCause(context.WithoutCancel(stop))
	defer giveUp(nil)
	defer context.AfterFunc(stop, func() {
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(again)
		select {
		case <-again:
			giveUp(errors.New("interrupted"))
		case <-work.Done():
		}
	})()
	return w.loop(stop, work)
}

// loop leases for the free slots until stop ends. Before the first answer every failure
// ends it; later only one that another try cannot mend.
func (w *worker) loop(stop, work context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, w.most)
	reached, pause := false, time.Second
	for {
		select {
		case slots <- struct{}{}:
		case <-stop.Done():
			return nil
		}
		list, err := w.fetch(stop, 1+cap(slots)-len(slots))
		switch {
		case stop.Err() != nil && len(list) == 0:
			return nil
		case err != nil && (!reached || lasting(err)):
			return err
		case err != nil:
			<-slots
			w.app.remark("%s", w.app.w("tail.lost"))
			if !rest(stop, pause) {
				return nil
			}
			pause = min(2*pause, longestPause)
			continue
		case !reached:
			w.app.remark("%s", w.app.f("pull.waiting", clean(w.destination)))
		}
		reached, pause = true, time.Second
		<-slots
		for _, j := range list {
			slots <- struct{}{} // free: only this loop takes them
			wg.Go(func() {
				defer func() { <-slots }()
				w.one(work, j)
			})
		}
	}
}

// fetch leases up to most jobs, waiting for the first.
func (w *worker) fetch(ctx context.Context, most int) ([]*Work, error) {
	var got struct{ Jobs []leasedJob }
	err := w.client.call(ctx, http.MethodPost, "/api/v1/jobs/lease", map[string]any{
		"destination": w.destination, "max": most, "ttl_seconds": int(w.lease.Seconds()), "wait_seconds": int(poll.Seconds()),
	}, &got)
	out := make([]*Work, len(got.Jobs))
	for i, j := range got.Jobs {
		out[i] = &Work{Job: j.Job, Lease: j.Lease, Attempt: j.Attempt, Delivery: j.Delivery, Source: j.Source, EventID: j.EventID,
			Type: j.Type, Resource: j.Resource, ReceivedAt: j.ReceivedAt, Resend: j.Resend, Test: j.Test, IdempotencyKey: j.IdempotencyKey,
			Destination: w.destination, Method: j.Method, Headers: j.Headers, Body: j.Body}
	}
	return out, err
}

// one has a job handled, keeps its lease meanwhile, and says what became of it. When the
// lease is lost the work is ended and nothing said: the job is another worker's.
func (w *worker) one(work context.Context, j *Work) {
	ctx, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	started := time.Now()
	kept := make(chan struct{})
	keeping, stop := context.WithCancel(ctx)
	go func() {
		defer close(kept)
		w.keep(keeping, j, cancel)
	}()
	h := w.handle(ctx, j)
	stop()
	<-kept
	switch {
	case errors.Is(context.Cause(ctx), store.ErrLeaseLost):
		w.tell(j, "lost", Handled{}, started)
		return
	case work.Err() != nil && !h.Done:
		h.Error = "the worker was stopped"
	}
	w.settle(work, j, h, started)
}

// keep renews the lease at a third of its length until ctx ends.
func (w *worker) keep(ctx context.Context, j *Work, cancel context.CancelCauseFunc) {
	for wait := w.lease / 3; rest(ctx, wait); {
		err := w.renew(ctx, j)
		if lasting(err) {
			cancel(fmt.Errorf("%w: %s", store.ErrLeaseLost, err.Error()))
			return
		}
		if wait = w.lease / 3; err != nil {
			wait = min(wait, time.Second)
		}
	}
}

func (w *worker) renew(ctx context.Context, j *Work) error {
	ctx, cancel := context.WithTimeout(ctx, max(w.lease/3, time.Second)) // in time for another try
	defer cancel()
	return w.client.call(ctx, http.MethodPost, fmt.Sprintf("/api/v1/jobs/%d/renew", j.Job),
		map[string]any{"lease": j.Lease, "ttl_seconds": int(w.lease.Seconds())}, nil)
}

// settle acknowledges the job or gives it back, and tries until it was heard: a done job
// must not become a second run for a server that was starting again.
func (w *worker) settle(work context.Context, j *Work, h Handled, started time.Time) {
	ctx, end := work, context.CancelFunc(func() {})
	if work.Err() != nil {
		ctx, end = context.WithTimeout(context.WithoutCancel(work), 5*time.Second)
	}
	defer end()
	call, body, what := "ack", map[string]any{"lease": j.Lease}, "done"
	if !h.Done {
		call, what = "nack", "failed"
		body["error"], body["dead"] = h.Error, h.Dead
		if seconds := int(h.RetryAfter.Seconds()); seconds > 0 {
			body["retry_after_seconds"] = min(seconds, 24*3600)
		}
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, longestPause) {
		err := w.client.call(ctx, http.MethodPost, fmt.Sprintf("/api/v1/jobs/%d/%s", j.Job, call), body, nil)
		if lasting(err) {
			what = "lost"
		}
		if err == nil || lasting(err) {
			w.tell(j, what, h, started)
			return
		}
		if !rest(ctx, pause) {
			w.tell(j, "unheard", h, started)
			return
		}
	}
}

// lasting tells whether another try would be answered the same.
func lasting(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.status >= 400 && f.status < 500 && f.status != http.StatusRequestTimeout && f.status != http.StatusTooManyRequests
}

// tell prints one line on a job.
func (w *worker) tell(j *Work, what string, h Handled, started time.Time) {
	w.out.Lock()
	defer w.out.Unlock()
	took := time.Since(started)
	if w.app.json {
		b, err := json.Marshal(map[string]any{"job": j.Job, "delivery": j.Delivery, "event_id": j.EventID, "type": j.Type, "attempt": j.Attempt,
			"result": what, "error": h.Error, "duration_us": took.Microseconds()})
		if err == nil {
			w.app.note("%s", b)
		}
		return
	}
	line := fmt.Sprintf("#%d  %s  %s  %s", j.Delivery, clean(j.Type), clean(j.EventID), w.app.w("pull."+what))
	if h.Word != "" {
		line += "  " + clean(h.Word)
	}
	if h.Error != "" && what == "failed" {
		line += "  " + clean(h.Error)
	}
	line += "  " + w.app.lasted(took.Microseconds())
	if what != "done" {
		line = w.app.color.Red(line)
	}
	w.app.remark("%s", line)
}

// rest waits; false: ctx ended.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
