package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"acuse/store"
)

// Why a send was ended before its Sender was done.
var (
	errLost      = fmt.Errorf("queue: %w", store.ErrLeaseLost)
	errHardLimit = errors.New("queue: hard limit")
)

// settleGrace is how long outcomes may still be written once work has ended.
const settleGrace = 5 * time.Second

// one works on one leased job: send, keep the lease meanwhile, settle.
func (q *Queue) one(work context.Context, cfg *Lane, j store.Lease, l *lane) {
	q.opt.Changed(j.Delivery.ID)
	ctx, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	letGo := q.keep(work, cfg, j, cancel)
	defer letGo()
	began := q.opt.Now()
	res := q.attempt(ctx, cfg, j)
	lost := errors.Is(context.Cause(ctx), errLost)
	ending := !lost && work.Err() != nil && res.Outcome != store.Succeeded && res.Status == 0
	told := res
	if lost || ending {
		told = store.Result{} // says nothing of the app
	}
	now := q.opt.Now()
	late := l.judge(ended{job: j.Job, token: j.Token, result: told, began: began, now: now, concurrency: cfg.Concurrency, random: q.opt.Random()})
	l.sent()
	switch {
	case lost:
		q.lost(j)
		return
	case ending:
		// Shutting down: without a word from the app this was no attempt of its own.
		// The next start ends the lease and queues the job at once.
		q.opt.Log.Info("send given up", "destination", j.Destination, "delivery", j.Delivery.ID, "job", j.Job, "cause", context.Cause(work))
		return
	}
	s := cfg.Retry.plan(j, res, now, q.opt.Random())
	if late && s.State == store.Queued {
		s.Due = now
	}
	q.settled(j, s, q.settle(work, j, s))
}

// attempt hands j to the Sender, unless its workers died too often to try again.
func (q *Queue) attempt(ctx context.Context, cfg *Lane, j store.Lease) store.Result {
	if j.Spent > cfg.Retry.Budget() {
		return store.Result{Outcome: store.Failed, Class: "exhausted", Error: "no attempts left: earlier ones ended without an outcome"}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.HardLimit, errHardLimit)
	defer cancel()
	res := q.send(ctx, cfg.Sender, j)
	if res.Outcome != store.Succeeded {
		res.Outcome = store.Failed
		if res.Status == 0 && errors.Is(context.Cause(ctx), errHardLimit) {
			res.Class, res.Error = "hard_limit", fmt.Sprintf("not done after the hard limit of %s", cfg.HardLimit)
		}
	}
	if res.Duration == 0 {
		res.Duration = time.Since(start)
	}
	return res
}

// send calls the Sender and turns a panic into a failed attempt. The text of the
// panic may quote a payload, so only its type and the stack are logged.
func (q *Queue) send(ctx context.Context, s Sender, j store.Lease) (res store.Result) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		what := fmt.Sprintf("%T", p)
		if e, ok := p.(runtime.Error); ok {
			what = e.Error()
		}
		q.opt.Log.Error("sender panicked", "destination", j.Destination, "delivery", j.Delivery.ID, "job", j.Job, "panic", what, "stack", string(debug.Stack()))
		res = store.Result{Outcome: store.Failed, Class: "panic", Error: "acuse failed while sending; the log says where"}
	}()
	return s.Send(ctx, j)
}

// keep renews j's lease at a third of its length until the returned function is
// called. When the lease is lost it ends the send.
func (q *Queue) keep(work context.Context, cfg *Lane, j store.Lease, cancel context.CancelCauseFunc) (end func()) {
	every := cfg.Lease / 3
	ctx, stop := context.WithCancel(work)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := every; sleep(ctx, wait, nil); {
			err := q.opt.Jobs.Renew(ctx, j.Job, j.Token, q.opt.Now().Add(cfg.Lease))
			switch {
			case err == nil:
				wait = every
			case ctx.Err() != nil, errors.Is(err, store.ErrClosed):
				return
			case errors.Is(err, store.ErrLeaseLost):
				cancel(errLost)
				return
			default:
				q.shaken.Store(true)
				wait = min(every, time.Second)
			}
		}
	}()
	return func() { stop(); <-done }
}

// settle writes s. While the storage fails it tries again and keeps the outcome, so
// that a full disk does not make a delivered job a second delivery; only a lost
// lease, the end of the process or a refusal ends that.
func (q *Queue) settle(work context.Context, j store.Lease, s store.Settlement) error {
	ctx, end := outlive(work, settleGrace)
	defer end()
	var sick backoff
	for {
		err := q.opt.Jobs.Settle(ctx, s)
		switch {
		case errors.Is(err, store.ErrRefused) && s.Result.Body != nil:
			s.Result.Header, s.Result.Body = nil, nil // the outcome matters more than the answer's text
			continue
		case !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrBusy):
			return err
		}
		if sick.tries == 0 {
			q.opt.Log.Error("settle: kept until the storage works", "destination", j.Destination, "delivery", j.Delivery.ID, "job", j.Job, "err", err)
		}
		if !sleep(ctx, sick.next(100*time.Millisecond, 2*time.Second), nil) {
			return err
		}
	}
}

// settled counts and tells what became of a job.
func (q *Queue) settled(j store.Lease, s store.Settlement, err error) {
	log := q.opt.Log.With("destination", j.Destination, "delivery", j.Delivery.ID, "job", j.Job, "attempt", j.Attempt)
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		q.lost(j)
		return
	case err != nil:
		log.Error("settle: outcome not written, the job will be tried again", "status", s.Result.Status, "err", err)
		return
	}
	q.opt.Changed(j.Delivery.ID)
	q.met.attempt(j.Destination, s.State)
	r := s.Result
	switch s.State {
	case store.Delivered:
		if !j.Resend {
			q.met.delivered(s.At.Sub(j.Delivery.ReceivedAt))
		}
		log.Debug("delivered", "status", r.Status, "took", r.Duration)
	case store.Queued:
		log.Info("attempt failed", "status", r.Status, "class", r.Class, "took", r.Duration, "due", s.Due)
		q.Wake([]string{j.Destination}) // its timer may be set for later than Due
	case store.Dead:
		log.Warn("dead letter", "status", r.Status, "class", r.Class, "took", r.Duration)
		q.opt.Died()
	}
	if j.Order != "" { // the next of its order may be due
		q.Wake([]string{j.Destination})
	}
}

// turned tells that the breaker of a lane opened or closed.
func (q *Queue) turned(destination string, p *pace) {
	if p.down() {
		q.opt.Log.Warn("destination is down: one probe at a time from now on", "destination", destination, "since", p.DownSince, "status", p.Status, "class", p.Class)
	} else {
		q.opt.Log.Info("destination answers again", "destination", destination)
	}
	q.opt.Turned(destination)
}

// lost says that another worker has the job by now; nothing is written for it.
func (q *Queue) lost(j store.Lease) {
	q.met.lost(j.Destination)
	q.opt.Log.Warn("lease lost", "destination", j.Destination, "delivery", j.Delivery.ID, "job", j.Job, "attempt", j.Attempt)
}

// outlive is ctx, but ends only d after ctx did.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if sleep(out, d, nil) {
			cancel()
		}
	})
	return out, func() { stop(); cancel() }
}
