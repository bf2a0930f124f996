package alert

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"acuse/store"
)

// world is a store and a channel in memory.
type world struct {
	mu      sync.Mutex
	notices map[key]store.Notice
	groups  []store.DeadGroup
	totals  store.Totals
	full    bool  // the disk is
	deaf    error // the channel fails
	sent    []string
	tried   int
}

func (w *world) NoticeList(_ context.Context, now time.Time) ([]store.Notice, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []store.Notice
	for _, n := range w.notices {
		if n.Ended.IsZero() || now.Sub(n.Ended) < 24*time.Hour {
			list = append(list, n)
		}
	}
	return list, nil
}

func (w *world) PutNotice(_ context.Context, n store.Notice) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full {
		return store.ErrUnavailable
	}
	w.notices[key{n.Rule, n.Subject}] = n
	return nil
}

func (w *world) Totals(context.Context) (store.Totals, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.totals, nil
}

func (w *world) DeadGroups(context.Context) ([]store.DeadGroup, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.groups), nil
}

func (w *world) Health() store.Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	return store.Health{Writable: !w.full}
}

func (w *world) give(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried++
	if w.deaf == nil {
		w.sent = append(w.sent, text)
	}
	return w.deaf
}

// set changes the world.
func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// got takes the messages sent since it was last called.
func (w *world) got() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sent
	w.sent = nil
	return s
}

func (w *world) alerter(t *testing.T, o Options) *Alerter {
	t.Helper()
	o.Notices, o.Archive, o.Health = w, w, w.Health
	o.Log = slog.New(slog.DiscardHandler)
	o.Location = time.UTC
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	a.channels = []channel{{"test", w.give}}
	return a
}

// begin runs a until the test ends or the returned function is called.
func begin(t *testing.T, a *Alerter) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	end = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(end)
	return end
}

// bubble runs f in fake time, from midnight of 2000-01-01.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, &world{notices: map[key]store.Notice{}}) })
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func dead(n int64, status int) []store.DeadGroup {
	return []store.DeadGroup{{Destination: "app", Reason: store.Exhausted, Status: status, Jobs: n, First: time.Now(), Last: time.Now()}}
}

func expect(t *testing.T, w *world, want ...string) {
	t.Helper()
	if got := w.got(); !slices.Equal(got, want) {
		t.Fatalf("sent\n%q, want\n%q", got, want)
	}
}

func TestOneMatterIsToldThreeTimes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		a := w.alerter(t, Options{Name: "home-pi", Link: "https://acuse.lan/"})
		begin(t, a)
		after(11*time.Hour + 2*time.Minute)
		for n := int64(1); n <= 3; n++ { // a burst
			w.set(func() {
				since := time.Now()
				if w.groups != nil {
					since = w.groups[0].First
				}
				w.groups = dead(n, 500)
				w.groups[0].First = since
			})
			a.Kick()
			after(time.Second)
		}
		after(10 * time.Second)
		const link = "\nhttps://acuse.lan/dead?destination=app"
		expect(t, w, "[acuse home-pi] 3 dead letters for app — 500 since 11:02"+link)
		w.set(func() { w.groups[0].Jobs = 800 })
		a.Kick()
		after(12 * time.Hour)
		expect(t, w) // more of the same is not told
		after(12*time.Hour + time.Minute)
		expect(t, w, "[acuse home-pi] 800 dead letters for app — 500 since 2000-01-01 11:02 — still so after 1 day"+link)
		w.set(func() { w.groups = nil })
		a.Kick()
		after(30 * time.Second)
		expect(t, w) // not yet sure
		w.set(func() { w.groups = dead(1, 500) })
		after(2 * time.Minute)
		expect(t, w) // back before its end was told: nothing is new
		w.set(func() { w.groups = nil })
		after(2 * time.Minute)
		expect(t, w, "[acuse home-pi] no dead letters for app any more, after 1 day"+link)
		after(48 * time.Hour)
		expect(t, w)
	})
}

func TestEveryRuleInBothLanguages(t *testing.T) {
	t.Parallel()
	for language, want := range map[string][]string{
		"en": {
			"[acuse] 1 dead letter for app — connection refused since 00:00",
			"[acuse] 1 delivery in quarantine since 00:00",
			"[acuse] 2 jobs wait for old, which is not configured, since 00:00",
			"[acuse] storage cannot be written since 00:00: acuse answers 503, providers try again later",
		},
		"es-MX": {
			"[acuse] 1 fallido para app — conexión rechazada desde las 00:00",
			"[acuse] 1 entrega en cuarentena desde las 00:00",
			"[acuse] 2 envíos esperan a old, que no está configurado, desde las 00:00",
			"[acuse] no se puede escribir en el almacenamiento desde las 00:00: acuse responde 503 y los proveedores reintentan más tarde",
		},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *world) {
				w.groups = dead(1, 0)
				w.groups[0].Class = "refused"
				w.totals = store.Totals{Quarantined: 1, ByDestination: map[string]store.LaneTotals{"app": {Queued: 9}, "old": {Queued: 2}}}
				w.full = true // and yet it is told
				begin(t, w.alerter(t, Options{Language: language, Destinations: func() []string { return []string{"app"} }}))
				synctest.Wait()
				expect(t, w, want...)
				after(time.Hour)
				expect(t, w)
				w.set(func() { w.groups, w.totals, w.full = nil, store.Totals{}, false })
				after(2 * time.Minute)
				if got := w.got(); len(got) != 4 || strings.Contains(strings.Join(got, ""), "{") {
					t.Fatalf("the ends: %q", got)
				}
				if len(w.notices) != 4 {
					t.Fatalf("kept notices: %v", slices.Collect(maps.Keys(w.notices)))
				}
			})
		})
	}
}

