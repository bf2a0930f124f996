package admin

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"acuse/access"
	"acuse/store"
)

type loginView struct {
	Name, Next, Error string
	Empty             bool // nobody can log in yet
}

func (a *Admin) loginForm(w http.ResponseWriter, r *http.Request) error {
	if visitOf(r.Context()).known {
		a.redirect(w, r, safePath(r.URL.Query().Get("next")))
		return nil
	}
	empty, err := a.opt.Users.Empty(r.Context())
	if err != nil {
		return err
	}
	if empty {
		a.redirect(w, r, "/setup")
		return nil
	}
	view := loginView{Next: safePath(r.URL.Query().Get("next"))}
	if r.URL.Query().Has("cookie") {
		view.Error = a.localeOf(r).T("login.cookie")
	}
	return a.showLogin(w, r, http.StatusOK, view)
}

func (a *Admin) showLogin(w http.ResponseWriter, r *http.Request, status int, v loginView) error {
	return a.show(w, r, status, "login", frame{Title: a.localeOf(r).T("login.title"), Help: "help.login", Body: v})
}

func (a *Admin) login(w http.ResponseWriter, r *http.Request) error {
	ctx, l := r.Context(), a.localeOf(r)
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	view := loginView{Name: r.PostForm.Get("name"), Next: safePath(r.PostForm.Get("next"))}
	u, err := a.opt.Users.Login(ctx, view.Name, r.PostForm.Get("password"), peer(r))
	var slow *access.Throttled
	switch {
	case errors.As(err, &slow):
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(slow.Wait.Seconds()))))
		view.Error = l.T("login.throttled", l.span(slow.Wait.Round(1e9)))
		return a.showLogin(w, r, http.StatusTooManyRequests, view)
	case errors.Is(err, access.ErrLogin):
		a.opt.Log.Warn("login refused", "from", peer(r))
		view.Error = l.T("login.wrong")
		return a.showLogin(w, r, http.StatusUnauthorized, view)
	case err != nil:
		return err
	}
	v := visitOf(ctx)
	if err := a.enter(ctx, v.sessions, u); err != nil {
		return err
	}
	a.note(ctx, store.AuditEntry{By: store.Actor{Name: u.Name, From: peer(r)}, Act: "login"})
	a.redirect(w, r, "/login/done?next="+url.QueryEscape(view.Next))
	return nil
}

// loginDone sees whether the browser kept the cookie: over plain http from another
// machine it does not, and says nothing.
func (a *Admin) loginDone(w http.ResponseWriter, r *http.Request) error {
	next := safePath(r.URL.Query().Get("next"))
	if !visitOf(r.Context()).known {
		next = "/login?cookie&next=" + url.QueryEscape(next)
	}
	a.redirect(w, r, next)
	return nil
}

func (a *Admin) logoutForm(w http.ResponseWriter, r *http.Request) error {
	return a.show(w, r, http.StatusOK, "logout", frame{Title: a.localeOf(r).T("account.logout"), Help: "help.login"})
}

func (a *Admin) logout(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r.Context())
	if err := v.sessions.Destroy(r.Context()); err != nil {
		return err
	}
	if v.known {
		a.note(r.Context(), store.AuditEntry{By: actor(r, v.grant), Act: "logout"})
	}
	a.redirect(w, r, "/login")
	return nil
}

// note writes an audit entry beside an act that has happened already: a failure is
// logged and does not undo it.
func (a *Admin) note(ctx context.Context, e store.AuditEntry) {
	e.At = a.opt.Now().UTC()
	if err := a.opt.Operator.Audit(context.WithoutCancel(ctx), e); err != nil {
		a.opt.Log.Error("audit", "act", e.Act, "err", err)
	}
}

// preferences keeps language and theme: in cookies for this browser, so that the
// first paint is right, and the language with the person too.
func (a *Admin) preferences(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	v := visitOf(r.Context())
	if code := r.PostForm.Get("language"); a.locales[code] != nil {
		a.keep(w, r, "acuse_language", code)
		if v.known {
			if err := a.opt.Users.SetLanguage(r.Context(), v.user.Name, code); err != nil {
				return err
			}
		}
	}
	switch theme := r.PostForm.Get("theme"); theme {
	case "light", "dark", "system":
		a.keep(w, r, "acuse_theme", theme)
	}
	a.redirect(w, r, safePath(r.PostForm.Get("next")))
	return nil
}

func (a *Admin) keep(w http.ResponseWriter, r *http.Request, name, value string) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: 400 * 24 * 3600,
		HttpOnly: true, Secure: a.isSecure(r), SameSite: http.SameSiteLaxMode})
}

