package access

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"acuse/store"
	"acuse/store/sqlite"
)

// TestAccessOverTheRealStore walks once through everything that is kept, and opens the
// file again in between: what was revoked, redeemed or changed stays so.
func TestAccessOverTheRealStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	c := newClock()
	open := func() (store.Store, *Users, *Tokens, *SessionStore) {
		db, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return db, NewUsers(UsersOptions{Accounts: db, Now: c.now}), NewTokens(TokensOptions{Accounts: db, Now: c.now}), NewSessionStore(db, c.now)
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	db, users, tokens, sessions := open()
	empty, err := users.Empty(t.Context())
	if err != nil || !empty {
		t.Fatalf("a new file has people: %v, %v", empty, err)
	}
	link, _, err := users.NewSetupLink(t.Context())
	must("setup link", err)
	must("redeem", users.RedeemSetup(t.Context(), link))
	must("create", users.Create(t.Context(), "ana", good, RoleOwner))
	kept, _, err := tokens.Create(t.Context(), "ci", "bot", []string{"read", "pull:app"}, t0.Add(time.Hour))
	must("token", err)
	gone, tok, err := tokens.Create(t.Context(), "old", "", []string{"read"}, time.Time{})
	must("token", err)
	must("revoke", tokens.Revoke(t.Context(), tok.ID))
	must("session", sessions.CommitCtx(t.Context(), "cookie", []byte("data"), t0.Add(time.Hour)))
	must("close", db.Close())

	db, users, tokens, sessions = open()
	defer func() { must("close", db.Close()) }()
	if err := users.RedeemSetup(t.Context(), link); !errors.Is(err, ErrSetupLink) {
		t.Errorf("a used link after a restart: %v", err)
	}
	p, err := users.Login(t.Context(), "ana", good, home)
	if err != nil || p.Role != RoleOwner {
		t.Errorf("login: %+v, %v", p, err)
	}
	g, err := tokens.Check(request("Bearer " + kept))
	if err != nil || g.Agent != "bot" || !g.May("pull:app") || g.May(Body) {
		t.Errorf("token: %+v, %v", g, err)
	}
	if _, err := tokens.Check(request("Bearer " + gone)); !errors.Is(err, ErrBadToken) {
		t.Errorf("a revoked token: %v", err)
	}
	if b, ok, err := sessions.FindCtx(t.Context(), "cookie"); err != nil || !ok || string(b) != "data" {
		t.Errorf("session: %q, %v, %v", b, ok, err)
	}
	c.add(2 * time.Hour)
	if _, err := tokens.Check(request("Bearer " + kept)); !errors.Is(err, ErrBadToken) {
		t.Errorf("an expired token: %v", err)
	}
	must("delete", sessions.DeleteCtx(t.Context(), "cookie"))
	must("delete again", sessions.DeleteCtx(t.Context(), "cookie"))
	if err := users.Remove(t.Context(), "ana"); !errors.Is(err, ErrLastOwner) {
		t.Errorf("the last owner: %v", err)
	}
}
