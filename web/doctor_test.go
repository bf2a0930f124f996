package web

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"acuse/provider"
	"acuse/store"
)

// watched is a store that tells of every rejection once it is written.
type watched struct {
	store.Store
	rejected chan store.Rejection
}

func (w *watched) Reject(ctx context.Context, r store.Rejection) error {
	err := w.Store.Reject(ctx, r)
	w.rejected <- r
	return err
}

func watch(t testing.TB) *watched { return &watched{openStore(t), make(chan store.Rejection, 1000)} }

// from is a source of a provider as main makes it.
func from(c *provider.Checker, name, prov string, o provider.Others) Source {
	return Source{Name: name, Provider: prov, Checker: c, Destinations: []Destination{{Name: "app"}},
		Diagnose: func(r *provider.Request, at time.Time) provider.Diagnosis { return c.Diagnose(r, at, o) },
		Besides: func(secret string, tolerance time.Duration) (Checker, error) {
			other, err := c.Besides(secret, tolerance)
			if err != nil {
				return nil, err
			}
			return other, nil
		}}
}

func TestARejectionIsDiagnosedApartFromItsAnswer(t *testing.T) {
	t.Parallel()
	db := watch(t)
	right := compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_right"}})
	wrong := compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_wrong"}})
	s := from(wrong, "stripe", "stripe", provider.Others{Sources: []provider.Neighbour{{Name: "shop", Checker: right}}})
	asked, go_on := make(chan struct{}), make(chan struct{})
	diagnose := s.Diagnose
	s.Diagnose = func(r *provider.Request, at time.Time) provider.Diagnosis {
		close(asked)
		<-go_on
		return diagnose(r, at)
	}
	e := newEdge(t, EdgeOptions{Inbox: db, Rejections: db}, s)
	body, h := stripeRequest(t, right, "evt_1", time.Now())
	if w := postStripe(e, body, h); w.Code != 401 { // P7: the diagnosis has not even begun to end
		t.Fatalf("%d", w.Code)
	}
	<-asked
	close(go_on)
	if r := <-db.rejected; r.Detail != "at=header:Stripe-Signature;cause=other_secret;source=shop;event=live" || r.Undiagnosed {
		t.Errorf("%q", r.Detail)
	}
}

func TestDiagnosesAreBoundedBySourceAndInAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &ring{}
		var list []Source
		for _, name := range strings.Split("abcdefgh", "") {
			s := signedSource(name)
			s.Diagnose = func(*provider.Request, time.Time) provider.Diagnosis {
				return provider.Diagnosis{Cause: provider.CannotTell}
			}
			list = append(list, s)
		}
		e := newEdge(t, EdgeOptions{Inbox: &inbox{}, Rejections: kept}, list...)
		count := func() (done int) {
			for _, r := range kept.rows {
				if !r.Undiagnosed {
					done++
				}
			}
			kept.rows = nil
			return done
		}
		send := func(source string, n int) {
			for range n {
				post(e, "/in/"+source, "{}", "X-Sig", "forged")
				synctest.Wait()
			}
		}
		send("a", 8)
		if n := count(); n != 2 {
			t.Errorf("%d of one source in one second", n)
		}
		time.Sleep(time.Second)
		for _, s := range list {
			send(s.Name, 3)
		}
		if n := count(); n != 10 {
			t.Errorf("%d in all in one second", n)
		}
	})
}

func TestSourcesThatAgreeOnAGapPointAtTheClock(t *testing.T) {
	t.Parallel()
	d := newDoctor()
	t0 := time.Unix(1800000000, 0)
	for _, one := range []struct {
		source string
		skew   time.Duration
		at     time.Duration
		want   int
	}{
		{"a", 14 * time.Minute, 0, 1}, {"a", 14 * time.Minute, time.Minute, 1}, {"b", 14*time.Minute + 30*time.Second, time.Minute, 2},
		{"c", -14 * time.Minute, time.Minute, 1}, {"d", 14 * time.Minute, 2 * time.Minute, 3}, {"e", 14 * time.Minute, time.Hour, 1},
	} {
		if n := d.agree(one.source, gap{one.skew, t0.Add(one.at)}); n != one.want {
			t.Errorf("%+v: %d", one, n)
		}
	}
}

