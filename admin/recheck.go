package admin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"acuse/access"
	"acuse/problem"
	"acuse/store"
)

// looks hold what a person found out by a recheck until they deliver it: in memory only,
// since a secret is part of it.
type looks struct {
	mu   sync.Mutex
	kept map[string]look
}

type look struct {
	request RecheckRequest
	found   Rechecked
	user    string
	until   time.Time
}

const (
	lookLife = 10 * time.Minute
	maxLooks = 16
)

func (l *looks) put(one look, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = map[string]look{}
	}
	for word, old := range l.kept {
		if now.After(old.until) || len(l.kept) >= maxLooks {
			delete(l.kept, word)
		}
	}
	one.until = now.Add(lookLife)
	word := rand.Text()
	l.kept[word] = one
	return word
}

// get shows what was found to the person who looked; take ends it too.
func (l *looks) get(word, user string, now time.Time, take bool) (look, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.kept[word]
	if !ok || one.user != user || now.After(one.until) {
		return look{}, false
	}
	if take {
		delete(l.kept, word)
	}
	return one, true
}

type recheckView struct {
	Source    string
	Sources   []option
	MayAsk    bool // may try another secret or tolerance
	Tolerance string
	Error     string
	Look      string // word under which what was found is kept; empty: nothing was looked for yet
	Found     string
	Secret    bool // another secret was given
	Button    string
	Back      string
}

func (a *Admin) recheckForm(w http.ResponseWriter, r *http.Request) error {
	if a.opt.Recheck == nil {
		return errAbsent
	}
	v := a.recheckView(r, r.URL.Query())
	word := r.URL.Query().Get("look")
	if word == "" {
		return a.showRecheck(w, r, http.StatusOK, v)
	}
	l := a.localeOf(r)
	one, ok := a.looks.get(word, visitOf(r.Context()).grant.Name, a.opt.Now(), false)
	if !ok {
		v.Error = l.T("recheck.gone")
		return a.showRecheck(w, r, http.StatusOK, v)
	}
	v.Source, v.Back, v.Secret = one.request.Source, "/rejections?source="+url.QueryEscape(one.request.Source), one.request.Secret != ""
	v.Found = l.N("recheck.checked", int64(one.found.Checked)) + " " + l.N("recheck.would", int64(one.found.WouldVerify))
	if one.found.WouldVerify > 0 {
		v.Look, v.Button = word, l.N("recheck.deliver", int64(one.found.WouldVerify))
	}
	return a.showRecheck(w, r, http.StatusOK, v)
}

func (a *Admin) recheckView(r *http.Request, f url.Values) recheckView {
	v := recheckView{Source: f.Get("source"), Tolerance: visible(f.Get("tolerance"), false), MayAsk: visitOf(r.Context()).grant.May(access.Admin), Back: "/rejections"}
	for _, s := range a.opt.Sources() {
		v.Sources = append(v.Sources, option{s.Name, s.Name, s.Name == v.Source})
	}
	return v
}

func (a *Admin) showRecheck(w http.ResponseWriter, r *http.Request, status int, v recheckView) error {
	return a.show(w, r, status, "recheck", frame{Title: a.localeOf(r).T("recheck.title"), Nav: "/rejections", Help: "help.rejections", Body: v})
}

