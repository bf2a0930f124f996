package admin

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"acuse/access"
	"acuse/store"
)

// pages holds one set of templates a language: "top" and "bottom" are the layout,
// "page_NAME" what stands between them, the rest are parts.
type pages struct{ sets map[string]*template.Template }

// frame is what the layout shows around a page; Body is the page's own.
type frame struct {
	L       *locale
	Theme   string // light, dark, or empty for the system's
	Title   string
	Nav     string // path of the entry that is current
	Nav2    string // likewise within Settings
	User    string
	Known   bool
	MayBody bool
	MayAct  bool // resend, cancel, release
	MayAll  bool
	Dead    int64
	Refused int64
	Disk    *disk
	Down    bool // storage refuses writes
	Flash   *flash
	Here    string // path and query, for forms that come back
	Now     time.Time
	Zone    string
	Version string
	DocsURL string
	Help    string // key of "what does this page show?"
	Live    bool   // the page takes part in live changes
	Body    any
}

// disk is shown once the volume is filled to 80 %.
type disk struct {
	Percent int
	Free    int64
}

// fails is the errors of pages that are answered with words of their own.
var (
	errMethod    = errors.New("admin: method not allowed")
	errLogin     = errors.New("admin: not logged in")
	errForbidden = errors.New("admin: not allowed")
	errBadForm   = errors.New("admin: form not understood")
	errAbsent    = errors.New("admin: not part of this installation")
)

func (a *Admin) parsePages() (*pages, error) {
	p := &pages{sets: map[string]*template.Template{}}
	for code, l := range a.locales {
		set, err := template.New("").Funcs(a.funcs(l)).ParseFS(a.opt.Files, "templates/*.html")
		if err != nil {
			return nil, fmt.Errorf("templates: %w", err)
		}
		p.sets[code] = set
	}
	return p, nil
}

// funcs are bound to a language, so that templates only name keys.
func (a *Admin) funcs(l *locale) template.FuncMap {
	return template.FuncMap{
		"t": l.T, "b": l.B, "n": func(key string, n any, args ...any) string { return l.N(key, whole(n), args...) },
		"num": func(n any) string { return l.num(whole(n)) }, "size": func(n any) string { return l.size(whole(n)) }, "span": l.span, "full": l.full,
		"lang": func() string { return l.code },
		"href": a.link,
		"asset": func(file string) (string, error) {
			name, err := a.assets.name(file)
			return a.link("/static/" + name), err
		},
		"icon":  func(name string) (template.HTML, error) { return a.icon(name) },
		"iso":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
		"at":    func(t, now time.Time) string { return l.at(t, now, "15:04:05") },
		"ago":   l.ago,
		"soft":  soft,
		"text":  func(s string) string { return visible(s, false) },
		"short": func(n int, s string) string { return short(s, n) },
		"query": url.QueryEscape,
		"path":  url.PathEscape,
		"kv":    kv,
	}
}

// whole takes the whole numbers that views hold.
func whole(n any) int64 {
	if i, ok := n.(int); ok {
		return int64(i)
	}
	i, _ := n.(int64)
	return i
}

// soft lets a long name break after its dots and dashes, and nowhere else if it can.
func soft(s string) template.HTML {
	var b strings.Builder
	for i, part := range strings.FieldsFunc(softBreaks.Replace(s), func(r rune) bool { return r == 0 }) {
		if i > 0 {
			b.WriteString("<wbr>")
		}
		b.WriteString(template.HTMLEscapeString(part))
	}
	return template.HTML(b.String()) // every part is escaped
}

var softBreaks = strings.NewReplacer(".", ".\x00", "_", "_\x00", "-", "-\x00", "/", "/\x00", ":", ":\x00")

// kv hands several values to a part: {{template "x" kv "A" 1 "B" 2}}.
func kv(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	if len(pairs)%2 != 0 {
		return nil, errors.New("kv: odd number of values")
	}
	for i := 0; i < len(pairs); i += 2 {
		k, ok := pairs[i].(string)
		if !ok {
			return nil, errors.New("kv: a name is no text")
		}
		m[k] = pairs[i+1]
	}
	return m, nil
}

