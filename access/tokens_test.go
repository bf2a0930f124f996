package access

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/store"
)

func request(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/deliveries", nil)
	for _, v := range authorization {
		r.Header.Add("Authorization", v)
	}
	return r
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	m, c := newMemory(), newClock()
	tokens := NewTokens(TokensOptions{Accounts: m, Now: c.now})
	secret, tok, err := tokens.Create(t.Context(), "ci", "", []string{"read"}, t0.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(secret, "acuse_") || len(secret) < 32 {
		t.Errorf("secret of %d characters", len(secret))
	}
	if bytes.Contains(tok.Hash, []byte(secret)) || strings.Contains(tok.ID, secret) {
		t.Error("the record holds the secret")
	}
	g, err := tokens.Check(request("Bearer " + secret))
	if err != nil || g.Name != "ci" || g.Agent != "ci" || !g.May(Read) || g.May(Body) {
		t.Errorf("got %+v, %v", g, err)
	}
	if _, err := tokens.Check(request("bearer  " + secret)); err != nil {
		t.Errorf("the scheme's case and a second space matter: %v", err)
	}
	c.add(time.Hour)
	if _, err := tokens.Check(request("Bearer " + secret)); !errors.Is(err, ErrBadToken) {
		t.Errorf("expired: got %v", err)
	}
}

func TestTokenIsRefused(t *testing.T) {
	t.Parallel()
	m := newMemory()
	tokens := NewTokens(TokensOptions{Accounts: m, AdminToken: "admin-secret-admin-secret"})
	secret, tok, err := tokens.Create(t.Context(), "ci", "bot", []string{"read"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	inQuery := httptest.NewRequest(http.MethodGet, "/api/v1/deliveries?access_token="+secret+"&token="+secret, nil)
	for name, c := range map[string]struct {
		r    *http.Request
		want error
	}{
		"no header":           {request(), ErrNoToken},
		"a query string":      {inQuery, ErrNoToken},
		"another scheme":      {request("Basic " + secret), ErrNoToken},
		"the bare secret":     {request(secret), ErrNoToken},
		"an empty secret":     {request("Bearer "), ErrNoToken},
		"two headers":         {request("Bearer x", "Bearer "+secret), ErrNoToken},
		"an unknown secret":   {request("Bearer " + secret + "x"), ErrBadToken},
		"part of the admin's": {request("Bearer admin-secret"), ErrBadToken},
	} {
		if _, err := tokens.Check(c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if err := tokens.Revoke(t.Context(), tok.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Check(request("Bearer " + secret)); !errors.Is(err, ErrBadToken) {
		t.Errorf("revoked: got %v", err)
	}
	if err := tokens.Revoke(t.Context(), tok.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("revoked twice: got %v", err)
	}
}

func TestAdminTokenHasEveryScopeButApprove(t *testing.T) {
	t.Parallel()
	tokens := NewTokens(TokensOptions{Accounts: newMemory(), AdminToken: "admin-secret-admin-secret"})
	g, err := tokens.Check(request("Bearer admin-secret-admin-secret"))
	if err != nil || !g.May(Admin) || !g.May("effects:x") || g.May(Approve) || g.Agent != "admin" {
		t.Errorf("got %+v, %v", g, err)
	}
	none := NewTokens(TokensOptions{Accounts: newMemory()})
	if _, err := none.Check(request("Bearer ")); !errors.Is(err, ErrNoToken) {
		t.Errorf("an empty admin token matches: %v", err)
	}
}

func TestCreateRefusesScopesThatAskAndApprove(t *testing.T) {
	t.Parallel()
	m := newMemory()
	tokens := NewTokens(TokensOptions{Accounts: m, Now: newClock().now})
	for name, scopes := range map[string][]string{
		"effects and approve": {"effects", "approve"}, "admin and approve": {"admin", "approve"}, "none": nil,
	} {
		if _, _, err := tokens.Create(t.Context(), "ci", "", scopes, time.Time{}); !errors.Is(err, ErrScopes) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, _, err := tokens.Create(t.Context(), "a\nb", "", []string{"read"}, time.Time{}); !errors.Is(err, ErrName) {
		t.Errorf("a name with a line break: got %v", err)
	}
	if _, _, err := tokens.Create(t.Context(), "ci", "", []string{"read"}, t0); err == nil {
		t.Error("a token that has expired is made")
	}
	if len(m.tokens) != 0 {
		t.Errorf("%d tokens kept", len(m.tokens))
	}
}

func TestLastUseIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	m, c := newMemory(), newClock()
	tokens := NewTokens(TokensOptions{Accounts: m, Now: c.now})
	secret, tok, err := tokens.Create(t.Context(), "ci", "", []string{"read"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		if _, err := tokens.Check(request("Bearer " + secret)); err != nil {
			t.Error(err)
		}
	}
	for range 60 { // one a second: at 0 and at 59 s it is the same minute
		check()
		c.add(time.Second)
	}
	if m.puts != 2 {
		t.Errorf("%d writes in the first minute, want the creation and one use", m.puts)
	}
	check()
	if m.puts != 3 || !m.tokens[tok.ID].LastUsed.Equal(t0.Add(time.Minute)) {
		t.Errorf("%d writes, last used %v", m.puts, m.tokens[tok.ID].LastUsed)
	}
	m.fail = store.ErrUnavailable
	c.add(time.Hour)
	check() // a full disk is no reason to refuse
}

func TestARevokedTokenStaysRevoked(t *testing.T) {
	t.Parallel()
	m := newMemory()
	tokens := NewTokens(TokensOptions{Accounts: m})
	secret, tok, err := tokens.Create(t.Context(), "ci", "", []string{"read"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	// A use that was read before the revocation and is written after it.
	if err := tokens.Revoke(t.Context(), tok.ID); err != nil {
		t.Fatal(err)
	}
	tokens.touch(t.Context(), tok)
	if _, err := tokens.Check(request("Bearer " + secret)); !errors.Is(err, ErrBadToken) {
		t.Errorf("got %v", err)
	}
}

func TestTokensTogether(t *testing.T) {
	t.Parallel()
	tokens := NewTokens(TokensOptions{Accounts: newMemory()})
	secret, _, err := tokens.Create(t.Context(), "ci", "", []string{"read"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := tokens.Check(request("Bearer " + secret)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
