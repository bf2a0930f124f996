package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"acuse/access"
	"acuse/store"
)

// Session keys beside access.SessionUser.
const (
	keyStamp = "stamp" // access.Stamp of the person at login: another password ends the session
	keySetup = "setup" // came by the setup link and has no name yet
	keyLink  = "link"  // logged in by a link: may set a password without the old one
	keyFlash = "flash"
)

const (
	sessionLife  = 14 * 24 * time.Hour
	sessionTouch = 13 * 24 * time.Hour // less left than this: prolonged, so once a day at most
)

// sessions makes the manager of one of the two cookies: __Host- and Secure, or the
// plain one for http on loopback, where browsers keep no Secure cookie.
func (a *Admin) sessions(secure bool) *scs.SessionManager {
	m := scs.New()
	m.Store = a.opt.Sessions
	m.Lifetime = sessionLife
	m.Cookie = scs.SessionCookie{Name: "acuse", Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Persist: true}
	if secure {
		m.Cookie.Name, m.Cookie.Secure = "__Host-acuse", true
	}
	m.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		a.fail(w, r, fmt.Errorf("session: %w", err))
	}
	return m
}

// manager picks the cookie of a request. No forwarded header has a say.
func (a *Admin) manager(r *http.Request) *scs.SessionManager {
	if a.isSecure(r) {
		return a.secure
	}
	return a.plain
}

func (a *Admin) isSecure(r *http.Request) bool {
	if r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://") || !loopback(r.Host) {
		return true
	}
	_, err := r.Cookie(a.secure.Cookie.Name)
	return err == nil
}

func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// visit is who looks: a person who logged in, or nobody yet.
type visit struct {
	sessions *scs.SessionManager
	user     store.User
	known    bool
	setup    bool // may make the first user
	grant    access.Grant
}

type visitKey struct{}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	if v == nil {
		return &visit{}
	}
	return v
}

// loadVisit reads the session's person anew on each request, so that a removed user
// or a changed password counts at once.
func (a *Admin) loadVisit(ctx context.Context, m *scs.SessionManager) (*visit, error) {
	v := &visit{sessions: m, setup: m.GetBool(ctx, keySetup)}
	name := m.GetString(ctx, access.SessionUser)
	if name == "" {
		return v, nil
	}
	u, err := a.opt.Accounts.UserByName(ctx, name)
	if errors.Is(err, store.ErrNotFound) || err == nil && m.GetString(ctx, keyStamp) != access.Stamp(u) {
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Deadline(ctx).Sub(a.opt.Now()) < sessionTouch {
		m.SetDeadline(ctx, a.opt.Now().Add(sessionLife).UTC())
	}
	v.user, v.known, v.grant = u, true, access.PersonGrant(u)
	return v, nil
}

// enter logs a person in under a new session token.
func (a *Admin) enter(ctx context.Context, m *scs.SessionManager, u store.User) error {
	if err := m.RenewToken(ctx); err != nil {
		return fmt.Errorf("new session: %w", err)
	}
	m.Remove(ctx, keySetup)
	m.Remove(ctx, keyLink)
	m.Put(ctx, access.SessionUser, u.Name)
	m.Put(ctx, keyStamp, access.Stamp(u))
	return nil
}

// actor is who stands in the audit for this request.
func actor(r *http.Request, g access.Grant) store.Actor {
	by := store.Actor{Name: g.Name, From: peer(r)}
	if g.ID == access.Owner.ID {
		by.From = ""
	}
	if !strings.HasPrefix(g.ID, "user:") && g.ID != access.Owner.ID {
		by.Name = "token " + g.Name
	}
	return by
}

// peer is the address of the connection, without its port.
func peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// flash keeps a message for the page that a POST redirects to.
func (v *visit) flash(ctx context.Context, role, text string) {
	v.sessions.Put(ctx, keyFlash, role+"|"+text)
}

func (v *visit) takeFlash(ctx context.Context) *flash {
	if v.sessions == nil {
		return nil
	}
	s := v.sessions.PopString(ctx, keyFlash)
	if s == "" {
		return nil
	}
	role, text, _ := strings.Cut(s, "|")
	return &flash{Role: role, Text: text}
}

type flash struct{ Role, Text string }