// icon refers to a symbol of the sprite. Icons only accompany words.
func (a *Admin) icon(name string) (template.HTML, error) {
	if !a.icons[name] {
		return "", fmt.Errorf("no icon %q", name)
	}
	sprite, err := a.assets.name("icons.svg")
	if err != nil {
		return "", err
	}
	return template.HTML(`<svg class="i" aria-hidden="true"><use href="` + a.link("/static/"+sprite) + `#` + name + `"/></svg>`), nil
}

// page wraps a page's route: session, person, scope, and words for every error.
func (a *Admin) page(rt route) http.Handler {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := a.loadVisit(r.Context(), a.manager(r))
		if err == nil {
			r = r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
			err = a.allow(v, rt)
		}
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
			err = rt.handle(w, r)
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.manager(r).LoadAndSave(h).ServeHTTP(w, r)
	})
}

func (a *Admin) allow(v *visit, rt route) error {
	switch {
	case rt.scope == "":
		return nil
	case !v.known:
		return errLogin
	case !v.grant.May(rt.scope):
		return errForbidden
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// show renders a page whole before a byte leaves, so that an error never cuts one.
func (a *Admin) show(w http.ResponseWriter, r *http.Request, status int, name string, f frame) error {
	l := a.localeOf(r)
	a.frame(r, l, &f)
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	for _, part := range []string{"top", "page_" + name, "bottom"} {
		if err := a.pages.sets[l.code].ExecuteTemplate(buf, part, &f); err != nil {
			return fmt.Errorf("page %s: %w", name, err)
		}
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", l.code)
	var gz []byte
	if buf.Len() > 1400 {
		gz = squeezePage(buf.Bytes())
	}
	send(w, r, status, buf.Bytes(), gz)
	return nil
}

func (a *Admin) frame(r *http.Request, l *locale, f *frame) {
	ctx := r.Context()
	v := visitOf(ctx)
	f.L, f.Now, f.Zone = l, a.opt.Now(), a.opt.Zone.String()
	if f.Zone == "Local" {
		f.Zone = f.Now.In(a.opt.Zone).Format("MST")
	}
	f.Theme, f.Here = themeOf(r), r.URL.RequestURI()
	f.Here = strings.TrimPrefix(f.Here, a.base)
	f.Version, f.DocsURL = a.opt.Info.Version, webLink(a.opt.Info.DocsURL)
	if !v.known {
		return
	}
	f.User, f.Known = v.user.Name, true
	f.MayBody, f.MayAct, f.MayAll = v.grant.May(access.Body), v.grant.May(access.Resend), v.grant.May(access.Admin)
	if f.Flash == nil {
		f.Flash = v.takeFlash(ctx)
	}
	// The badges are a kindness: a page does not fail because of them.
	if t, err := a.opt.Archive.Totals(ctx); err == nil {
		f.Dead = t.Dead
	}
	if n, err := a.opt.Rejections.RejectionsSince(ctx, f.Now.Add(-24*time.Hour)); err == nil {
		f.Refused = n
	}
	f.Down = !a.opt.Health().Writable
	if free, total := a.opt.Disk(); total > 0 && free >= 0 && free <= total {
		if p := int(100 * (total - free) / total); p >= 80 {
			f.Disk = &disk{Percent: p, Free: free}
		}
	}
}

// webLink lets only http and https through.
func webLink(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	return s
}

// chosenKey marks the language that this very request chose.
type chosenKey struct{}

// localeOf is the person's choice, then this browser's, then what it asks for.
func (a *Admin) localeOf(r *http.Request) *locale {
	if l, ok := r.Context().Value(chosenKey{}).(*locale); ok {
		return l
	}
	if l := a.locales[visitOf(r.Context()).user.Language]; l != nil {
		return l
	}
	if c, err := r.Cookie("acuse_language"); err == nil && a.locales[c.Value] != nil {
		return a.locales[c.Value]
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		base, _, _ := strings.Cut(strings.ToLower(tag), "-")
		if l := a.locales[base]; l != nil {
			return l
		}
	}
	return a.locales[a.opt.Language]
}

func themeOf(r *http.Request) string {
	if c, err := r.Cookie("acuse_theme"); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// problemView is an error page: what, why as far as known, what to do next.
type problemView struct {
	Status           int
	What, Why, Next  string
	Login            bool // the form to log in again stands on the page
	Search           bool
	LoginView        loginView
	LinkHref, LinkTo string
}

// fail answers an error in words. Only causes that are ours are logged, once, under
// an id that the page shows too.
func (a *Admin) fail(w http.ResponseWriter, r *http.Request, err error) {
	l := a.localeOf(r)
	if errors.Is(err, errLogin) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		a.redirect(w, r, "/login?next="+url.QueryEscape(strings.TrimPrefix(r.URL.RequestURI(), a.base)))
		return
	}
	p := problemView{}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errLogin):
		p.Status, p.What, p.Login = http.StatusForbidden, l.T("err.session.what"), true
		p.LoginView = loginView{Next: a.formAgain(r)}
	case errors.Is(err, errForbidden):
		p.Status, p.What, p.Why, p.Next = http.StatusForbidden, l.T("err.403.what"), l.T("err.403.why"), l.T("err.403.next")
	case errors.Is(err, store.ErrNotFound):
		p.Status, p.What, p.Why, p.Search = http.StatusNotFound, l.T("err.404.what"), l.T("err.404.why"), visitOf(r.Context()).known
	case errors.Is(err, errMethod):
		p.Status, p.What, p.Why, p.Next = http.StatusMethodNotAllowed, l.T("err.405.what"), l.T("err.405.why"), l.T("err.405.next")
	case errors.Is(err, errBadForm), errors.As(err, &tooLarge):
		p.Status, p.What, p.Why, p.Next = http.StatusBadRequest, l.T("err.400.what"), l.T("err.400.why"), l.T("err.400.next")
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrClosed):
		p.Status, p.What, p.Why, p.Next = http.StatusServiceUnavailable, l.T("err.503.what"), l.T("err.503.why"), l.T("err.503.next")
		w.Header().Set("Retry-After", "10")
		a.opt.Log.Warn("page", "path", r.URL.Path, "err", err)
	case r.Context().Err() != nil:
		return // the browser left
	default:
		id := strings.ToLower(rand.Text()[:8])
		p.Status, p.What, p.Why, p.Next = http.StatusInternalServerError, l.T("err.500.what"), l.T("err.500.why", id), l.T("err.500.next")
		a.opt.Log.Error("page", "id", id, "path", r.URL.Path, "err", err)
	}
	if err := a.show(w, r, p.Status, "error", frame{Title: p.What, Body: p}); err != nil {
		a.opt.Log.Error("page", "path", r.URL.Path, "err", err)
		http.Error(w, p.What, p.Status)
	}
}

