package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/problem"
	"acuse/store"
)

// ackBounds are the buckets of the acknowledgement time, in seconds: from the end of
// the headers to the answer.
var ackBounds = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}

// MonitorOptions configure what a monitor asks for. All but Now are required.
type MonitorOptions struct {
	Health   func() store.Health
	Totals   func(ctx context.Context) (store.Totals, error)
	Stopping func() bool // true once the process shuts down
	Metrics  *metrics.Set
	Now      func() time.Time // default time.Now
}

// Ready answers GET /readyz: 200 while new events can be stored, else 503.
func Ready(o MonitorOptions) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !reads(w, r) {
			return
		}
		h := o.Health()
		switch {
		case o.Stopping():
			problem.Write(w, http.StatusServiceUnavailable, "stopping", "acuse is shutting down")
		case !h.Writable:
			problem.Write(w, http.StatusServiceUnavailable, "storage", "storage takes no new events")
		default:
			problem.WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
		}
	})
}

// Metrics answers GET /metrics in the text format of Prometheus: what the rooms count,
// what the store holds, and the process.
func Metrics(o MonitorOptions) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !reads(w, r) {
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		o.Metrics.WritePrometheus(w)
		writeHealth(w, o.Health())
		if t, err := o.Totals(r.Context()); err == nil {
			writeTotals(w, t, o.Now())
		} else {
			gauge(w, "acuse_totals_failed", 1)
		}
		metrics.WriteProcessMetrics(w)
	})
}

func reads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	problem.Write(w, http.StatusMethodNotAllowed, "method-not-allowed", "")
	return false
}

func writeHealth(w io.Writer, h store.Health) {
	gauge(w, "acuse_store_writable", number01(h.Writable))
	gauge(w, "acuse_store_bytes", float64(h.Bytes))
	gauge(w, "acuse_store_free_bytes", float64(h.Free))
	gauge(w, "acuse_store_journal_bytes", float64(h.Journal))
	gauge(w, "acuse_store_longest_transaction_seconds", h.Longest.Seconds())
	gauge(w, "acuse_store_writes_waiting", float64(h.Queued))
	gauge(w, "acuse_store_commits_total", float64(h.Commits))
	gauge(w, "acuse_store_writes_total", float64(h.Writes)) // by commits: the mean batch
}

func writeTotals(w io.Writer, t store.Totals, now time.Time) {
	gauge(w, "acuse_deliveries", float64(t.Deliveries))
	gauge(w, "acuse_quarantined", float64(t.Quarantined))
	names := make([]string, 0, len(t.ByDestination))
	for name := range t.ByDestination {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		lane := t.ByDestination[name]
		label := fmt.Sprintf("{destination=%q}", name)
		gauge(w, "acuse_jobs_queued"+label, float64(lane.Queued))
		gauge(w, "acuse_jobs_leased"+label, float64(lane.Leased))
		gauge(w, "acuse_jobs_dead"+label, float64(lane.Dead))
		age := 0.0
		if !lane.OldestDue.IsZero() {
			age = max(0, now.Sub(lane.OldestDue).Seconds())
		}
		gauge(w, "acuse_oldest_due_seconds"+label, age)
	}
}

func gauge(w io.Writer, name string, v float64) { fmt.Fprintf(w, "%s %g\n", name, v) }

func number01(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
