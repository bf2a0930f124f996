package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"acuse/cli"
	"acuse/keep"
	"acuse/scripts/tools/load"
	"acuse/store"
	"acuse/store/storetest"
)

// engines are the pairs that migrate goes between.
var engines = [][2]string{{"sqlite", "bbolt"}, {"bbolt", "sqlite"}}

// TestMigrateThereAndBackKeepsEverything compares what every reader of the store tells of
// an archive that holds one of each kind, before, in the middle and after.
func TestMigrateThereAndBackKeepsEverything(t *testing.T) {
	t.Parallel()
	for _, way := range engines {
		t.Run(way[0], func(t *testing.T) {
			t.Parallel()
			dir, s := archive(t, way[0])
			now := time.UnixMilli(1767225600123).UTC()
			marks := furnish(t, s, now)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s, err := openFolder(t.Context(), way[0], dir) // totals of what is on disk, not of what went by
			if err != nil {
				t.Fatal(err)
			}
			want := told(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for i, names := range [][2]string{way, {way[1], way[0]}} {
				c, err := migrate(t.Context(), cli.MigrateOptions{Dir: dir, From: names[0], To: names[1]})
				if err != nil || len(c.Problems) > 0 || c.Engine != names[1] || len(c.Replaced) != 1 {
					t.Fatalf("%s: %+v %v", names, c, err)
				}
				s, err := openFolder(t.Context(), names[1], dir)
				if err != nil {
					t.Fatal(err)
				}
				got := told(t, s)
				for n := range min(len(got), len(want)) {
					if got[n] != want[n] {
						t.Fatalf("%s: in %s it says\n%s\nwant\n%s", names, names[1], got[n], want[n])
					}
				}
				if len(got) != len(want) {
					t.Fatalf("%s: %d lines, want %d", names, len(got), len(want))
				}
				if i == 1 {
					goesOn(t, s, now, marks)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := filepath.Glob(filepath.Join(dir, "acuse.*.migrated-*"))
			if err != nil || len(kept) != 2 {
				t.Errorf("what was there before: %v %v", kept, err)
			}
		})
	}
}

// furnish puts one of each kind of record into a store. The newest delivery with its jobs
// and attempts, and the newest rejection, are gone again: only the marks know their numbers.
func furnish(t *testing.T, s store.Store, now time.Time) (m store.Marks) {
	t.Helper()
	ctx, by := t.Context(), store.Actor{Name: "ana", From: "192.0.2.1"}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	receive := func(id string, at time.Time, change func(*store.Arrival)) {
		a := store.Arrival{Source: "pagos", Provider: "stripe", ReceivedAt: at, Remote: "192.0.2.7", Method: "POST", Target: "/in/pagos?ñ=1", AckMicros: 77, Slot: 2,
			Header: []byte(`{"X-A":["1","\u00e9"]}`), Body: []byte("\x00\xff " + id),
			Events: []store.Event{{ID: id, Part: -1, Type: "invoice.paid", Resource: "in_1", Version: "7", Unit: "int", Size: 9, Digest: -5, Window: 30 * time.Hour,
				Jobs: []store.NewJob{{Destination: "app", Key: "pagos:" + id + ":app", State: store.Queued}, {Destination: "crm", Key: "k-" + id, State: store.Filtered, Note: "no"}}}}}
		if change != nil {
			change(&a)
		}
		_, err := s.Accept(ctx, a)
		ok(err)
	}
	lease := func(at time.Time) store.Lease {
		t.Helper()
		l, err := s.Lease(ctx, store.LeaseQuery{Destination: "app", Owner: "n1/r1/http", Max: 1, TTL: time.Hour, Now: at})
		if ok(err); len(l) != 1 {
			t.Fatal("nothing to lease")
		}
		return l[0]
	}
	settle := func(l store.Lease, state store.JobState, r store.Result) {
		t.Helper()
		ok(s.Settle(ctx, store.Settlement{Job: l.Job, Token: l.Token, At: now.Add(time.Second), State: state, Due: now.Add(time.Hour), Reason: reasonOf(state), Result: r}))
	}
	receive("delivered", now, nil)
	settle(lease(now), store.Delivered, store.Result{Status: 201, Duration: 1234 * time.Microsecond, Connect: 5 * time.Microsecond, Header: []byte(`{"A":["b"]}`), Body: []byte("\x00ok")})
	receive("dead", now, nil)
	settle(lease(now), store.Dead, store.Result{Class: "timeout", Error: "no answer", Maybe: true, Duration: time.Second})
	receive("failed", now, nil)
	settle(lease(now), store.Queued, store.Result{Status: 503, Class: "status"})
	receive("leased", now, nil)
	lease(now)
	receive("\xff\x00bytes", now, nil)
	receive("delivered", now.Add(time.Minute), func(a *store.Arrival) { a.Body = []byte("other"); a.Events[0].Digest = 6 })
	receive("batch", now, func(a *store.Arrival) {
		a.Events[0].Part = 0
		second := a.Events[0]
		second.ID, second.Part, second.Test = "batch-2", 1, true
		a.Events = append(a.Events, second)
	})
	receive("", now, func(a *store.Arrival) { a.Events[0].Quarantine, a.Events[0].Jobs = "no id", nil })
	_, err := s.Resend(ctx, store.Resend{Delivery: 1, Destination: "app", Reason: "once more", By: by, At: now.Add(time.Hour)})
	ok(err)
	_, err = s.Resend(ctx, store.Resend{Delivery: 2, AsNew: true, Reason: "test", By: by, At: now, NewKeys: func(ev, d string) string { return ev + d }})
	ok(err)
	for i := range 3 {
		ok(s.Reject(ctx, store.Rejection{Source: "pagos", Reason: "signature_mismatch", Detail: "d=1", Remote: "192.0.2.9", At: now.Add(time.Duration(i) * time.Minute), Count: 1, Status: 401,
			Signed: i == 1, Method: "POST", Target: fmt.Sprint("/in/", i), Header: []byte(`{}`), Body: []byte{0, 255, byte(i)}, Size: 3}))
	}
	refused, err := s.RejectionList(ctx, "", 0, 1)
	ok(err)
	ok(s.RemoveRejection(ctx, refused[0].ID))
	ok(s.PutUser(ctx, store.User{Name: "ana", Role: "owner", Password: "$argon2id$x", Language: "es", CreatedAt: now}))
	ok(s.PutToken(ctx, store.Token{ID: "t1", Name: "ci", Agent: "bot", Hash: []byte{1, 0, 255}, Scopes: []string{"read", "resend"}, CreatedAt: now, LastUsed: now.Add(time.Hour), Expires: now.Add(9 * time.Hour)}))
	ok(s.PutSession(ctx, store.Session{ID: "s1", User: "ana", Data: []byte{0, 1}, Expires: now.Add(time.Hour)}))
	ok(s.PutNotice(ctx, store.Notice{Rule: "dead", Subject: "app", Since: now, SentAt: now.Add(time.Second), Count: 3, Text: "tres", Error: "refused"}))
	ok(s.PutNotice(ctx, store.Notice{Rule: "quarantine", Subject: "pagos", Since: now, Ended: now.Add(time.Minute), SentEnd: true, Count: 1}))
	ok(s.PutSetting(ctx, "node", "n1"))
	ok(s.Audit(ctx, store.AuditEntry{At: now, By: by, Act: "login", Subject: "ana", Reason: "ñ"}))

	// In at last and out first: numbers that no record tells of any more, a key that stays.
	old := now.Add(-40 * 24 * time.Hour)
	receive("gone", old, func(a *store.Arrival) { a.Events[0].Window = 41 * 24 * time.Hour })
	l := lease(old)
	m = store.Marks{Delivery: l.Delivery.ID, Job: l.Job, Rejection: refused[0].ID}
	ok(s.Settle(ctx, store.Settlement{Job: l.Job, Token: l.Token, At: old, State: store.Delivered, Result: store.Result{Status: 200}}))
	tries, err := s.Attempts(ctx, m.Delivery)
	ok(err)
	m.Attempt = tries[len(tries)-1].ID
	if p, err := s.Purge(ctx, store.PurgeRule{Now: now, Age: 30 * 24 * time.Hour, DeadAge: 90 * 24 * time.Hour, RejectionAge: 90 * 24 * time.Hour, NoticeAge: 90 * 24 * time.Hour, AuditAge: 900 * 24 * time.Hour, KeepKeys: true, After: m.Delivery - 1}); err != nil || p.Deliveries != 1 {
		t.Fatalf("purged %+v %v", p, err)
	}
	return m
}

func reasonOf(s store.JobState) store.DeadReason {
	if s == store.Dead {
		return store.Exhausted
	}
	return 0
}

// told is all that the readers of a store tell, and its dump, which alone tells of expiries.
func told(t *testing.T, s store.Store) (lines []string) {
	t.Helper()
	ctx := t.Context()
	say := func(what string, v any, err error) {
		t.Helper()
		b, encoding := json.Marshal(v)
		if err := errors.Join(err, encoding); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		lines = append(lines, what+" "+string(b))
	}
	list, _, err := s.Deliveries(ctx, store.DeliveryFilter{Limit: 500})
	say("deliveries", list, err)
	for _, d := range list {
		one, err := s.Delivery(ctx, d.ID)
		say("delivery", fmt.Sprintf("%+v", one), err)
		tries, err := s.Attempts(ctx, d.ID)
		say("attempts", tries, err)
		p, err := s.Payload(ctx, d.ID)
		say("payload", p, err)
		trail, err := s.Trail(ctx, d.ID)
		say("trail", trail, err)
	}
	totals, err := s.Totals(ctx)
	say("totals", totals, err)
	groups, err := s.DeadGroups(ctx)
	say("dead", groups, err)
	held, err := s.QuarantinedAfter(ctx, "", 0, 100)
	say("quarantine", held, err)
	refused, err := s.RejectionList(ctx, "", 0, 100)
	say("rejections", refused, err)
	for _, r := range refused {
		one, err := s.RejectionByID(ctx, r.ID)
		say("rejection", one, err)
	}
	n, err := s.RejectionsSince(ctx, time.Unix(0, 0))
	say("refused", n, err)
	users, err := s.Users(ctx)
	say("users", users, err)
	tokens, err := s.Tokens(ctx)
	say("tokens", tokens, err)
	session, err := s.SessionByID(ctx, "s1")
	say("session", session, err)
	node, there, err := s.Setting(ctx, "node")
	say("setting", fmt.Sprint(node, there), err)
	audit, err := s.AuditLog(ctx, 0, 500)
	say("audit", audit, err)
	notices, err := s.NoticeList(ctx, time.UnixMilli(1767225600123))
	say("notices", notices, err)
	return append(lines, storetest.Contents(t, s)...)
}

// goesOn works in a store that was migrated: keys hold until they expire, no number comes
// twice, what was leased runs out and is tried again.
func goesOn(t *testing.T, s store.Store, now time.Time, m store.Marks) {
	t.Helper()
	send := func(id string, at time.Time) store.Outcome {
		t.Helper()
		out, err := s.Accept(t.Context(), store.Arrival{Source: "pagos", ReceivedAt: at, Header: []byte(`{}`),
			Events: []store.Event{{ID: id, Part: -1, Window: time.Hour, Jobs: []store.NewJob{{Destination: "new", Key: id, State: store.Queued}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	if out := send("gone", now); out.Kind != store.Duplicate || out.Delivery != m.Delivery {
		t.Errorf("an event whose row is gone: %+v", out)
	}
	if out := send("dead", now.Add(30*time.Hour-time.Millisecond)); out.Kind != store.Duplicate || out.Delivery != 2 {
		t.Errorf("a repeat just before its key expires: %+v", out)
	}
	if ran, err := s.Expire(t.Context(), now.Add(time.Hour+time.Millisecond)); err != nil || ran["app"] != 1 {
		t.Errorf("leases that ran out: %v %v", ran, err)
	}
	out := send("dead", now.Add(30*time.Hour))
	if out.Kind != store.Accepted || out.Delivery != m.Delivery+1 {
		t.Errorf("a repeat once its key has expired: %+v, want a delivery #%d", out, m.Delivery+1)
	}
	l, err := s.Lease(t.Context(), store.LeaseQuery{Destination: "new", Owner: "n/r/http", Max: 1, TTL: time.Minute, Now: now.Add(31 * time.Hour)})
	if err != nil || len(l) != 1 || l[0].Job <= m.Job {
		t.Fatalf("leased %+v %v; job numbers up to %d were given out", l, err, m.Job)
	}
	if tries, err := s.Attempts(t.Context(), out.Delivery); err != nil || len(tries) != 1 || tries[0].ID <= m.Attempt {
		t.Errorf("%+v %v; attempt numbers up to %d were given out", tries, err, m.Attempt)
	}
	if err := s.Reject(t.Context(), store.Rejection{Source: "pagos", Reason: "too_large", At: now}); err != nil {
		t.Fatal(err)
	}
	if list, err := s.RejectionList(t.Context(), "", 0, 1); err != nil || list[0].ID <= m.Rejection {
		t.Errorf("%+v %v; rejection numbers up to %d were given out", list, err, m.Rejection)
	}
	if problems, err := s.Check(t.Context(), true); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// TestMigrateCommandThereAndBack is the way a person goes, over the built binary.
func TestMigrateCommandThereAndBack(t *testing.T) {
	t.Parallel()
	app := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Acuse-Event-Id") == "evt_gone" {
			w.WriteHeader(http.StatusGone)
		}
	})
	yaml := stripe("app") + "destinations:\n" + destination("app", app.URL)
	p := begin(t, "store: sqlite\n"+yaml)
	body := load.Body("evt_1", time.Now())
	p.post("stripe", body).is(t, 200, `"status":"accepted"`)
	p.event("evt_gone")
	until(t, "both are settled", func() bool { return p.delivery(1).State == "delivered" && p.delivery(2).State == "dead" })
	p.must("POST", p.in("stripe"), body).is(t, 401)
	p.cli("user", "add", "ana", "--role", "owner")
	whole := func() string {
		var b strings.Builder
		for _, path := range []string{"/api/v1/deliveries", "/api/v1/deliveries/1", "/api/v1/deliveries/1/body", "/api/v1/deliveries/2", "/api/v1/dead", "/api/v1/rejections"} {
			r := p.api("GET", path, nil)
			r.is(t, 200)
			b.Write(r.Body)
		}
		return b.String() + p.cli("user", "list").out
	}
	want := whole()
	p.cli("migrate", "--from", "sqlite", "--to", "bbolt").is(t, 1, "acuse is running on that folder")
	for i, way := range engines {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		p.cli("migrate", "--from", way[0], "--to", way[1]).is(t, 0, way[1], "now set store: "+way[1])
		if err := p.Start(); err == nil {
			t.Fatalf("%s began an empty archive beside that of %s", way[0], way[1])
		}
		p.configure("store: " + way[1] + "\n" + yaml)
		p.start()
		if got := whole(); got != want {
			t.Fatalf("in %s\n%s\nwant\n%s", way[1], got, want)
		}
		p.post("stripe", body).is(t, 200, `"status":"duplicate"`)
		if id := p.event(fmt.Sprint("evt_next", i)); id != int64(3+i) {
			t.Errorf("number %d, want %d", id, 3+i)
		}
		until(t, "the new one is delivered", func() bool { return p.delivery(int64(3+i)).State == "delivered" })
		want = whole()
	}
	if app.times("evt_1") != 1 {
		t.Errorf("the first event was delivered %d times", app.times("evt_1"))
	}
}

// TestWhatIsReplacedIsNeverWrittenOver replaces the data of a folder three times within
// a second: each archive that was there stays.
func TestWhatIsReplacedIsNeverWrittenOver(t *testing.T) {
	t.Parallel()
	dir, s := archive(t, "sqlite")
	put(t, s, "a")
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := errors.Join(s.Backup(t.Context(), file), s.Close()); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for range 3 {
		c, err := restore(t.Context(), cli.RestoreOptions{File: file, Dir: dir, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, c.Replaced...)
	}
	slices.Sort(kept)
	if kept = slices.Compact(kept); len(kept) != 3 {
		t.Fatalf("kept under %v", kept)
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, keep.DataFile("sqlite"))); err != nil {
		t.Error(err)
	}
}
