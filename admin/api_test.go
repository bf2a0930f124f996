package admin

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"acuse/access"
	"acuse/store"
)

// call asks the API as a program does.
func (w *world) call(t testing.TB, method, path, token, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8081"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:50000"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, r)
	return rec
}

// The contract's own example, field by field.
func TestADeliveryLooksAsTheContractSays(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	var page struct {
		Deliveries []json.RawMessage `json:"deliveries"`
		Next       *string           `json:"next"`
	}
	r := w.call(t, "GET", "/api/v1/deliveries?q=evt_1QK9rS2eZvKYlo2C&test=", adminToken, "")
	if r.Code != http.StatusBadRequest {
		t.Errorf("an unknown filter: %d", r.Code)
	}
	r = w.call(t, "GET", "/api/v1/deliveries?q=evt_1QK9rS2eZvKYlo2C", adminToken, "")
	if err := json.Unmarshal(r.Body.Bytes(), &page); err != nil || len(page.Deliveries) != 1 || page.Next == nil || *page.Next != "" {
		t.Fatalf("%v: %s", err, r.Body)
	}
	want := `{"id":` + strconv.FormatInt(w.id["paid"], 10) + `,"source":"stripe","provider":"stripe","event_id":"evt_1QK9rS2eZvKYlo2C","type":"invoice.paid",` +
		`"resource":"in_1QK9rR2eZvKYlo2C","state":"delivered","received_at":"2026-11-30T13:23:00.000Z","duplicates":3,"last_duplicate_at":"2026-11-30T13:34:00.000Z",` +
		`"body_differs":0,"test":false,"size":575,"secret_slot":2,"jobs":[{"id":`
	if got := string(page.Deliveries[0]); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want = `"destination":"app","state":"delivered","attempts":3,"due_at":null,"settled_at":"2026-11-30T13:24:00.684Z","last_status":200,"last_error":null,` +
		`"last_duration_us":84000,"idempotency_key":"stripe:evt_1QK9rS2eZvKYlo2C:app",` +
		`"rule":null,"rule_error":null,"order":null,"waits":false,"moved":false,"turn_at":null,"superseded_by":null}]}`
	if got := string(page.Deliveries[0]); !strings.HasSuffix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestScopesBoundWhatATokenDoes(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	token := func(scopes ...string) string {
		secret, _, err := w.tokens.Create(t.Context(), "t-"+strings.Join(scopes, "-"), "", scopes, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	read, body, resend := token(access.Read), token(access.Body), token(access.Resend)
	id := "/api/v1" + w.path("dead")
	for _, c := range []struct {
		method, path, token string
		code                int
	}{
		{"GET", id, "", 401}, {"GET", id, "wrong", 401}, {"GET", id, read, 200}, {"GET", id, body, 403}, {"GET", id + "/body", read, 403}, {"GET", id + "/body", body, 200},
		{"POST", id + "/resend", read, 403}, {"POST", id + "/resend", body, 403}, {"POST", id + "/resend", resend, 202}, {"GET", "/api/v1/tokens", resend, 403},
		{"POST", "/api/v1/backup", read, 403}, {"GET", "/api/v1/tokens", adminToken, 200},
	} {
		r := w.call(t, c.method, c.path, c.token, "")
		if r.Code != c.code {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, r.Code, c.code)
		}
		if c.code == 401 && r.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no challenge", c.path)
		}
	}
	one := func(tok string) string { return w.call(t, "GET", id, tok, "").Body.String() }
	answer := base64.StdEncoding.EncodeToString([]byte("<script>alert(4)</script>"))
	if strings.Contains(one(read), answer) || !strings.Contains(one(adminToken), answer) {
		t.Error("the body of an answer needs the scope body")
	}
}

func TestTheSocketNeedsNoToken(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	r := httptest.NewRequestWithContext(access.WithGrant(t.Context(), access.Owner), http.MethodPost, "http://acuse/api/v1"+w.path("dead")+"/resend", nil)
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, r)
	if rec.Code != http.StatusAccepted {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	trail, err := w.db.Trail(t.Context(), w.id["dead"])
	if err != nil || len(trail) != 1 || trail[0].By.Name != "socket" || trail[0].By.From != "" {
		t.Errorf("%v %+v", err, trail)
	}
}

// P3: a resend keeps number and idempotency key, wakes the lane, and a second click
// makes no second job.
func TestP3AResendKeepsNumberAndKey(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	before, err := w.db.Delivery(t.Context(), w.id["dead"])
	if err != nil {
		t.Fatal(err)
	}
	c := w.owner(t)
	r := c.post(w.path("dead")+"/resend", map[string][]string{"destination": {"app"}, "reason": {"mended"}})
	if r.Code != http.StatusSeeOther || !strings.HasPrefix(r.Header().Get("Location"), w.path("dead")+"?resent=") {
		t.Fatalf("%d %q %s", r.Code, r.Header().Get("Location"), r.Body)
	}
	page := c.get(r.Header().Get("Location")).Body.String()
	if !strings.Contains(page, "Queued again for app") || !strings.Contains(page, "mended") {
		t.Error("the page does not say what was done")
	}
	again := w.call(t, "POST", "/api/v1"+w.path("dead")+"/resend", adminToken, "")
	if again.Code != http.StatusAccepted || !strings.Contains(again.Body.String(), `"already_queued":true`) {
		t.Errorf("%d %s", again.Code, again.Body)
	}
	after, err := w.db.Delivery(t.Context(), w.id["dead"])
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Jobs) != 1 || after.Jobs[0].Key != before.Jobs[0].Key || after.Jobs[0].ID != before.Jobs[0].ID || after.Jobs[0].State != store.Queued {
		t.Errorf("before %+v\nafter %+v", before.Jobs, after.Jobs)
	}
	if !slices.Contains(w.woken, "app") {
		t.Error("nobody woke the lane")
	}
}

