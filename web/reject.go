package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/provider"
	"acuse/store"
)

// keptBody is the largest body of a rejection that is kept. A part of one would be of
// no use: it cannot be checked again.
const keptBody = 64 << 10

// always are headers that hold credentials whatever the provider.
var always = []string{"Authorization", "Proxy-Authorization", "Cookie"}

// rejection is a refused request before it is written.
type rejection struct {
	store.Rejection
	header  http.Header
	headers []string // names of headers that are kept as digests
	query   []string // likewise, of query parameters
}

func rejectionOf(r *http.Request, v *visit, a answer, why string, refusal *provider.Refusal) rejection {
	out := rejection{
		Rejection: store.Rejection{
			Source: v.source.Name, Reason: why, Remote: v.remote.String(),
			FirstAt: v.now, At: v.now, Count: 1, Status: a.status,
			Method: r.Method, Target: rawTarget(r), Size: int(max(r.ContentLength, 0)),
		},
		header:  r.Header,
		headers: v.source.Checker.TokenHeaders(),
		query:   v.source.Checker.TokenQuery(),
	}
	if refusal != nil {
		out.Signed, out.Detail = refusal.Signed, refusal.Detail
		if refusal.Skew != 0 {
			out.Detail = "skew=" + strconv.FormatInt(int64(refusal.Skew.Seconds()), 10) + "s"
		}
	}
	if v.request.Body != nil {
		out.Size = len(v.request.Body)
		if len(v.request.Body) <= keptBody {
			out.Body = v.request.Body
		}
	}
	return out
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
	stop    chan struct{}
	done    chan struct{}
}

func newRejects(s store.Rejections, key []byte, log *slog.Logger, set *metrics.Set) *rejects {
	r := &rejects{
		store: s, key: key, log: log, trouble: quiet{every: time.Minute}, lost: set.GetOrCreateCounter("acuse_rejections_not_kept_total"),
		queue: make(chan rejection, 64), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go r.run()
	return r
}

// put hands a rejection over; it never blocks.
func (r *rejects) put(x rejection) {
	if r.store == nil {
		return
	}
	select {
	case r.queue <- x:
	default:
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

func (r *rejects) write(x rejection) {
	row := x.Rejection
	row.Header = store.EncodeHeader(r.maskHeader(x.header, x.headers))
	row.Target = r.maskTarget(row.Target, x.query)
	if err := r.store.Reject(context.Background(), row); err != nil {
		r.lost.Inc()
		if passed, ok := r.trouble.speak("", row.At); ok {
			r.log.Warn("keep rejection", "source", row.Source, "err", err.Error(), "suppressed", passed)
		}
	}
}

// digest stands for a token: the same token has the same digest, and nobody gets from
// one to the other without the key.
func (r *rejects) digest(value string) string {
	m := hmac.New(sha256.New, r.key)
	m.Write([]byte(value))
	return "digest:" + hex.EncodeToString(m.Sum(nil)[:16])
}

// maskHeader is a copy in which the named headers are digests.
func (r *rejects) maskHeader(h http.Header, names []string) http.Header {
	out := make(http.Header, len(h))
	for k, vs := range h {
		hide := slices.ContainsFunc(always, func(n string) bool { return strings.EqualFold(n, k) }) ||
			slices.ContainsFunc(names, func(n string) bool { return matches(n, k) })
		if !hide {
			out[k] = vs
			continue
		}
		for _, v := range vs {
			out[k] = append(out[k], r.digest(v))
		}
	}
	return out
}

// matches compares header names; one of a provider's file may end in a star.
func matches(pattern, name string) bool {
	if stem, ok := strings.CutSuffix(pattern, "*"); ok {
		return len(name) >= len(stem) && strings.EqualFold(name[:len(stem)], stem)
	}
	return strings.EqualFold(pattern, name)
}

// maskTarget replaces the values of the named query parameters by digests and leaves
// all else as it was written.
func (r *rejects) maskTarget(target string, names []string) string {
	path, query, ok := strings.Cut(target, "?")
	if !ok || len(names) == 0 {
		return target
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil {
			plain = name
		}
		if slices.Contains(names, plain) {
			parts[i] = name + "=" + r.digest(value)
		}
	}
	return path + "?" + strings.Join(parts, "&")
}
