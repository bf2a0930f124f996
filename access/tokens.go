package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"acuse/store"
)

// The errors of a bearer check.
var (
	// ErrNoToken reports a request without an Authorization: Bearer header.
	ErrNoToken = errors.New("access: no token")
	// ErrBadToken reports a token that is unknown, revoked or expired.
	ErrBadToken = errors.New("access: token not accepted")
)

// secretPrefix makes a leaked token recognisable to secret scanners.
const secretPrefix = "acuse_"

// touchEvery is how often at most the last use of a token is written down.
const touchEvery = time.Minute

// TokensOptions configure Tokens.
type TokensOptions struct {
	Accounts   store.Accounts
	AdminToken string           // ACUSE_ADMIN_TOKEN; empty: there is none
	Now        func() time.Time // default time.Now
}

// Tokens makes and checks bearer tokens. Every token must be made and revoked
// through one Tokens, so that a use written late cannot bring a revoked one back.
type Tokens struct {
	accounts store.Accounts
	admin    []byte // digest; nil: none
	now      func() time.Time

	mu      sync.Mutex           // held over every write of a token
	touched map[string]time.Time // when the last use of a token was last written
}

// NewTokens returns Tokens over the accounts.
func NewTokens(o TokensOptions) *Tokens {
	t := &Tokens{accounts: o.Accounts, now: o.Now, touched: map[string]time.Time{}}
	if t.now == nil {
		t.now = time.Now
	}
	if o.AdminToken != "" {
		t.admin = digest(o.AdminToken)
	}
	return t
}

// Check reads the bearer token of a request, from the Authorization header alone:
// a token in a query string would stand in logs. ErrNoToken, ErrBadToken, or an
// error of the store.
func (t *Tokens) Check(r *http.Request) (Grant, error) {
	secret, ok := bearer(r.Header)
	if !ok {
		return Grant{}, ErrNoToken
	}
	hash := digest(secret)
	if t.admin != nil && subtle.ConstantTimeCompare(hash, t.admin) == 1 {
		return Grant{ID: "admin", Name: "admin", Agent: "admin", Scopes: []string{Admin}}, nil
	}
	tok, err := t.live(r.Context(), hash)
	if err != nil {
		return Grant{}, err
	}
	t.touch(r.Context(), tok)
	return grantOfToken(tok), nil
}

// live finds a token by digest. The look-up is by the digest of what the caller
// sent, so its timing tells nothing about a kept secret.
func (t *Tokens) live(ctx context.Context, hash []byte) (store.Token, error) {
	tok, err := t.accounts.TokenByHash(ctx, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Token{}, ErrBadToken
	case err != nil:
		return store.Token{}, fmt.Errorf("check token: %w", err)
	case subtle.ConstantTimeCompare(hash, tok.Hash) != 1:
		return store.Token{}, ErrBadToken
	case !tok.Expires.IsZero() && !t.now().Before(tok.Expires):
		return store.Token{}, ErrBadToken
	}
	return tok, nil
}

// touch writes the last use. A failure is no reason to refuse the caller: the
// field is for people who look for tokens that nobody uses.
func (t *Tokens) touch(ctx context.Context, tok store.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if now.Sub(tok.LastUsed) < touchEvery || now.Sub(t.touched[tok.ID]) < touchEvery {
		return
	}
	cur, err := t.accounts.TokenByHash(ctx, tok.Hash) // it may be revoked by now
	if err != nil {
		return
	}
	t.touched[tok.ID] = now
	cur.LastUsed = now
	_ = t.accounts.PutToken(ctx, cur)
}

// Create makes a token and returns its secret, which is shown once and not kept.
// A zero expires is never. The error wraps ErrScopes for scopes not allowed.
func (t *Tokens) Create(ctx context.Context, name, agent string, scopes []string, expires time.Time) (secret string, tok store.Token, err error) {
	if err := CheckScopes(scopes); err != nil {
		return "", store.Token{}, err
	}
	if err := checkName(name); err != nil {
		return "", store.Token{}, err
	}
	if agent != "" {
		if err := checkName(agent); err != nil {
			return "", store.Token{}, fmt.Errorf("agent: %w", err)
		}
	}
	if !expires.IsZero() && !expires.After(t.now()) {
		return "", store.Token{}, fmt.Errorf("%w: a token cannot have expired already", ErrName)
	}
	secret = secretPrefix + rand.Text()
	tok = store.Token{
		ID: strings.ToLower(rand.Text()[:12]), Name: name, Agent: agent, Hash: digest(secret),
		Scopes: scopes, CreatedAt: t.now().UTC(), Expires: expires,
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.accounts.PutToken(ctx, tok); err != nil {
		return "", store.Token{}, fmt.Errorf("create token %s: %w", name, err)
	}
	return secret, tok, nil
}

// List reads every token; their secrets are not kept.
func (t *Tokens) List(ctx context.Context) ([]store.Token, error) { return t.accounts.Tokens(ctx) }

// Revoke removes a token; it is refused from now on. ErrNotFound of the store.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.accounts.RemoveToken(ctx, id); err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	delete(t.touched, id)
	return nil
}

func grantOfToken(t store.Token) Grant {
	g := Grant{ID: t.ID, Name: t.Name, Agent: t.Agent, Scopes: t.Scopes}
	if g.Agent == "" {
		g.Agent = t.Name
	}
	return g
}

// bearer reads the one Authorization header; two of them are none.
func bearer(h http.Header) (secret string, ok bool) {
	v := h["Authorization"]
	if len(v) != 1 {
		return "", false
	}
	scheme, secret, ok := strings.Cut(v[0], " ")
	secret = strings.TrimSpace(secret)
	return secret, ok && strings.EqualFold(scheme, "Bearer") && secret != ""
}
