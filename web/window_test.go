package web

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"acuse/provider"
	"acuse/store"
	"acuse/store/sqlite"
)

// TestID07 is the case id-07: a seen id outlives the provider's retries, also after a
// kill, and a retry whose first copy never came is an event like any other.
func TestID07(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Unix(1767225600, 0)
	open := func() *sqlite.DB {
		db, err := sqlite.Open(context.WithoutCancel(t.Context()), dir, sqlite.Options{MinFree: -1})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	checker, err := provider.Custom().Compile(provider.Settings{Unsigned: true, ID: &provider.IDRule{Template: "{json:event_id}"}})
	if err != nil {
		t.Fatal(err)
	}
	edge := func(s *sqlite.DB) *Edge {
		return newEdge(t, EdgeOptions{Inbox: s, Rejections: s, Now: func() time.Time { return now }}, Source{Name: "sl", Checker: checker, Unsigned: true,
			Window: func(bool) (time.Duration, bool) { return provider.Custom().Window(false, 30*24*time.Hour), true }, Destinations: []Destination{{Name: "app"}}})
	}
	e := edge(db)
	post := func(id, retry string) string {
		t.Helper()
		r := httptest.NewRequest("POST", "/in/sl", strings.NewReader(`{"event_id":"`+id+`"}`))
		r.Header.Set("Content-Type", "application/json")
		if retry != "" {
			r.Header.Set("X-Slack-Retry-Num", retry)
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != 200 {
			t.Fatalf("%s: %d %s", id, w.Code, w.Body)
		}
		return w.Body.String()
	}
	for _, step := range []struct {
		wait      time.Duration
		id, retry string
		kind      string
		kill      bool
	}{
		{0, "Ev0", "3", `"accepted"`, false}, // a retry never seen before
		{0, "Ev1", "", `"accepted"`, false},
		{300 * time.Second, "Ev1", "3", `"duplicate"`, false},
		{259200 * time.Second, "Ev1", "", `"duplicate"`, false},
		{0, "Ev1", "", `"duplicate"`, true},
		{4*24*time.Hour - time.Hour, "Ev1", "", `"duplicate"`, false},
		{22 * 24 * time.Hour, "Ev1", "", `"duplicate"`, false}, // as long as the row may be kept
	} {
		now = now.Add(step.wait)
		if step.kill {
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = open()
			e = edge(db)
		}
		// What is delivered and old goes; the retention never takes a key that is needed.
		leases, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "w", Max: 10, TTL: time.Minute, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			if err := db.Settle(t.Context(), store.Settlement{Job: l.Job, Token: l.Token, At: now, State: store.Delivered}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Purge(t.Context(), store.PurgeRule{Now: now, Age: time.Hour, DeadAge: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if got := post(step.id, step.retry); !strings.Contains(got, step.kind) {
			t.Fatalf("%s after %v: %s, want %s", step.id, step.wait, got, step.kind)
		}
	}
	totals, err := db.Totals(t.Context())
	if err != nil || totals.Deliveries != 2 {
		t.Fatalf("events: %+v %v", totals, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
