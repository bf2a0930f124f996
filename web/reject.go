package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/provider"
	"acuse/store"
)

// maxHeld is how many bytes of bodies may wait to be diagnosed and written, besides those
// that are small enough to be kept.
const maxHeld = 8 << 20

// keptBody is the largest body of a rejection that is kept. A part of one would be of
// no use: it cannot be checked again.
const keptBody = 64 << 10

// rejection is a refused request before it is written.
type rejection struct {
	store.Rejection
	source  *source
	request provider.Request // with the whole body, if the doctor is to see it
	refusal *provider.Refusal
}

func rejectionOf(r *http.Request, v *visit, a answer, why string, refusal *provider.Refusal) rejection {
	out := rejection{
		Rejection: store.Rejection{
			Source: v.source.Name, Reason: why, Remote: v.remote.String(),
			FirstAt: v.now, At: v.now, Count: 1, Status: a.status,
			Method: r.Method, Target: rawTarget(r), Size: int(max(r.ContentLength, 0)),
		},
		source: v.source, request: v.request, refusal: refusal,
	}
	if v.request.Header == nil { // refused before the body was read
		out.request = provider.Request{Method: r.Method, Target: out.Target, URL: v.source.url(v.rest, out.Target), Host: r.Host, Header: r.Header, Remote: v.remote}
	}
	out.request.Context = nil
	if refusal != nil {
		out.Signed = refusal.Signed
		out.Detail = detailOf(refusal)
	}
	if v.request.Body != nil {
		out.Size = len(v.request.Body)
		if len(v.request.Body) <= keptBody {
			out.Body = v.request.Body
		}
	}
	return out
}

// detailOf is what is written of a refusal that nobody diagnosed.
func detailOf(r *provider.Refusal) string {
	if r.Skew != 0 {
		return provider.FormatDetail("at", r.Detail, "skew", strconv.FormatInt(int64(r.Skew.Seconds()), 10)+"s")
	}
	return provider.FormatDetail("at", r.Detail)
}

// rejects writes refused requests, apart from the path of an answer and losing what
// is too much: nothing waits for it.
type rejects struct {
	store   store.Rejections
	key     []byte
	log     *slog.Logger
	lost    *metrics.Counter
	trouble quiet
	queue   chan rejection
	held    atomic.Int64 // bytes of bodies that wait in the queue
	doctor  doctor
	stop    chan struct{}
	done    chan struct{}
}

func newRejects(s store.Rejections, key []byte, log *slog.Logger, set *metrics.Set) *rejects {
	r := &rejects{
		store: s, key: key, log: log, trouble: quiet{every: time.Minute}, lost: set.GetOrCreateCounter("acuse_rejections_not_kept_total"),
		doctor: newDoctor(), queue: make(chan rejection, 64), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go r.run()
	return r
}

// put hands a rejection over; it never blocks.
func (r *rejects) put(x rejection) {
	if r.store == nil {
		return
	}
	if n := int64(len(x.request.Body)); r.held.Add(n) > maxHeld && x.Body == nil {
		r.held.Add(-n)
		x.request.Body = nil // too large to be kept, and too much waits for it to be looked at
	}
	select {
	case r.queue <- x:
	default:
		r.held.Add(-int64(len(x.request.Body)))
		r.lost.Inc()
	}
}

// close writes what waits and stops; what comes later is lost.
func (r *rejects) close() {
	close(r.stop)
	<-r.done
}

func (r *rejects) run() {
	defer close(r.done)
	for {
		select {
		case x := <-r.queue:
			r.write(x)
		case <-r.stop:
			for {
				select {
				case x := <-r.queue:
					r.write(x)
				default:
					return
				}
			}
		}
	}
}

// examine asks the doctor. A bug of the doctor's costs a cause, not the process.
func (r *rejects) examine(x *rejection) (detail string, undiagnosed bool) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("diagnose: panic", "source", x.Source, "reason", x.Reason, "panic", fmt.Sprintf("%T", p))
			detail, undiagnosed = x.Detail, true
		}
	}()
	return r.doctor.examine(x)
}

func (r *rejects) write(x rejection) {
	row := x.Rejection
	row.Detail, row.Undiagnosed = r.examine(&x)
	r.held.Add(-int64(len(x.request.Body)))
	row.Header = store.EncodeHeader(r.maskHeader(x.request.Header, hiddenHeaders(x.source.Checker)))
	row.Target = r.maskTarget(row.Target, x.source.Checker.TokenQuery())
	if err := r.store.Reject(context.Background(), row); err != nil {
		r.lost.Inc()
		if passed, ok := r.trouble.speak("", row.At); ok {
			r.log.Warn("keep rejection", "source", row.Source, "err", err.Error(), "suppressed", passed)
		}
	}
}