// TestP8ACrashLosesNoMessage restarts between a death and its message.
func TestP8ACrashLosesNoMessage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.deaf = errors.New("test: no connection")
		w.groups = dead(1, 500)
		end := begin(t, w.alerter(t, Options{}))
		after(time.Minute)
		end()
		n := w.notices[key{Dead, "app"}]
		if n.Error != "test: no connection" || !n.SentAt.IsZero() || n.Count != 1 || n.Text == "" {
			t.Fatalf("kept: %+v", n)
		}
		w.deaf = nil
		end = begin(t, w.alerter(t, Options{}))
		synctest.Wait()
		expect(t, w, "[acuse] 1 dead letter for app — 500 since 00:00")
		end()
		if n := w.notices[key{Dead, "app"}]; n.Error != "" || n.SentAt.IsZero() {
			t.Fatalf("kept: %+v", n)
		}
		end = begin(t, w.alerter(t, Options{})) // told already
		after(time.Hour)
		expect(t, w)
		end()
		w.groups = nil // ended while acuse was down
		begin(t, w.alerter(t, Options{}))
		after(2 * time.Minute)
		expect(t, w, "[acuse] no dead letters for app any more, after 1 h 1 min")
	})
}

func TestAFailedSendingIsTriedAgainEverMoreSeldom(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.deaf, w.groups = errors.New("test: no connection"), dead(1, 500)
		begin(t, w.alerter(t, Options{}))
		after(24 * time.Hour)
		if w.tried < 25 || w.tried > 35 {
			t.Fatalf("%d tries in a day", w.tried)
		}
		w.set(func() { w.deaf = nil })
		after(time.Hour)
		if got := w.got(); len(got) != 1 {
			t.Fatalf("sent %q", got)
		}
	})
}

func TestAMatterThatFlapsIsNotToldEachTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		begin(t, w.alerter(t, Options{}))
		for range 60 { // an hour of dying and being resent, each for a minute and a half
			w.set(func() { w.groups = dead(1, 500) })
			after(30 * time.Second)
			w.set(func() { w.groups = nil })
			after(90 * time.Second)
		}
		if got := w.got(); len(got) < 2 || len(got) > 2*12 {
			t.Fatalf("%d messages in two hours: %q", len(got), got)
		}
		w.set(func() { w.groups = dead(1, 500) }) // and now it stays
		after(12 * time.Minute)
		if got := w.got(); len(got) == 0 || !strings.Contains(got[len(got)-1], "1 dead letter for app") {
			t.Fatalf("sent %q", got)
		}
	})
}

func TestTheLargestGroupNamesTheCause(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.groups = append(dead(2, 404), dead(5, 503)...)
		w.groups = append(w.groups, store.DeadGroup{Destination: "app", Reason: store.TooOld, Jobs: 1, First: time.Now().Add(-time.Hour)})
		begin(t, w.alerter(t, Options{}))
		synctest.Wait()
		expect(t, w, "[acuse] 8 dead letters for app — 503 since 1999-12-31 23:00")
	})
}

// TestOverHTTP sends through shoutrrr to a webhook of our own.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- string(b)
	}))
	defer hook.Close()
	w := &world{notices: map[key]store.Notice{}, groups: dead(3, 500)}
	a, err := New(Options{Notices: w, Archive: w, Health: w.Health, Name: "home-pi", URLs: []string{"generic+" + hook.URL + "/"}})
	if err != nil {
		t.Fatal(err)
	}
	begin(t, a)
	if text := <-got; !strings.HasPrefix(text, "[acuse home-pi] 3 dead letters for app — 500 since ") {
		t.Fatalf("got %q", text)
	}
	if err := a.Test(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "[acuse home-pi] test message: alerts arrive here" {
		t.Fatalf("got %q", text)
	}
}

// TestP9NoTokenInAnError looks for tokens of service URLs in errors.
func TestP9NoTokenInAnError(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"case-SECRET-A", "nosuch://case-SECRET-B", "ntfy://:%zz@case-SECRET-C", "slack://case-SECRET-D", "https://user:case-SECRET-E@x/"} {
		if _, err := New(Options{URLs: []string{u}}); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: got %v", u, err)
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"401":   func(w http.ResponseWriter, r *http.Request) { http.Error(w, "case-SECRET-F", http.StatusUnauthorized) },
		"302":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/case-SECRET-G", http.StatusFound) },
		"abort": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		hook := httptest.NewServer(answer)
		a, err := New(Options{URLs: []string{"generic+" + strings.Replace(hook.URL, "://", "://user:case-SECRET-H@", 1) + "/case-SECRET-I?key=case-SECRET-J"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Test(t.Context()); err == nil || strings.Contains(err.Error(), "SECRET") || !strings.HasPrefix(err.Error(), "generic: ") {
			t.Errorf("%s: got %v", name, err)
		}
		hook.Close()
	}
	a, err := New(Options{URLs: []string{"generic+http://169.254.169.254/case-SECRET-K"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Test(t.Context()); err == nil || err.Error() != "generic: its address is not one that acuse connects to" {
		t.Errorf("metadata: got %v", err)
	}
}
