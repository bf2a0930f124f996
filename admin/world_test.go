package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
