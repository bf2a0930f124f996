// Package access knows who may do what: bearer tokens and their scopes, people
// and their passwords, browser sessions, the one-time setup link, and the guard
// against DNS rebinding. Secrets are kept as digests only.
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"acuse/store"
)

// The scopes of a token. Pull and Effects may be narrowed to one destination or
// one effect scope: "pull:app", "effects:stripe-api".
const (
	Read    = "read"    // lists, one delivery without its body, metrics
	Body    = "body"    // raw bodies
	Resend  = "resend"  // resend, cancel, release
	Pull    = "pull"    // lease, renew, ack, nack
	Effects = "effects" // ask for effects
	Approve = "approve" // approve and decide effects
	Admin   = "admin"   // everything but Approve
)

// ErrScopes reports a set of scopes that no token may have.
var ErrScopes = errors.New("access: scopes")

// Grant is what a caller may do. ID and Name are for the audit; Agent is the
// name under which effects are claimed.
type Grant struct {
	ID     string
	Name   string
	Agent  string
	Scopes []string
}

// Owner is the grant of whoever reached the Unix socket: the file's mode is the
// check. Approvals still need a login or a token of that scope.
var Owner = Grant{ID: "socket", Name: "socket", Agent: "admin", Scopes: []string{Admin}}

// May tells whether the grant allows scope. A wide scope allows the narrow one,
// never the other way round; Admin allows all but Approve.
func (g Grant) May(scope string) bool {
	if scope == "" {
		return false
	}
	wide, _, narrow := strings.Cut(scope, ":")
	for _, have := range g.Scopes {
		switch {
		case have == scope, narrow && have == wide:
			return true
		case have == Admin && wide != Approve:
			return true
		}
	}
	return false
}

// PersonGrant is what a person who logged in may do. The rule that parts asking
// for effects from approving them is for tokens: a person never claims effects.
func PersonGrant(u store.User) Grant {
	g := Grant{ID: "user:" + u.Name, Name: u.Name, Scopes: []string{Read}}
	switch u.Role {
	case RoleOwner:
		g.Scopes = []string{Admin, Approve}
	case RoleOperator:
		g.Scopes = []string{Read, Body, Resend, Approve}
	}
	return g
}

var scopeForm = regexp.MustCompile(`^(?:read|body|resend|approve|admin|(?:pull|effects)(?::[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?)$`)

// CheckScopes refuses unknown scopes, an empty set, and every set that could ask
// for an effect and approve it. The error wraps ErrScopes.
func CheckScopes(scopes []string) error {
	if len(scopes) == 0 {
		return fmt.Errorf("%w: at least one is needed", ErrScopes)
	}
	for i, s := range scopes {
		if !scopeForm.MatchString(s) {
			return fmt.Errorf("%w: %.40q is none of read, body, resend, pull[:destination], effects[:scope], approve, admin", ErrScopes, s)
		}
		if slices.Contains(scopes[:i], s) {
			return fmt.Errorf("%w: %s is named twice", ErrScopes, s)
		}
		if asks(s) && slices.Contains(scopes, Approve) {
			return fmt.Errorf("%w: no token holds %s and approve together", ErrScopes, s)
		}
	}
	return nil
}

// asks tells whether a scope lets its holder ask for effects.
func asks(scope string) bool {
	return scope == Admin || scope == Effects || strings.HasPrefix(scope, Effects+":")
}

type grantKey struct{}

// WithGrant returns a context that carries g.
func WithGrant(ctx context.Context, g Grant) context.Context {
	return context.WithValue(ctx, grantKey{}, g)
}

// GrantOf is the grant that a middleware put into the context.
func GrantOf(ctx context.Context) (Grant, bool) {
	g, ok := ctx.Value(grantKey{}).(Grant)
	return g, ok
}

func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
