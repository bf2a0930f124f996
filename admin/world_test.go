package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/access"
	"acuse/provider"
	"acuse/store"
	"acuse/store/sqlite"
)

// world is a dashboard over a real archive full of ordinary and hostile events.
type world struct {
	db       *sqlite.DB
	admin    *Admin
	users    *access.Users
	tokens   *access.Tokens
	now      func() time.Time
	released []int64
	rechecks []RecheckRequest
	captured CaptureState     // of the source notion
	id       map[string]int64 // deliveries by the name that the seed gave them
	rejected []int64          // rejections, newest first

	mu    sync.Mutex
	lanes map[string]LaneState
	woken []string
	log   syncBuffer
}

const (
	ownerName     = "ana"
	ownerPassword = "correcthorsebattery"
	adminToken    = "admin-token-of-the-tests-0123456789"
)

// secrets are planted where pages and answers must not show them.
var secrets = []string{"case-SECRET-A", "case-SECRET-B", "case-SECRET-C", "case-SECRET-D", "case-SECRET-E", "case-SECRET-F", "case-SECRET-G"}

// noon is the clock of the tests: a Monday, 14:05 UTC.
var noon = time.Date(2026, 11, 30, 14, 5, 0, 0, time.UTC)

// newWorld opens an archive in dir. tell gets what would stop a test.
func newWorld(ctx context.Context, dir string, now func() time.Time, base string) (*world, error) {
	db, err := sqlite.Open(ctx, dir, sqlite.Options{MinFree: -1})
	if err != nil {
		return nil, err
	}
	w := &world{db: db, now: now, id: map[string]int64{}}
	w.users = access.NewUsers(access.UsersOptions{Accounts: db, Now: now})
	w.tokens = access.NewTokens(access.TokensOptions{Accounts: db, AdminToken: adminToken, Now: now})
	w.admin, err = New(Options{Archive: db, Operator: db, Orders: db, Rejections: db, Notices: db, Accounts: db, Users: w.users, Tokens: w.tokens,
		Sessions: access.NewSessionStore(db, now), Files: os.DirFS("."), Sources: worldSources, Destinations: worldDestinations,
		Lane: w.lane, LaneAct: w.laneAct, Recheck: w.recheck, Capture: w.capture,
		Release: w.release, NewKey: func(s, e, d string) string { return s + ":" + e + ":" + d }, Wake: w.wake, Health: db.Health,
		Test: testSteps, Backup: func(ctx context.Context, path, _ string, progress func(done, total int64)) error {
			progress(1, 2)
			return errors.Join(db.Backup(ctx, path), db.PutSetting(ctx, store.SettingLastBackup, "2026-11-30T14:02:31.000Z"))
		}, Storage: w.usage, BackupNow: func(context.Context) (string, error) { return "/var/backups/acuse-20261130T140500Z.db", nil },
		VerifyBackup: func(context.Context) (string, []string, error) {
			return "/var/backups/acuse-20261130T140500Z.db", nil, nil
		}, Check: db.Check, Erase: db.Erase, Import: db.Import, SetupLink: w.link, Zone: time.UTC, Now: now, BasePath: base,
		Log: slog.New(slog.NewTextHandler(&w.log, nil)), Info: Info{Name: "home-pi", Version: "0.1.0", DataDir: "/var/lib/acuse", StartedAt: now().Add(-50 * time.Hour), DocsURL: "https://acuse.dev/docs"}})
	return w, err
}

var catalogue = sync.OnceValues(provider.Embedded)

func aboutOf(name string) *About {
	c, err := catalogue()
	if err != nil {
		panic(err)
	}
	p, _ := c.Get(name)
	return &About{Facts: p.Facts(), Connect: p.Connect(), Docs: p.Docs(), Types: p.Types()}
}

