package web

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/store"
)

func TestReadyz(t *testing.T) {
	t.Parallel()
	writable, stopping := true, false
	h := Ready(MonitorOptions{Health: func() store.Health { return store.Health{Writable: writable} }, Stopping: func() bool { return stopping }})
	get := func(method string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/readyz", nil))
		return w.Code
	}
	if got := get("GET"); got != 200 {
		t.Errorf("ready: %d", got)
	}
	if got := get("POST"); got != 405 {
		t.Errorf("POST: %d", got)
	}
	writable = false
	if got := get("GET"); got != 503 {
		t.Errorf("storage takes nothing: %d", got)
	}
	writable, stopping = true, true
	if got := get("GET"); got != 503 {
		t.Errorf("shutting down: %d", got)
	}
}

func TestMetricsSayWhatHappened(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	e := newEdge(t, EdgeOptions{Inbox: &inbox{}, Metrics: set}, signedSource("g"))
	newPull(newShelf(), func(o *PullOptions) { o.Metrics = set })
	postSigned(e, "/in/g", "1", "{}")
	postSigned(e, "/in/g", "1", "{}")
	post(e, "/in/g", "{}", "X-Sig", "forged")
	post(e, "/in/nowhere", "{}")
	now := time.Unix(1767225600, 0)
	var failing error
	h := Metrics(MonitorOptions{
		Metrics: set, Now: func() time.Time { return now },
		Health: func() store.Health {
			return store.Health{Writable: true, Bytes: 7, Free: 9, Queued: 1, Commits: 3, Writes: 12}
		},
		Totals: func(context.Context) (store.Totals, error) {
			return store.Totals{Quarantined: 2, Deliveries: 44, ByDestination: map[string]store.LaneTotals{
				"app": {Queued: 5, Leased: 1, Dead: 2, OldestDue: now.Add(-90 * time.Second)}, "agent": {},
			}}, failing
		},
	})
	scrape := func() string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Errorf("%v", w.Header())
		}
		return w.Body.String()
	}
	text := scrape()
	for _, want := range []string{
		`acuse_accepted_total{source="g"} 1`, `acuse_duplicates_total{source="g"} 1`, `acuse_quarantined_total{source="g"} 0`,
		`acuse_rejections_total{reason="signature_mismatch"} 1`, `acuse_rejections_total{reason="unknown_source"} 1`,
		`acuse_ack_seconds_count 2`, `acuse_bytes_in_flight 0`, `acuse_clock_not_set 0`, `acuse_pull_waiting 0`,
		`acuse_store_writable 1`, `acuse_store_commits_total 3`, `acuse_store_writes_total 12`, `acuse_store_writes_waiting 1`,
		`acuse_store_journal_bytes 0`, `acuse_store_longest_transaction_seconds 0`,
		`acuse_quarantined 2`, `acuse_deliveries 44`,
		`acuse_jobs_queued{destination="app"} 5`, `acuse_jobs_leased{destination="app"} 1`, `acuse_jobs_dead{destination="app"} 2`,
		`acuse_oldest_due_seconds{destination="app"} 90`, `acuse_oldest_due_seconds{destination="agent"} 0`,
		"process_resident_memory_bytes", "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	failing = errors.New("no")
	if !strings.Contains(scrape(), "acuse_totals_failed 1") {
		t.Error("a failing store is not seen")
	}

	// Every figure of ours is explained, and nothing else is.
	doc, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^(acuse_[a-z_]+?)(?:_bucket|_sum|_count)?[{ ]`)
	for _, m := range names.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(doc), "`"+m[1]) {
			t.Errorf("docs/reference/metrics.md does not explain %s", m[1])
		}
	}
}
