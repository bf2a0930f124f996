package admin

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"time"

	"acuse/access"
	"acuse/store"
)

func (a *Admin) settings(w http.ResponseWriter, r *http.Request) error {
	a.redirect(w, r, "/settings/account")
	return nil
}

func (a *Admin) keyboard(w http.ResponseWriter, r *http.Request) error {
	return a.show(w, r, http.StatusOK, "keyboard", frame{Title: a.localeOf(r).T("keys.title"), Help: "help.keys"})
}

type accountView struct {
	Name, Role string
	Since      time.Time
	NeedsOld   bool
	Error      string
	Languages  []option
	Themes     []option
}

func (a *Admin) accountView(r *http.Request) accountView {
	l, v := a.localeOf(r), visitOf(r.Context())
	theme := themeOf(r)
	return accountView{Name: v.user.Name, Role: l.T("role." + v.user.Role), Since: v.user.CreatedAt,
		NeedsOld:  !v.sessions.GetBool(r.Context(), keyLink),
		Languages: []option{{"en", "English", l.code == "en"}, {"es", "Español", l.code == "es"}},
		Themes: []option{{"system", l.T("theme.system"), theme == ""}, {"light", l.T("theme.light"), theme == "light"},
			{"dark", l.T("theme.dark"), theme == "dark"}}}
}

func (a *Admin) account(w http.ResponseWriter, r *http.Request) error {
	return a.showAccount(w, r, http.StatusOK, a.accountView(r))
}

func (a *Admin) showAccount(w http.ResponseWriter, r *http.Request, status int, v accountView) error {
	l := a.localeOf(r)
	return a.show(w, r, status, "account", frame{Title: l.T("nav.account"), Nav: "/settings", Nav2: "/settings/account", Help: "help.account", Body: v})
}

// accountSave sets another password. It ends every other session of the person, as
// the stamp changes; this one goes on under a new token.
func (a *Admin) accountSave(w http.ResponseWriter, r *http.Request) error {
	ctx, l, v := r.Context(), a.localeOf(r), visitOf(r.Context())
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	view := a.accountView(r)
	if view.NeedsOld {
		_, err := a.opt.Users.Login(ctx, v.user.Name, r.PostForm.Get("old_password"), peer(r))
		var slow *access.Throttled
		switch {
		case errors.As(err, &slow):
			view.Error = l.T("login.throttled", l.span(slow.Wait.Round(time.Second)))
			return a.showAccount(w, r, http.StatusTooManyRequests, view)
		case errors.Is(err, access.ErrLogin):
			view.Error = l.T("account.old_wrong")
			return a.showAccount(w, r, http.StatusUnprocessableEntity, view)
		case err != nil:
			return err
		}
	}
	err := a.opt.Users.SetPassword(ctx, v.user.Name, r.PostForm.Get("new_password"))
	if key := accountError(err); key != "" {
		view.Error = l.T(key)
		return a.showAccount(w, r, http.StatusUnprocessableEntity, view)
	}
	if err != nil {
		return err
	}
	u, err := a.opt.Accounts.UserByName(ctx, v.user.Name)
	if err != nil {
		return err
	}
	if err := a.enter(ctx, v.sessions, u); err != nil {
		return err
	}
	a.note(ctx, store.AuditEntry{By: actor(r, v.grant), Act: "user.password", Subject: u.Name})
	v.flash(ctx, "ok", l.T("account.changed"))
	a.redirect(w, r, "/settings/account")
	return nil
}

type tokenRow struct {
	store.Token
	Scopes  string
	Expired bool
}

type tokensView struct {
	Rows   []tokenRow
	Scopes []option
	Name   string
	Agent  string
	Days   []option
	Error  string
	Secret string // shown once
	Made   string
}

var tokenScopes = []string{access.Read, access.Body, access.Resend, access.Pull, access.Admin}