// recheck looks first: it says how many would verify. With the word of a look it delivers
// those.
func (a *Admin) recheck(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return errBadForm
	}
	if a.opt.Recheck == nil {
		return errAbsent
	}
	l, user := a.localeOf(r), visitOf(r.Context()).grant
	v := a.recheckView(r, r.PostForm)
	if word := r.PostForm.Get("look"); word != "" {
		return a.recheckDeliver(w, r, v, word)
	}
	q := RecheckRequest{Source: v.Source, Secret: strings.TrimRight(r.PostForm.Get("secret"), "\r\n"), By: actor(r, user)}
	var err error
	if q.Tolerance, err = tolerance(v.Tolerance); err != nil {
		v.Error = l.T("recheck.tolerance_wrong")
		return a.showRecheck(w, r, http.StatusUnprocessableEntity, v)
	}
	if !v.MayAsk && q.asks() {
		return errForbidden
	}
	found, err := a.opt.Recheck(r.Context(), q)
	if errors.Is(err, ErrSecret) {
		v.Error = l.T("recheck.secret_wrong")
		return a.showRecheck(w, r, http.StatusUnprocessableEntity, v)
	}
	if err != nil {
		return err
	}
	word := a.looks.put(look{request: q, found: found, user: user.Name}, a.opt.Now())
	a.redirect(w, r, "/rejections/recheck?look="+word)
	return nil
}

func (a *Admin) recheckDeliver(w http.ResponseWriter, r *http.Request, v recheckView, word string) error {
	l, ctx := a.localeOf(r), r.Context()
	one, ok := a.looks.get(word, visitOf(ctx).grant.Name, a.opt.Now(), true)
	if !ok {
		v.Error = l.T("recheck.gone")
		return a.showRecheck(w, r, http.StatusConflict, v)
	}
	one.request.Deliver, one.request.By = true, actor(r, visitOf(ctx).grant)
	if one.request.asks() && !v.MayAsk {
		return errForbidden // no owner any more
	}
	// A person who leaves the page does not stop it half-way.
	done, err := a.opt.Recheck(context.WithoutCancel(ctx), one.request)
	if err != nil {
		return err
	}
	text := l.N("recheck.done", int64(done.Delivered))
	if done.Duplicates > 0 {
		text += " " + l.N("recheck.duplicates", int64(done.Duplicates))
	}
	role := "ok"
	if done.Quarantined > 0 {
		role, text = "wait", text+" "+l.N("recheck.quarantined", int64(done.Quarantined))
	}
	visitOf(ctx).flash(ctx, role, text)
	a.redirect(w, r, "/rejections?source="+url.QueryEscape(one.request.Source))
	return nil
}

// asks tells whether more than the configuration says is tried: whoever chooses the secret
// chooses what passes, so that takes an owner.
func (q *RecheckRequest) asks() bool { return q.Secret != "" || q.Tolerance != 0 }

// tolerance reads "10m", or a number of seconds; empty: none.
func tolerance(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, nil
	}
	if strings.Trim(s, "0123456789") == "" {
		s += "s"
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > 366*24*time.Hour {
		return 0, badInput("tolerance: want a duration such as 30m")
	}
	return d, nil
}

func (a *Admin) apiRecheck(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Source    string          `json:"source"`
		Secret    string          `json:"secret"`
		Tolerance json.RawMessage `json:"tolerance"`
		Deliver   bool            `json:"deliver"`
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	if a.opt.Recheck == nil {
		return errAbsent
	}
	if in.Source == "" {
		return badInput("source: missing")
	}
	q := RecheckRequest{Source: in.Source, Secret: in.Secret, Deliver: in.Deliver, By: actor(r, grantOf(r))}
	if text := string(in.Tolerance); text != "" && text != "null" {
		if unquoted := ""; json.Unmarshal(in.Tolerance, &unquoted) == nil {
			text = unquoted
		}
		var err error
		if q.Tolerance, err = tolerance(text); err != nil {
			return err
		}
	}
	if q.asks() && !grantOf(r).May(access.Admin) {
		return apiError{http.StatusForbidden, "scope", "a secret or a tolerance of the caller's needs the scope admin"}
	}
	if !slices.ContainsFunc(a.opt.Sources(), func(s Source) bool { return s.Name == in.Source }) {
		return store.ErrNotFound
	}
	done, err := a.opt.Recheck(r.Context(), q)
	if err != nil {
		return err
	}
	problem.WriteJSON(w, http.StatusOK, done)
	return nil
}
