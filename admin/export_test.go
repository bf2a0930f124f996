package admin

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"acuse/store"
)

func TestAnExportIsImportedAsItWas(t *testing.T) {
	t.Parallel()
	from := seeded(t, 2)
	r := from.call(t, "GET", "/api/v1/export?format=jsonl", adminToken, "")
	if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Fatal(r.Code, r.Header())
	}
	lines := strings.Split(strings.TrimSpace(r.Body.String()), "\n")
	totals, err := from.db.Totals(t.Context())
	if err != nil || int64(len(lines)) != totals.Deliveries {
		t.Fatalf("%d lines, %d deliveries, %v", len(lines), totals.Deliveries, err)
	}
	to, err := newWorld(context.WithoutCancel(t.Context()), t.TempDir(), func() time.Time { return noon }, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.db.Close() })
	if got := to.importLines(t, "", r.Body.String()); got.Imported != len(lines) || got.Renumbered != 0 || got.Duplicates != 0 || got.Error != "" || got.Cancelled == 0 {
		t.Fatalf("%+v", got)
	}
	if problems, err := to.db.Check(t.Context(), true); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	again := to.call(t, "GET", "/api/v1/export?format=jsonl", adminToken, "")
	for i, line := range strings.Split(strings.TrimSpace(again.Body.String()), "\n") {
		if was, is := withoutNumbers(t, lines[i]), withoutNumbers(t, line); was != is {
			t.Errorf("line %d was\n%s\nand is\n%s", i+1, was, is)
		}
	}
	if got := to.importLines(t, "", r.Body.String()); got.Imported != quarantinedIn(t, lines) || got.Duplicates != len(lines)-got.Imported {
		t.Errorf("a second time: %+v", got)
	}
	trail, err := to.db.AuditLog(t.Context(), 0, 1)
	if err != nil || trail[0].Act != "import" {
		t.Error(trail, err)
	}
}

// quarantinedIn counts the lines without an event id: they claim no key, and so are not
// known again.
func quarantinedIn(t *testing.T, lines []string) (n int) {
	t.Helper()
	for _, line := range lines {
		var e Exported
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.State == "quarantined" {
			n++
		}
	}
	return n
}

func (w *world) importLines(t *testing.T, query, lines string) (out ImportResult) {
	t.Helper()
	r := w.call(t, "POST", "/api/v1/import"+query, adminToken, lines)
	if err := json.Unmarshal(r.Body.Bytes(), &out); err != nil || r.Code != http.StatusOK {
		t.Fatal(r.Code, r.Body, err)
	}
	return out
}

// withoutNumbers is a line without what an import changes: numbers of jobs and attempts, the
// ends of what was unfinished, links to other deliveries.
func withoutNumbers(t *testing.T, line string) string {
	t.Helper()
	var e Exported
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	e.DuplicateOf, e.CopyOf = nil, nil
	unfinished := false
	for i := range e.Jobs {
		j := &e.Jobs[i]
		j.ID = 0
		if j.State == "queued" || j.State == "leased" || j.State == "cancelled" {
			j.State, j.DueAt, j.SettledAt, unfinished = "ended", nil, nil, true
		}
	}
	if unfinished {
		e.State = "any"
	}
	for i := range e.Attempts {
		e.Attempts[i].ID, e.Attempts[i].Job = 0, 0
		if e.Attempts[i].Outcome == "running" {
			e.Attempts[i].Outcome = "interrupted"
		}
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAnImportQueuesUnfinishedJobsOnDemandOnly(t *testing.T) {
	t.Parallel()
	from := seeded(t, 2)
	lines := from.call(t, "GET", "/api/v1/export?format=jsonl&state=queued", adminToken, "").Body.String()
	to, err := newWorld(context.WithoutCancel(t.Context()), t.TempDir(), func() time.Time { return noon }, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { to.db.Close() })
	if got := to.importLines(t, "?requeue=true", lines); got.Imported == 0 || got.Cancelled != 0 {
		t.Fatalf("%+v", got)
	}
	if totals, err := to.db.Totals(t.Context()); err != nil || totals.Queued == 0 {
		t.Fatal(totals, err)
	}
	if len(to.woken) == 0 {
		t.Error("no lane was woken")
	}
}

func TestAnImportStopsAtTheLineThatIsWrong(t *testing.T) {
	t.Parallel()
	w := seeded(t, 2)
	good := `{"id":1,"source":"s","provider":"p","event_id":"e%d","state":"delivered","received_at":"2026-01-01T00:00:00.000Z","part":-1,"jobs":[],"attempts":[],"headers":{},"body_base64":"YQ=="}` + "\n"
	for bad, want := range map[string]string{
		"not json":                          "line 2: the body is not valid JSON",
		`{"source":"s","event_id":"x"}`:     "line 2: received_at: a time is needed",
		strings.Replace(good, "e%d", "", 1): "line 2: ",
		strings.Replace(strings.Replace(good, "e%d", "z", 1), `"jobs":[]`, `"jobs":[{"id":1,"destination":"app","state":"flying","idempotency_key":"k"}]`, 1): "line 2: a job needs",
	} {
		first := fmt.Sprintf(good, time.Now().UnixNano())
		got := w.importLines(t, "", first+strings.TrimSpace(bad)+"\n"+fmt.Sprintf(good, 7))
		if got.Imported != 1 || !strings.HasPrefix(got.Error, want) {
			t.Errorf("%s: %+v, want %q", bad, got, want)
		}
	}
}

// TestACellIsNoFormula: what a sender chose does nothing in the spreadsheet that opens it.
func TestACellIsNoFormula(t *testing.T) {
	t.Parallel()
	w := seeded(t, 2)
	for _, id := range []string{"=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"} {
		if _, err := w.db.Accept(t.Context(), store.Arrival{Source: "stripe", Provider: "stripe", ReceivedAt: noon, Header: []byte(`{}`),
			Events: []store.Event{{ID: id, Type: id, Part: -1, Window: time.Hour}}}); err != nil {
			t.Fatal(err)
		}
	}
	r := w.call(t, "GET", "/api/v1/export?format=csv&source=stripe", adminToken, "")
	rows, err := csv.NewReader(strings.NewReader(r.Body.String())).ReadAll()
	if err != nil || r.Code != http.StatusOK || len(rows) < 7 || rows[0][0] != "id" {
		t.Fatal(err, r.Code, len(rows))
	}
	escaped := 0
	for _, row := range rows {
		for _, c := range row {
			if c != "" && strings.ContainsRune("=+-@\t\r", rune(c[0])) {
				t.Errorf("%q begins a formula", c)
			}
			if strings.HasPrefix(c, "'=") {
				escaped++
			}
		}
	}
	if escaped == 0 {
		t.Error("nothing was escaped")
	}
}

func TestAnExportIsTheAdminsAlone(t *testing.T) {
	t.Parallel()
	w := seeded(t, 2)
	secret, _, err := w.tokens.Create(t.Context(), "reader", "", []string{"read", "body"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]int{
		"/api/v1/export?format=jsonl": 403, "/api/v1/export?format=xml": 403,
	} {
		if r := w.call(t, "GET", path, secret, ""); r.Code != code {
			t.Errorf("%s: %d", path, r.Code)
		}
	}
	for _, path := range []string{"/api/v1/export", "/api/v1/export?format=xml", "/api/v1/export?format=csv&before=3", "/api/v1/export?format=csv&state=nothing"} {
		if r := w.call(t, "GET", path, adminToken, ""); r.Code != 400 {
			t.Errorf("%s: %d", path, r.Code)
		}
	}
}