func (a *Admin) tokensView(r *http.Request, f map[string][]string) (tokensView, error) {
	l := a.localeOf(r)
	list, err := a.opt.Tokens.List(r.Context())
	if err != nil {
		return tokensView{}, err
	}
	v := tokensView{Name: visible(first(f["name"]), false), Agent: visible(first(f["agent"]), false)}
	now := a.opt.Now()
	for _, t := range list {
		v.Rows = append(v.Rows, tokenRow{t, strings.Join(t.Scopes, ", "), !t.Expires.IsZero() && !now.Before(t.Expires)})
	}
	for _, s := range tokenScopes {
		on := false
		for _, have := range f["scope"] {
			on = on || have == s
		}
		v.Scopes = append(v.Scopes, option{s, l.T("scope." + s), on || len(f["scope"]) == 0 && s == access.Read})
	}
	for _, d := range []string{"30", "90", "365", "0"} {
		v.Days = append(v.Days, option{d, l.T("token.days_" + d), first(f["days"]) == d || len(f["days"]) == 0 && d == "90"})
	}
	return v, nil
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

func (a *Admin) tokens(w http.ResponseWriter, r *http.Request) error {
	v, err := a.tokensView(r, r.URL.Query())
	if err != nil {
		return err
	}
	if made, ok := a.made.take(r.URL.Query().Get("made"), visitOf(r.Context()).user.Name, a.opt.Now()); ok {
		v.Secret, v.Made = made.secret, made.name
	}
	return a.showTokens(w, r, http.StatusOK, v)
}

func (a *Admin) showTokens(w http.ResponseWriter, r *http.Request, status int, v tokensView) error {
	l := a.localeOf(r)
	return a.show(w, r, status, "tokens", frame{Title: l.T("nav.tokens"), Nav: "/settings", Nav2: "/settings/tokens", Help: "help.tokens", Body: v})
}

// tokenCreate shows the secret once, on the page that it redirects to.
func (a *Admin) tokenCreate(w http.ResponseWriter, r *http.Request) error {
	ctx, l := r.Context(), a.localeOf(r)
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	f, by := r.PostForm, actor(r, visitOf(ctx).grant)
	var expires time.Time
	if days := map[string]int{"30": 30, "90": 90, "365": 365}[f.Get("days")]; days > 0 {
		expires = a.opt.Now().UTC().AddDate(0, 0, days)
	}
	secret, t, err := a.opt.Tokens.Create(ctx, strings.TrimSpace(f.Get("name")), strings.TrimSpace(f.Get("agent")), f["scope"], expires)
	if errors.Is(err, access.ErrScopes) || errors.Is(err, access.ErrName) {
		v, err := a.tokensView(r, f)
		if err != nil {
			return err
		}
		v.Error = l.T("token.error")
		return a.showTokens(w, r, http.StatusUnprocessableEntity, v)
	}
	if err != nil {
		return err
	}
	a.note(ctx, store.AuditEntry{By: by, Act: "token.create", Subject: t.Name})
	a.redirect(w, r, "/settings/tokens?made="+a.made.put(secret, t.Name, by.Name, a.opt.Now()))
	return nil
}

func (a *Admin) tokenOf(r *http.Request) (store.Token, error) {
	list, err := a.opt.Tokens.List(r.Context())
	if err != nil {
		return store.Token{}, err
	}
	for _, t := range list {
		if t.ID == r.PathValue("id") {
			return t, nil
		}
	}
	return store.Token{}, store.ErrNotFound
}

func (a *Admin) tokenRevokeForm(w http.ResponseWriter, r *http.Request) error {
	l := a.localeOf(r)
	t, err := a.tokenOf(r)
	if err != nil {
		return err
	}
	return a.confirm(w, r, http.StatusOK, "/settings", confirmView{Title: l.T("token.revoke_title", t.Name), Text: l.T("token.revoke_text"),
		Button: l.T("token.revoke_button", t.Name), Danger: true, Back: "/settings/tokens"})
}

func (a *Admin) tokenRevoke(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	t, err := a.tokenOf(r)
	if err != nil {
		return err
	}
	if err := a.opt.Tokens.Revoke(ctx, t.ID); err != nil {
		return err
	}
	v := visitOf(ctx)
	a.note(ctx, store.AuditEntry{By: actor(r, v.grant), Act: "token.revoke", Subject: t.Name})
	v.flash(ctx, "ok", a.localeOf(r).T("token.revoked", t.Name))
	a.redirect(w, r, "/settings/tokens")
	return nil
}

// fact is a line of the about page.
type fact struct{ Label, Value string }

func (a *Admin) about(w http.ResponseWriter, r *http.Request) error {
	l, i, h := a.localeOf(r), a.opt.Info, a.opt.Health()
	facts := []fact{{l.T("about.version"), i.Version}, {l.T("about.commit"), i.Commit}, {l.T("about.build"), runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
		{l.T("about.engine"), h.Engine}, {l.T("about.data"), i.DataDir}}
	if h.Schema > 0 {
		facts = append(facts, fact{l.T("about.schema"), l.num(int64(h.Schema))})
	}
	if h.Bytes > 0 {
		facts = append(facts, fact{l.T("about.bytes"), l.size(h.Bytes)})
	}
	if h.Free > 0 {
		facts = append(facts, fact{l.T("about.free"), l.size(h.Free)})
	}
	if !i.StartedAt.IsZero() {
		facts = append(facts, fact{l.T("about.uptime"), l.span(a.opt.Now().Sub(i.StartedAt))})
	}
	if !h.Writable {
		facts = append(facts, fact{l.T("about.storage"), l.T("about.not_writable", visible(h.Err, false))})
	}
	shown := facts[:0]
	for _, f := range facts {
		if f.Value != "" {
			shown = append(shown, f)
		}
	}
	return a.show(w, r, http.StatusOK, "about", frame{Title: l.T("nav.about"), Nav: "/settings", Nav2: "/settings/about", Help: "help.about", Body: shown})
}