func worldSources() []Source {
	return []Source{
		{Name: "stripe", About: aboutOf("stripe"), WindowWhy: provider.WindowResend, Provider: "stripe", Title: "Stripe", Address: "https://hooks.example.org/in/stripe", Secrets: 2, DeliverTo: []string{"app", "agent"},
			AuthHeaders: []string{"Stripe-Signature"}, Window: 7 * 24 * time.Hour, MaxBody: 1 << 20, Tolerance: 5 * time.Minute},
		{Name: "github", Provider: "github", Title: "GitHub", Address: "https://hooks.example.org/in/github", Secrets: 1, DeliverTo: []string{"app"},
			AuthHeaders: []string{"X-Hub-Signature-256"}, Window: 7 * 24 * time.Hour, MaxBody: 5 << 20},
		{Name: "bot", About: aboutOf("telegram"), WindowWhy: provider.WindowWeek, Provider: "telegram", Title: "Telegram", Address: "https://hooks.example.org/in/bot", Secrets: 1, DeliverTo: []string{"agent"},
			AuthHeaders: []string{"X-Telegram-Bot-Api-Secret-Token"}, Window: 7 * 24 * time.Hour},
		{Name: "q", Provider: "query-token", Title: "Query token", Address: "https://hooks.example.org/in/q", Secrets: 1, DeliverTo: []string{"app"}, AuthQuery: []string{"t"}},
		{Name: "notion", About: aboutOf("notion"), WindowWhy: provider.WindowWeek, Provider: "notion", Title: "Notion", Address: "https://hooks.example.org/in/notion", Waiting: true, Captures: true,
			DeliverTo: []string{"agent"}, AuthHeaders: []string{"X-Notion-Signature"}, Window: 7 * 24 * time.Hour},
		{Name: "sensor", Address: "https://hooks.example.org/in/sensor", Unsigned: true, DeliverTo: []string{"app"}},
	}
}

func worldDestinations() []Destination {
	return []Destination{
		{Name: "app", Kind: "http", URL: "http://user:case-SECRET-C@127.0.0.1:3000/webhooks?key=case-SECRET-D", Budget: 12},
		{Name: "agent", Kind: "pull", Budget: 12},
	}
}

// usage is the real one, on a volume and with a growth that do not change.
func (w *world) usage(ctx context.Context) (Storage, error) {
	u, err := w.db.Usage(ctx, store.PurgeRule{Now: w.now(), Age: 30 * 24 * time.Hour, MaxBytes: 2 << 30})
	return Storage{Usage: u, Volume: 12 << 30, Total: 58 << 30, Growth: 31 << 20, CapOn: w.now().AddDate(0, 2, 3), Age: 30 * 24 * time.Hour, DeadAge: 90 * 24 * time.Hour,
		Cap: 2 << 30, Longest: 68 * time.Millisecond, LastBackup: w.now().Add(-10 * time.Hour), Every: 24 * time.Hour, BackupDir: "/var/backups"}, err
}

func (w *world) wake(d []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = append(w.woken, d...)
}

func (w *world) link(ctx context.Context) (string, time.Time, error) {
	t, until, err := w.users.NewSetupLink(ctx)
	return "http://127.0.0.1:8081/setup?t=" + t, until, err
}

// recheck is that of an installation where two of five refused requests were signed with
// case-SECRET-G, and one more would pass when it may be older.
func (w *world) recheck(_ context.Context, r RecheckRequest) (Rechecked, error) {
	w.rechecks = append(w.rechecks, r)
	out := Rechecked{Checked: 5}
	switch {
	case r.Source == "nowhere":
		return Rechecked{}, store.ErrNotFound
	case strings.Contains(r.Secret, "*"):
		return Rechecked{}, fmt.Errorf("%w: secrets[0]: is not base64", ErrSecret)
	case r.Secret == "case-SECRET-G":
		out.WouldVerify = 2
		if r.Tolerance > 0 {
			out.WouldVerify++
		}
	}
	if r.Deliver {
		out.Delivered = max(out.WouldVerify-1, 0)
		out.Duplicates = out.WouldVerify - out.Delivered
	}
	return out, nil
}

// capture is that of the edge for the source notion; a handshake comes through the harness.
func (w *world) capture(_ context.Context, source, act string) (CaptureState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case source != "notion":
		return CaptureState{}, ErrNoCapture
	case act == "open":
		w.captured = CaptureState{Until: w.now().Add(10 * time.Minute)}
	case act == "confirm" && w.captured.Value == "":
		return CaptureState{}, ErrNothingCaptured
	case act == "confirm", act == "discard":
		w.captured = CaptureState{}
	}
	return w.captured, nil
}

func (w *world) release(_ context.Context, _ string, ids []int64, _ bool, _ store.Actor) (int, int, error) {
	w.released = append(w.released, ids...)
	return len(ids), 0, nil
}