type setupView struct {
	Open     bool // the form is shown
	Done     bool // somebody can log in already
	BadLink  bool
	Name     string
	Error    string
	Language string
}

// setup is page 1 of the first run. With ?t= the link's token becomes a cookie,
// once, and leaves the address bar; without either there is no form.
func (a *Admin) setup(w http.ResponseWriter, r *http.Request) error {
	ctx, v := r.Context(), visitOf(r.Context())
	if t := r.URL.Query().Get("t"); t != "" {
		return a.redeem(w, r, t)
	}
	empty, err := a.opt.Users.Empty(ctx)
	if err != nil {
		return err
	}
	return a.showSetup(w, r, http.StatusOK, setupView{Open: empty && v.setup, Done: !empty})
}

func (a *Admin) showSetup(w http.ResponseWriter, r *http.Request, status int, s setupView) error {
	s.Language = a.localeOf(r).code
	return a.show(w, r, status, "setup", frame{Title: a.localeOf(r).T("setup.title"), Help: "help.setup", Body: s})
}

// redeem exchanges the one-time token. Where somebody can log in already, whoever
// has the link read it on this machine and is the owner.
func (a *Admin) redeem(w http.ResponseWriter, r *http.Request, token string) error {
	ctx, v := r.Context(), visitOf(r.Context())
	err := a.opt.Users.RedeemSetup(ctx, token)
	if errors.Is(err, access.ErrSetupLink) {
		return a.showSetup(w, r, http.StatusForbidden, setupView{BadLink: true})
	}
	if err != nil {
		return err
	}
	list, err := a.opt.Users.List(ctx)
	if err != nil {
		return err
	}
	for _, u := range list {
		if u.Role != access.RoleOwner {
			continue
		}
		if err := a.enter(ctx, v.sessions, u); err != nil {
			return err
		}
		v.sessions.Put(ctx, keyLink, true)
		a.note(ctx, store.AuditEntry{By: store.Actor{Name: u.Name, From: peer(r)}, Act: "login", Reason: "setup link"})
		a.redirect(w, r, "/login/done?next=/")
		return nil
	}
	if err := v.sessions.RenewToken(ctx); err != nil {
		return err
	}
	v.sessions.Put(ctx, keySetup, true)
	v.sessions.SetDeadline(ctx, a.opt.Now().Add(access.SetupLife).UTC())
	a.redirect(w, r, "/setup")
	return nil
}

func (a *Admin) setupSave(w http.ResponseWriter, r *http.Request) error {
	ctx, v := r.Context(), visitOf(r.Context())
	empty, err := a.opt.Users.Empty(ctx)
	if err != nil {
		return err
	}
	if !empty || !v.setup {
		return a.showSetup(w, r, http.StatusForbidden, setupView{Done: !empty})
	}
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	code := r.PostForm.Get("language")
	if l := a.locales[code]; l != nil {
		a.keep(w, r, "acuse_language", code)
		r = r.WithContext(context.WithValue(r.Context(), chosenKey{}, l)) // this answer speaks it already
	}
	view := setupView{Open: true, Name: strings.TrimSpace(r.PostForm.Get("name"))}
	err = a.opt.Users.Create(ctx, view.Name, r.PostForm.Get("password"), access.RoleOwner)
	if key := accountError(err); key != "" {
		view.Error = a.localeOf(r).T(key)
		return a.showSetup(w, r, http.StatusUnprocessableEntity, view)
	}
	if err != nil {
		return err
	}
	if err := a.opt.Users.SetLanguage(ctx, view.Name, code); a.locales[code] != nil && err != nil {
		return err
	}
	u, err := a.opt.Accounts.UserByName(ctx, view.Name)
	if err != nil {
		return err
	}
	if err := a.enter(ctx, v.sessions, u); err != nil {
		return err
	}
	v.sessions.SetDeadline(ctx, a.opt.Now().Add(sessionLife).UTC())
	a.note(ctx, store.AuditEntry{By: store.Actor{Name: u.Name, From: peer(r)}, Act: "user.create", Subject: u.Name, Reason: "setup link"})
	a.redirect(w, r, "/login/done?next=/")
	return nil
}

// accountError is the key of the words for what a person can mend in a form.
func accountError(err error) string {
	switch {
	case errors.Is(err, access.ErrPassword):
		return "setup.error.password"
	case errors.Is(err, access.ErrName):
		return "setup.error.name"
	case errors.Is(err, access.ErrExists):
		return "setup.error.exists"
	}
	return ""
}