// P6: jobs of a destination that is not configured any more are shown.
func TestP6JobsOfARemovedDestinationAreShown(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	if _, err := w.accept(t.Context(), arrival{source: "stripe", provider: "stripe", id: "evt_old", typ: "x", at: noon, body: []byte(`{}`), to: []string{"old-app"}}); err != nil {
		t.Fatal(err)
	}
	c := w.owner(t)
	for p, want := range map[string]string{"/": "Destination old-app is not configured any more", "/destinations": "old-app", "/deliveries/" + strconv.FormatInt(w.last(t), 10): "not configured any more"} {
		if !strings.Contains(c.get(p).Body.String(), want) {
			t.Errorf("%s does not tell", p)
		}
	}
	if r := w.call(t, "GET", "/api/v1/destinations", adminToken, ""); !strings.Contains(r.Body.String(), `"name":"old-app","kind":"","url":null,"configured":false`) {
		t.Errorf("%s", r.Body)
	}
}

func (w *world) last(t *testing.T) int64 {
	t.Helper()
	list, _, err := w.db.Deliveries(t.Context(), store.DeliveryFilter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	return list[0].ID
}

func TestInputIsReadStrictly(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	for _, c := range []struct {
		body, kind string
		code       int
		says       string
	}{
		{`{"destinaton":"app"}`, "application/json", 400, "destinaton"},
		{`{"destination":7}`, "application/json", 400, "destination"},
		{`{"destination":"app"} {}`, "application/json", 400, "after the object"},
		{`{"destination":`, "application/json", 400, "not valid JSON"},
		{`[]`, "application/json", 400, "does not fit"},
		{`{"signature":"odd"}`, "application/json", 400, "fresh or passthrough"},
		{`{"as_new":true}`, "application/json", 400, "reason"},
		{`{"destination":"nowhere"}`, "application/json", 404, "does not go to"},
		{`{}`, "text/plain", 415, "application/json"},
		{strings.Repeat(" ", 70<<10) + "{}", "application/json", 413, "64 KiB"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:8081/api/v1"+w.path("dead")+"/resend", strings.NewReader(c.body))
		r.Header.Set("Authorization", "Bearer "+adminToken)
		r.Header.Set("Content-Type", c.kind)
		rec := httptest.NewRecorder()
		w.admin.ServeHTTP(rec, r)
		if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.says) || rec.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.60s: %d %s", c.body, rec.Code, rec.Body)
		}
	}
	for _, q := range []string{"limit=0", "limit=501", "limit=x", "state=odd", "before=x", "since=yesterday", "answer=6xx", "nope=1", "source=a&source=b"} {
		if r := w.call(t, "GET", "/api/v1/deliveries?"+q, adminToken, ""); r.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", q, r.Code)
		}
	}
}

func TestPagesOfTheListMeet(t *testing.T) {
	t.Parallel()
	w := seeded(t, 12)
	var all, paged []int64
	get := func(q string) (ids []int64, next string) {
		var page struct {
			Deliveries []struct{ ID int64 }
			Next       string
		}
		if err := json.Unmarshal(w.call(t, "GET", "/api/v1/deliveries?"+q, adminToken, "").Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Deliveries {
			ids = append(ids, d.ID)
		}
		return ids, page.Next
	}
	all, _ = get("limit=500")
	for next := "x"; next != ""; {
		q := "limit=7"
		if next != "x" {
			q += "&before=" + next
		}
		var ids []int64
		ids, next = get(q)
		paged = append(paged, ids...)
	}
	if !slices.Equal(all, paged) || len(all) < 30 {
		t.Errorf("%v\n%v", all, paged)
	}
	up, _ := get("limit=7&after=" + strconv.FormatInt(all[10], 10))
	if !slices.Equal(up, all[3:10]) {
		t.Errorf("after: %v, want %v", up, all[3:10])
	}
}

func TestOtherMethodsAre405WithAllow(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	for path, allow := range map[string]string{"/api/v1/deliveries": "GET", "/api/v1/tokens": "GET, POST", "/api/v1/deliveries/release": "POST"} {
		r := w.call(t, "PATCH", path, adminToken, "")
		if r.Code != http.StatusMethodNotAllowed || r.Header().Get("Allow") != allow {
			t.Errorf("%s: %d %q", path, r.Code, r.Header().Get("Allow"))
		}
	}
	if r := w.call(t, "GET", "/api/v1/none", adminToken, ""); r.Code != http.StatusNotFound || r.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", r.Code, r.Header())
	}
}