func testSteps(_ context.Context, r TestRequest, emit func(TestStep)) error {
	emit(TestStep{"signed", Says{SaysSecret, []any{1, 2}}, 0, true})
	emit(TestStep{"accepted", Says{SaysAnswered, []any{"#1", "200"}}, 4, true})
	if r.Deliver {
		emit(TestStep{"leased", Says{SaysLeased, []any{"http"}}, 1, true})
		emit(TestStep{"failed", Says{SaysFailed, []any{"app", 1, Outcome{Class: "refused"}}}, 3, false})
		emit(TestStep{"leased", Says{SaysLeased, []any{"http"}}, 10002, true})
		emit(TestStep{"delivered", Says{SaysDelivered, []any{"app", Outcome{Status: 204}}}, 38, true})
	}
	switch r.Type {
	case "no.such":
		return &TestError{Says: Says{SaysNoSample, []any{r.Type, "invoice.paid"}}}
	case "broken":
		return errors.New("the disk is gone")
	}
	return nil
}

// syncBuffer is a log that may be written by several at once.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// arrival is an event to seed.
type arrival struct {
	name, source, provider, id, typ string
	at                              time.Time
	header                          http.Header
	target                          string
	body                            []byte
	to                              []string
	slot                            int
	test                            bool
	quarantine                      string
	resource                        string
}

// accept stores an event; errors stop the seed.
func (w *world) accept(ctx context.Context, a arrival) (int64, error) {
	if a.header == nil {
		a.header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"}}
	}
	if a.target == "" {
		a.target = "/in/" + a.source
	}
	ev := store.Event{ID: a.id, Type: a.typ, Part: -1, Size: len(a.body), Window: 7 * 24 * time.Hour, Test: a.test, Quarantine: a.quarantine, Resource: a.resource}
	if a.quarantine == "" {
		for _, d := range a.to {
			ev.Jobs = append(ev.Jobs, store.NewJob{Destination: d, Key: a.source + ":" + a.id + ":" + d, State: store.Queued})
		}
	}
	out, err := w.db.Accept(ctx, store.Arrival{Source: a.source, Provider: a.provider, ReceivedAt: a.at, Remote: "3.18.12.63", Method: "POST", Target: a.target,
		Header: store.EncodeHeader(a.header), Body: a.body, Slot: a.slot, AckMicros: 3900, Events: []store.Event{ev}})
	if err != nil {
		return 0, err
	}
	if a.name != "" {
		w.id[a.name] = out[0].Delivery
	}
	return out[0].Delivery, nil
}

// try leases the one due job of a destination and settles it.
func (w *world) try(ctx context.Context, dest string, at time.Time, state store.JobState, due time.Time, reason store.DeadReason, r store.Result) error {
	ls, err := w.db.Lease(ctx, store.LeaseQuery{Destination: dest, Owner: "n1/4f2a/http", Max: 1, TTL: time.Minute, Now: at})
	if err != nil {
		return err
	}
	if len(ls) != 1 {
		return fmt.Errorf("%d jobs of %s are due", len(ls), dest)
	}
	return w.db.Settle(ctx, store.Settlement{Job: ls[0].Job, Token: ls[0].Token, At: at.Add(r.Duration), State: state, Due: due, Reason: reason, Result: r})
}

var good = store.Result{Outcome: store.Succeeded, Status: 200, Duration: 84 * time.Millisecond, Connect: time.Millisecond, FirstByte: 80 * time.Millisecond,
	Header: []byte(`{"Content-Type":["text/plain"]}`), Body: []byte("ok")}

func bad(status int, class, text string) store.Result {
	return store.Result{Outcome: store.Failed, Status: status, Class: class, Error: text, Duration: 1200 * time.Millisecond}
}

// run lets a job fail n times and then end; the last result decides.
func (w *world) run(ctx context.Context, dest string, at time.Time, n int, fail store.Result, end store.JobState, last store.Result, due time.Time) error {
	for i := range n {
		next := at.Add(time.Duration(i+1) * 30 * time.Second)
		if err := w.try(ctx, dest, at.Add(time.Duration(i)*30*time.Second), store.Queued, next, 0, fail); err != nil {
			return err
		}
	}
	return w.try(ctx, dest, at.Add(time.Duration(n)*30*time.Second), end, due, store.Exhausted, last)
}