// formAgain is the address under which the form that was sent can be seen again,
// filled: every form stands at the path it posts to. Passwords and secrets are not kept.
func (a *Admin) formAgain(r *http.Request) string {
	to := strings.TrimPrefix(r.URL.Path, a.base)
	if r.ParseForm() != nil {
		return to
	}
	keep := url.Values{}
	for k, vs := range r.PostForm {
		if !strings.Contains(k, "password") && !strings.Contains(k, "secret") {
			keep[k] = vs
		}
	}
	if q := keep.Encode(); q != "" && len(q) < 4096 {
		to += "?" + q
	}
	return to
}

func (a *Admin) crossOrigin(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, a.base+"/api/") {
		a.apiCrossOrigin(w)
		return
	}
	l := a.localeOf(r)
	f := frame{Title: l.T("err.cross.what"), Body: problemView{Status: http.StatusForbidden, What: l.T("err.cross.what"), Why: l.T("err.cross.why"), Next: l.T("err.cross.next")}}
	if err := a.show(w, r, http.StatusForbidden, "error", f); err != nil {
		http.Error(w, f.Title, http.StatusForbidden)
	}
}

// redirect answers 303 to a path of ours.
func (a *Admin) redirect(w http.ResponseWriter, r *http.Request, path string) {
	w.Header().Set("Location", a.link(safePath(path)))
	w.WriteHeader(http.StatusSeeOther)
}

// safePath lets through only a path within the dashboard: no other origin, no
// backslash or control character that a browser would read as one.
func safePath(p string) string {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\\x00\t\r\n") {
		return "/"
	}
	u, err := url.Parse(p)
	if err != nil || u.Host != "" || u.Scheme != "" || strings.HasPrefix(u.Path, "//") {
		return "/"
	}
	return p
}