func TestABugOfTheDoctorCostsACauseOnly(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	kept := &ring{}
	s := signedSource("g")
	s.Diagnose = func(*provider.Request, time.Time) provider.Diagnosis { panic("s3cret") }
	e := NewEdge(EdgeOptions{Inbox: &inbox{}, Rejections: kept, Log: slog.New(slog.NewTextHandler(&log, nil))})
	e.SetSources([]Source{s})
	post(e, "/in/g", "{}", "X-Sig", "forged")
	e.Close()
	if len(kept.rows) != 1 || !kept.rows[0].Undiagnosed {
		t.Errorf("%+v", kept.rows)
	}
	if !strings.Contains(log.String(), "diagnose: panic") || strings.Contains(log.String(), "s3cret") {
		t.Errorf("%s", log.String())
	}
}

// A body too large to be kept is diagnosed all the same, and not held when many wait.
func TestLargeBodiesAreDiagnosedAndNotKept(t *testing.T) {
	t.Parallel()
	kept := &ring{}
	seen := make(chan int, 100)
	s := signedSource("g")
	s.Diagnose = func(r *provider.Request, _ time.Time) provider.Diagnosis {
		seen <- len(r.Body)
		return provider.Diagnosis{Cause: provider.BodyChanged, How: "newline_added"}
	}
	e := NewEdge(EdgeOptions{Inbox: &inbox{}, Rejections: kept, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	e.SetSources([]Source{s})
	large := strings.Repeat("x", keptBody+1)
	post(e, "/in/g", large, "X-Sig", "forged")
	e.Close()
	if n := <-seen; n != len(large) {
		t.Errorf("%d bytes seen", n)
	}
	if r := kept.rows[0]; r.Body != nil || r.Detail != "cause=body_changed;how=newline_added" {
		t.Errorf("%q %d", r.Detail, len(r.Body))
	}
	r := &rejects{store: kept, queue: make(chan rejection, 64)}
	for range 20 {
		r.put(rejection{request: provider.Request{Body: make([]byte, 1<<20)}})
	}
	held := 0
	for range 20 {
		held += len((<-r.queue).request.Body)
	}
	if held != maxHeld || r.held.Load() != maxHeld {
		t.Errorf("%d bytes wait, %d counted", held, r.held.Load())
	}
}

// TestP9NoSecretInALogOrARejection: neither the tokens of a request nor those configured.
func TestP9NoSecretInALogOrARejection(t *testing.T) {
	t.Parallel()
	db := watch(t)
	var log lockedBuffer
	hidden := []string{"configured-token", "sent-token", "another-token", "given-token"}
	c := compiled(t, "gitlab", provider.Settings{Secrets: hidden[:1]})
	other := compiled(t, "gitlab", provider.Settings{Secrets: hidden[2:3]})
	e := newEdge(t, EdgeOptions{Inbox: db, Rejections: db, DigestKey: []byte("k"), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
		from(c, "git", "gitlab", provider.Others{Sources: []provider.Neighbour{{Name: "other", Checker: other}}}))
	post(e, "/in/git", `{"object_kind":"push"}`, "X-Gitlab-Token", "sent-token", "Authorization", "Bearer sent-token")
	post(e, "/in/git", `{"object_kind":"tag"}`, "X-Gitlab-Token", "another-token")
	for range 2 {
		<-db.rejected
	}
	r := NewRechecker(e, db)
	for _, secret := range []string{"given-token", "sent-token"} {
		if _, err := r.Recheck(t.Context(), Recheck{Source: "git", Secret: secret}); err != nil {
			t.Fatal(err)
		}
	}
	all := log.String()
	list, err := db.RejectionList(t.Context(), "", 0, 10)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v %+v", err, list)
	}
	for _, row := range list {
		full, err := db.RejectionByID(t.Context(), row.ID)
		if err != nil {
			t.Fatal(err)
		}
		all += full.Detail + full.Target + string(full.Header)
	}
	trail, err := db.AuditLog(t.Context(), 0, 10)
	if err != nil || len(trail) != 2 {
		t.Fatalf("%v %+v", err, trail)
	}
	for _, entry := range trail {
		all += entry.Subject + entry.Reason
	}
	for _, s := range hidden {
		if strings.Contains(all, s) {
			t.Errorf("%s stands in %s", s, all)
		}
	}
	if !bytes.Contains([]byte(all), []byte("cause=other_secret;source=other")) {
		t.Errorf("no diagnosis: %s", all)
	}
}