// seed fills the archive. The ordinary ones come first, then those with a story.
func (w *world) seed(ctx context.Context, ordinary int) error {
	now := w.now().UTC().Truncate(time.Millisecond)
	at := func(min float64) time.Time { return now.Add(-time.Duration(min * float64(time.Minute))) }
	app := []string{"app"}
	for i := range ordinary {
		a := arrival{source: "stripe", provider: "stripe", id: fmt.Sprintf("evt_1QK%07dXyZ", i), typ: []string{"invoice.paid", "charge.succeeded", "customer.updated"}[i%3],
			at: at(700 + 3*float64(ordinary-i)), body: fmt.Appendf(nil, `{"id":"evt_1QK%07dXyZ","object":"event","livemode":true}`, i), to: app, slot: 1, resource: "in_" + fmt.Sprint(i)}
		if _, err := w.accept(ctx, a); err != nil {
			return err
		}
		if err := w.try(ctx, "app", a.at.Add(5*time.Millisecond), store.Delivered, time.Time{}, 0, good); err != nil {
			return err
		}
	}
	for _, f := range []func(context.Context, func(float64) time.Time) error{w.seedHostile, w.seedStories, w.seedRejections} {
		if err := f(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

const invoice = `{
  "id": "evt_1QK9rS2eZvKYlo2C",
  "object": "event",
  "api_version": "2026-08-27.basil",
  "created": 1796047391,
  "data": {
    "object": {
      "id": "in_1QK9rR2eZvKYlo2C",
      "amount_paid": 129900,
      "currency": "mxn",
      "customer": "cus_R2eZvKYlo2CQK9",
      "customer_email": "lucía@ejemplo.mx",
      "lines": {"data": [{"id": "il_1", "amount": 129900, "description": "Plan anual ñandú"}], "has_more": false},
      "big": 12345678901234567890,
      "rate": 1.10e+2
    }
  },
  "livemode": true,
  "pending_webhooks": 1,
  "type": "invoice.paid"
}`

func (w *world) seedStories(ctx context.Context, at func(float64) time.Time) error {
	sig := func(extra ...string) http.Header {
		h := http.Header{"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"},
			"Stripe-Signature": {"t=1796047391,v1=case-SECRET-G"}, "Accept-Encoding": {"gzip"}, "Content-Length": {"1532"}}
		for i := 0; i+1 < len(extra); i += 2 {
			h[extra[i]] = []string{extra[i+1]}
		}
		return h
	}
	steps := []func() error{
		func() error { // dead: the app answers 500, twelve times
			for i := range 7 {
				if _, err := w.accept(ctx, arrival{name: "dead", source: "stripe", provider: "stripe", id: fmt.Sprintf("evt_1QK8aa%d2eZvKYlo2C", i), typ: "charge.refunded",
					at: at(300 - float64(i)*10), header: sig(), body: []byte(invoice), to: []string{"app"}, slot: 2, resource: "ch_3QK8"}); err != nil {
					return err
				}
				boom := bad(500, "status", "the app answered 500")
				boom.Header = store.EncodeHeader(http.Header{"Content-Type": {"text/html"}, "X-E": {"<svg onload=alert(5)>"}, "Set-Cookie": {"s=case-SECRET-F"}})
				boom.Body = []byte("<script>alert(4)</script>")
				if err := w.run(ctx, "app", at(299.9-float64(i)*10), 11, boom, store.Dead, boom, time.Time{}); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { // refused connections, two jobs, one taken
			if _, err := w.accept(ctx, arrival{name: "two", source: "github", provider: "github", id: "72d3162e-cc78-11e3-81ab-4c9367dc0958", typ: "push", at: at(200),
				header: http.Header{"Content-Type": {"application/json"}, "X-Hub-Signature-256": {"sha256=case-SECRET-G"}, "User-Agent": {"GitHub-Hookshot/044aadd"}, "X-Github-Event": {"push"}},
				body:   []byte(`{"ref":"refs/heads/main","commits":[{"id":"3b09aa5","message":"Fix it"}]}`), to: []string{"agent", "app"}, slot: 1}); err != nil {
				return err
			}
			if err := w.try(ctx, "agent", at(199.9), store.Delivered, time.Time{}, 0, store.Result{Outcome: store.Succeeded, Duration: 2 * time.Second, Worker: "token agent-1"}); err != nil {
				return err
			}
			no := bad(0, "refused", "connection refused")
			no.Duration = 3 * time.Millisecond
			return w.run(ctx, "app", at(199.9), 11, no, store.Dead, no, time.Time{})
		},
		func() error { // delivered on the third try, with duplicates
			a := arrival{name: "paid", source: "stripe", provider: "stripe", id: "evt_1QK9rS2eZvKYlo2C", typ: "invoice.paid", at: at(42),
				header: sig("X-Forwarded-For", "3.18.12.63"), body: []byte(invoice), to: []string{"app"}, slot: 2, resource: "in_1QK9rR2eZvKYlo2C"}
			if _, err := w.accept(ctx, a); err != nil {
				return err
			}
			if err := w.run(ctx, "app", at(41.99), 2, bad(503, "status", "the app answered 503"), store.Delivered, good, time.Time{}); err != nil {
				return err
			}
			for range 3 {
				a.at = at(31)
				if _, err := w.accept(ctx, a); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { // cancelled by a person
			id, err := w.accept(ctx, arrival{name: "cancelled", source: "stripe", provider: "stripe", id: "evt_1QK9c2eZvKYlo2C", typ: "customer.subscription.trial_will_end", at: at(33),
				header: sig(), body: []byte(`{"id":"evt_1QK9c"}`), to: []string{"app"}, slot: 1})
			if err != nil {
				return err
			}
			_, err = w.db.Cancel(ctx, id, "", store.Actor{Name: "ana", From: "127.0.0.1"}, at(32))
			return err
		},
		func() error { // quarantined
			_, err := w.accept(ctx, arrival{name: "quarantined", source: "stripe", provider: "stripe", typ: "", at: at(28), header: sig(), body: []byte(`{"object":"event"}`), slot: 1,
				quarantine: "id: no value at json:$.event.uuid"})
			return err
		},
		func() error { // a test event
			if _, err := w.accept(ctx, arrival{name: "test", source: "stripe", provider: "stripe", id: "evt_acuse_test_01J", typ: "invoice.paid", at: at(20), header: sig(),
				body: []byte(invoice), to: []string{"app"}, slot: 1, test: true}); err != nil {
				return err
			}
			return w.try(ctx, "app", at(19.99), store.Delivered, time.Time{}, 0, good)
		},
		func() error { // waits for a retry
			if _, err := w.accept(ctx, arrival{name: "retry", source: "stripe", provider: "stripe", id: "evt_1QK9zz2eZvKYlo2C", typ: "payment_intent.payment_failed", at: at(6), header: sig(),
				body: []byte(invoice), to: []string{"app"}, slot: 1, resource: "pi_3QK9zz"}); err != nil {
				return err
			}
			slow := bad(0, "timeout", "no answer within 30s")
			slow.Duration = 30 * time.Second
			return w.run(ctx, "app", at(5.9), 3, bad(503, "status", "the app answered 503"), store.Queued, slow, at(-14))
		},
		func() error { // leased by an agent right now
			if _, err := w.accept(ctx, arrival{name: "leased", source: "bot", provider: "telegram", id: "815172635", typ: "message", at: at(1),
				header: http.Header{"Content-Type": {"application/json"}, "X-Telegram-Bot-Api-Secret-Token": {"case-SECRET-A"}, "Authorization": {"Bearer case-SECRET-E"}, "Cookie": {"s=case-SECRET-F"}},
				body:   []byte(`{"update_id":815172635,"message":{"text":"¿Dónde está mi pedido? 📦"}}`), to: []string{"agent"}, slot: 1}); err != nil {
				return err
			}
			_, err := w.db.Lease(ctx, store.LeaseQuery{Destination: "agent", Owner: "n1/4f2a/pull", Max: 1, TTL: 5 * time.Minute, Now: at(0.9)})
			return err
		},
	}
	for i, f := range steps {
		if err := f(); err != nil {
			return fmt.Errorf("story %d: %w", i, err)
		}
	}
	return nil
}

// hostileBody is that of case adm-01.
const hostileBody = `{"id":"<img src=x onerror=alert(1)>","</script><script>alert(2)</script>":"\u003cscript\u003e","u":"javascript:alert(3)"}`

func (w *world) seedHostile(ctx context.Context, at func(float64) time.Time) error {
	deep := strings.Repeat(`{"a":[`, 5000) + strings.Repeat(`]}`, 5000)
	list := []arrival{
		{name: "xss", id: "<img src=x onerror=alert(1)>", typ: `"><script>alert(1)</script>`, target: "/in/sensor?q=<script>alert(8)</script>", body: []byte(hostileBody),
			header: http.Header{"Content-Type": {"text/html"}, "User-Agent": {"<script>alert(6)</script>"}, `X-Name"><b>`: {"v"}, "X-Ok": {`"><script>alert(7)</script>`}}},
		{name: "broken", id: "broken-1", typ: "order.created", body: []byte("{\n  \"id\": \"broken-1\",\n  \"total\": 12,5\n}\n")},
		{name: "big", id: "big-1", typ: "export.finished", body: []byte(`{"rows":[` + strings.TrimSuffix(strings.Repeat(`{"id":98765432109876543210,"name":"fila"},`, 50000), ",") + `]}`)},
		{name: "binary", id: "bin-1", typ: "blob", body: append([]byte{0x1f, 0x8b, 0, 0xff, 0xfe}, bytes.Repeat([]byte{0, 1, 2, 0x80}, 3000)...), header: http.Header{"Content-Type": {"application/octet-stream"}}},
		{name: "rtl", id: "rtl-\u202egpj.exe", typ: "file\u202e\u200fexe.gpj", body: []byte(`{"name":"invoice` + "\u202e" + `fdp.exe","ok":true}`)},
		{name: "deep", id: "deep-1", typ: "nested", body: []byte(deep)},
		{name: "empty", id: "empty-1", typ: "", body: []byte{}},
		{name: "long", id: strings.Repeat("x", 1500), typ: strings.Repeat("very.long.type.", 30), body: []byte(`{"k":"` + strings.Repeat("w", 6000) + `"}`)},
		{name: "token", source: "q", provider: "query-token", id: "tok-1", typ: "ping", target: "/in/q?t=case-SECRET-B&ok=1", body: []byte(`{}`)},
	}
	for i, a := range list {
		if a.source == "" {
			a.source = "sensor"
		}
		a.at, a.to = at(640-float64(i)), []string{"app"}
		if _, err := w.accept(ctx, a); err != nil {
			return err
		}
		if err := w.try(ctx, "app", a.at.Add(time.Millisecond), store.Delivered, time.Time{}, 0, good); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) seedRejections(ctx context.Context, at func(float64) time.Time) error {
	h := func(extra ...string) []byte {
		m := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"<script>alert(6)</script>"}}
		for i := 0; i+1 < len(extra); i += 2 {
			m.Set(extra[i], extra[i+1])
		}
		return store.EncodeHeader(m)
	}
	list := []store.Rejection{
		{Source: "stripe", Reason: "signature_mismatch", Remote: "3.18.12.63", Signed: true, Header: h("Stripe-Signature", "t=1,v1=case-SECRET-G"), Body: []byte(invoice)},
		{Source: "stripe", Reason: "timestamp_expired", Detail: "at=sig:t;cause=too_old;skew=840s;allowed=300s;agree=3", Remote: "3.130.192.231", Signed: true, Header: h("Stripe-Signature", "t=1"), Body: []byte(invoice)},
		{Source: "stripe", Reason: "missing_header", Detail: "at=header:Stripe-Signature;cause=header_missing;missing=header:Stripe-Signature", Remote: "203.0.113.77", Header: h()},
		{Source: "github", Reason: "too_large", Remote: "140.82.115.6", Size: 6396313, Header: h("X-Hub-Signature-256", "sha256=case-SECRET-G")},
		{Source: "bot", Reason: "token_mismatch", Detail: "at=header:X-Telegram-Bot-Api-Secret-Token;cause=secret_text;how=newline", Remote: "198.51.100.9", Header: h("X-Telegram-Bot-Api-Secret-Token", "case-SECRET-A-wrong"), Body: []byte(`{"update_id":2}`)},
		{Source: "q", Reason: "<b>odd</b>", Remote: "198.51.100.9", Target: "/in/q?token=case-SECRET-B", Header: h(), Body: []byte(`{`)},
	}
	slices.Reverse(list) // the oldest is refused first
	for i, r := range list {
		i = len(list) - 1 - i
		r.FirstAt, r.At = at(float64(60*(i+1))), at(float64(60*(i+1)))
		r.Status, r.Method, r.Count = 401, "POST", 1
		if r.Target == "" {
			r.Target = "/in/" + r.Source
		}
		if r.Size == 0 {
			r.Size = len(r.Body)
		}
		for range 1 + i*6%14 {
			if err := w.db.Reject(ctx, r); err != nil {
				return err
			}
		}
	}
	kept, err := w.db.RejectionList(ctx, "", 0, 100)
	for _, r := range kept {
		w.rejected = append(w.rejected, r.ID)
	}
	return err
}

// seeded is a world for one test, with an owner who can log in.
func seeded(t testing.TB, ordinary int) *world {
	t.Helper()
	w, err := newWorld(t.Context(), t.TempDir(), func() time.Time { return noon }, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.db.Close() })
	if err := w.seed(t.Context(), ordinary); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestMain serves two worlds for the browser tests when ACUSE_HARNESS names an
// address; otherwise it runs the tests.
func TestMain(m *testing.M) {
	if addr := os.Getenv("ACUSE_HARNESS"); addr != "" {
		if err := serveHarness(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
