package access

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"

	"acuse/store"
)

func TestSessionsAreKeptByDigest(t *testing.T) {
	t.Parallel()
	m, c := newMemory(), newClock()
	s := NewSessionStore(m, c.now)
	data, err := scs.GobCodec{}.Encode(t0.Add(time.Hour), map[string]any{SessionUser: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CommitCtx(t.Context(), "cookie-value", data, t0.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("cookie-value"))
	if kept, ok := m.sessions[hex.EncodeToString(sum[:])]; !ok || kept.User != "ana" || strings.Contains(string(kept.Data), "cookie-value") {
		t.Errorf("kept: %+v", m.sessions)
	}
	if b, ok, err := s.FindCtx(t.Context(), "cookie-value"); !ok || err != nil || string(b) != string(data) {
		t.Errorf("found %v, %v", ok, err)
	}
	for _, other := range []string{"", "another", hex.EncodeToString(sum[:])} {
		if _, ok, err := s.FindCtx(t.Context(), other); ok || err != nil {
			t.Errorf("%q: found %v, %v", other, ok, err)
		}
	}
	c.add(time.Hour)
	if _, ok, err := s.FindCtx(t.Context(), "cookie-value"); ok || err != nil {
		t.Errorf("after its end: %v, %v", ok, err)
	}
}

func TestEndedSessionsAreRemovedOnceAnHour(t *testing.T) {
	t.Parallel()
	m, c := newMemory(), newClock()
	s := NewSessionStore(m, c.now)
	commit := func(token string, life time.Duration) {
		if err := s.CommitCtx(t.Context(), token, nil, c.now().Add(life)); err != nil {
			t.Fatal(err)
		}
	}
	commit("a", time.Minute)
	c.add(30 * time.Minute)
	commit("b", time.Hour)
	if len(m.sessions) != 2 {
		t.Errorf("%d sessions within the hour", len(m.sessions))
	}
	c.add(31 * time.Minute)
	commit("c", time.Hour)
	if len(m.sessions) != 2 {
		t.Errorf("%d sessions after the hour, want b and c", len(m.sessions))
	}
	if err := s.DeleteCtx(t.Context(), "b"); err != nil || len(m.sessions) != 1 {
		t.Errorf("deleted: %v, %d left", err, len(m.sessions))
	}
	if err := s.Delete("b"); err != nil {
		t.Errorf("deleted twice: %v", err)
	}
}

func TestSessionManagerOverTheStore(t *testing.T) {
	t.Parallel()
	m := newMemory()
	sm := scs.New()
	sm.Store = NewSessionStore(m, nil)
	h := sm.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			if err := sm.RenewToken(r.Context()); err != nil {
				t.Error(err)
			}
			sm.Put(r.Context(), SessionUser, "ana")
		}
		_, _ = w.Write([]byte(sm.GetString(r.Context(), SessionUser)))
	}))
	login := httptest.NewRecorder()
	h.ServeHTTP(login, httptest.NewRequest(http.MethodPost, "/login", nil))
	cookies := login.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%d cookies", len(cookies))
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(cookies[0])
	page := httptest.NewRecorder()
	h.ServeHTTP(page, r)
	if page.Body.String() != "ana" {
		t.Errorf("the session is lost: %q", page.Body)
	}
	for _, s := range m.sessions {
		if s.User != "ana" || strings.Contains(s.ID, cookies[0].Value) {
			t.Errorf("kept: %+v", s)
		}
	}
}

func TestAStoreThatFailsIsNoMissingSession(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.fail = store.ErrUnavailable
	s := NewSessionStore(m, nil)
	if err := s.Commit("a", nil, time.Now().Add(time.Hour)); err == nil {
		t.Error("a session that was not written is committed")
	}
}