func TestATestEventIsToldStepByStep(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	r := w.call(t, "POST", "/api/v1/sources/stripe/test", adminToken, `{"type":"invoice.paid"}`)
	want := `{"step":"signed","text":"with secret 1 of 2","ms":0,"ok":true}` + "\n" + `{"step":"accepted","text":"#1, answered 200","ms":4,"ok":true}` + "\n"
	if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "application/x-ndjson" || r.Body.String() != want {
		t.Errorf("%d %s", r.Code, r.Body)
	}
	r = w.call(t, "POST", "/api/v1/sources/stripe/test", adminToken, `{"type":"no.such"}`)
	if !strings.HasSuffix(r.Body.String(), `{"step":"failed","text":"There is no sample of the type no.such. Types: invoice.paid.","ms":0,"ok":false}`+"\n") {
		t.Errorf("%s", r.Body)
	}
	if r := w.call(t, "POST", "/api/v1/sources/none/test", adminToken, ""); r.Code != http.StatusNotFound {
		t.Errorf("%d", r.Code)
	}
}

func TestEventsAreStreamedAndTakenUpAgain(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	srv := httptest.NewServer(w.admin)
	t.Cleanup(srv.Close)
	t.Cleanup(w.admin.Close)
	open := func(last string) (lines <-chan string, stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/api/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+adminToken)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		ch := make(chan string, 64)
		go func() {
			defer close(ch)
			for s := bufio.NewScanner(resp.Body); s.Scan(); {
				ch <- s.Text()
			}
			_ = resp.Body.Close()
		}()
		if got := <-ch; got != "retry: 2000" {
			t.Fatalf("first line %q", got)
		}
		<-ch
		return ch, cancel
	}
	read := func(ch <-chan string, n int) (out []string) {
		for range n {
			out = append(out, <-ch)
		}
		return out
	}
	lines, stop := open("")
	w.admin.Changed(7)
	got := read(lines, 4)
	if got[1] != "event: delivery" || got[2] != `data: {"delivery":7}` {
		t.Fatalf("%q", got)
	}
	id := strings.TrimPrefix(got[0], "id: ")
	stop()
	w.admin.Changed(8)
	w.admin.Changed(9)
	lines, stop = open(id)
	if got := read(lines, 8); got[2] != `data: {"delivery":8}` || got[6] != `data: {"delivery":9}` {
		t.Errorf("what was missed: %q", got)
	}
	stop()
	lines, stop = open("another-run-7")
	if got := read(lines, 3); got[0] != "event: reset" {
		t.Errorf("of another run: %q", got)
	}
	stop()
	lines, stop = open("")
	defer stop()
	w.admin.Close()
	if _, open := <-lines; open {
		t.Error("Close leaves a stream open")
	}
}

func TestASlowReaderIsDroppedAndFindsWhatItMissed(t *testing.T) {
	t.Parallel()
	h := newHub()
	_, slow, _ := h.join("")
	for i := range hubBehind + 1 {
		h.publish(int64(i))
	}
	n, last := 0, change{}
	for c := range slow { // closed by the hub
		n, last = n+1, c
	}
	if n != hubBehind {
		t.Errorf("%d were kept for it", n)
	}
	since, _, whole := h.join(h.id(last))
	if !whole || len(since) != 1 || since[0].Delivery != hubBehind {
		t.Errorf("%v %v", since, whole)
	}
	for i := range 3 * hubPast {
		h.publish(int64(i))
	}
	if _, _, whole := h.join(h.id(last)); whole {
		t.Error("what was forgotten is not said")
	}
}

func TestAPageIsLightAndCheap(t *testing.T) { // not parallel: allocations are counted
	w := seeded(t, 110)
	c := w.owner(t)
	js := 0
	for _, f := range w.admin.assets.byName {
		if f.contentType != "text/plain; charset=utf-8" {
			js += len(f.gz)
		}
	}
	for _, p := range append(w.everyPage(), "/deliveries") {
		r := c.do(http.MethodGet, p, nil, "Accept-Encoding", "gzip")
		if n := len(squeeze(plainBody(t, r))) + js; n > 60<<10 {
			t.Errorf("%s weighs %d bytes with style, script and icons", p, n)
		}
	}
	allocs := testing.AllocsPerRun(3, func() { c.get("/deliveries") })
	if allocs > 60_000 {
		t.Errorf("a page of 100 rows makes %.0f allocations", allocs)
	}
}

// plainBody undoes the compression of an answer.
func plainBody(t *testing.T, r *httptest.ResponseRecorder) []byte {
	t.Helper()
	if r.Header().Get("Content-Encoding") != "gzip" {
		return r.Body.Bytes()
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func BenchmarkListOf100(b *testing.B) {
	w := seeded(b, 110)
	c := w.owner(b)
	b.ReportAllocs()
	for b.Loop() {
		if r := c.get("/deliveries"); r.Code != http.StatusOK {
			b.Fatal(r.Code)
		}
	}
}
