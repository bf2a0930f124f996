package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"acuse/access"
	"acuse/problem"
	"acuse/store"
)

// Status is the state of the running server.
type Status struct {
	Name      string  `json:"name"`
	Version   string  `json:"version"`
	DataDir   string  `json:"data_dir"`
	StartedAt *string `json:"started_at"`
	Engine    string  `json:"engine"`
	Schema    int     `json:"schema"`
	Bytes     int64   `json:"bytes"`
	Free      int64   `json:"free"`
	Writable  bool    `json:"writable"`
	Error     *string `json:"error"`
	BackupAt  *string `json:"last_backup_at"` // of the backups made by acuse
	// What the archive uses inside its files, how it grows, and when its size (cap) or the
	// volume will be used up; null: not in sight, or not known.
	Live           *int64  `json:"live_bytes"`
	Growth         *int64  `json:"growth_bytes_per_day"`
	CapOn          *string `json:"cap_on"`
	FullOn         *string `json:"full_on"`
	Removable      *int64  `json:"removable_deliveries"`
	RemovableBytes *int64  `json:"removable_bytes"`
	BackupLate     bool    `json:"backup_late"`
	Counts
}

func (a *Admin) apiStatus(w http.ResponseWriter, r *http.Request) error {
	c, err := a.counts(r.Context(), a.opt.Now().Add(-24*time.Hour).UTC())
	if err != nil {
		return err
	}
	backup, _, err := a.opt.Accounts.Setting(r.Context(), store.SettingLastBackup)
	if err != nil {
		return err
	}
	i, h := a.opt.Info, a.opt.Health()
	s := Status{Name: i.Name, Version: i.Version, DataDir: i.DataDir, StartedAt: stamp(i.StartedAt), Engine: h.Engine, Schema: h.Schema,
		Bytes: h.Bytes, Free: h.Free, Writable: h.Writable, Error: orNull(h.Err), BackupAt: orNull(backup), Counts: c}
	if a.opt.Storage != nil {
		u, err := a.opt.Storage(r.Context())
		if err != nil {
			return err
		}
		s.Live, s.Growth, s.CapOn, s.FullOn = &u.Live, orNull(u.Growth), stamp(u.CapOn), stamp(u.FullOn)
		s.Removable, s.RemovableBytes, s.BackupLate = &u.Removable, &u.RemovableBytes, u.Late
	}
	problem.WriteJSON(w, http.StatusOK, s)
	return nil
}

func (a *Admin) apiBackup(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Path      string `json:"path"`
		EncryptTo string `json:"encrypt_to"` // age recipients
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	switch {
	case a.opt.Backup == nil:
		return errAbsent
	case !filepath.IsAbs(in.Path):
		return badInput("path: an absolute path on the machine of the server")
	}
	// A copy of a large archive takes its time.
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(12 * time.Hour))
	tell := func(int64, int64) {}
	lines := strings.Contains(r.Header.Get("Accept"), "application/x-ndjson")
	enc := json.NewEncoder(w)
	if lines {
		w.Header().Set("Content-Type", "application/x-ndjson")
		tell = func(done, total int64) {
			_ = enc.Encode(progress{Done: done, Total: total}) // the caller left: the copy ends by its context
			_ = out.Flush()
		}
	}
	err := a.opt.Backup(r.Context(), in.Path, in.EncryptTo, tell)
	if err == nil {
		a.note(r.Context(), store.AuditEntry{By: actor(r, grantOf(r)), Act: "backup", Subject: in.Path})
	}
	switch {
	case lines && err != nil:
		_ = enc.Encode(progress{Error: err.Error()})
	case lines:
		_ = enc.Encode(progress{Path: in.Path})
	case err != nil:
		return apiError{http.StatusConflict, "backup", err.Error()}
	default:
		problem.WriteJSON(w, http.StatusOK, struct {
			Path string `json:"path"`
		}{in.Path})
	}
	return nil
}

// progress is a line of a backup's answer: how far it is; the last one names the file or
// the error.
type progress struct {
	Done  int64  `json:"done,omitempty"`
	Total int64  `json:"total,omitempty"`
	Path  string `json:"path,omitempty"`
	Error string `json:"error,omitempty"`
}

func (a *Admin) apiCheck(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Full bool `json:"full"`
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	if a.opt.Check == nil {
		return errAbsent
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour))
	found, err := a.opt.Check(r.Context(), in.Full)
	if err != nil {
		return err
	}
	problem.WriteJSON(w, http.StatusOK, struct {
		Problems []string `json:"problems"`
	}{append([]string{}, found...)})
	return nil
}

func (a *Admin) apiSetupLink(w http.ResponseWriter, r *http.Request) error {
	if a.opt.SetupLink == nil {
		return errAbsent
	}
	link, expires, err := a.opt.SetupLink(r.Context())
	if err != nil {
		return err
	}
	a.note(r.Context(), store.AuditEntry{By: actor(r, grantOf(r)), Act: "setup_link"})
	problem.WriteJSON(w, http.StatusOK, struct {
		URL       string  `json:"url"`
		ExpiresAt *string `json:"expires_at"`
	}{link, stamp(expires)})
	return nil
}

// TokenInfo is a token without its secret.
type TokenInfo struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Agent     string   `json:"agent"`
	Scopes    []string `json:"scopes"`
	CreatedAt *string  `json:"created_at"`
	LastUsed  *string  `json:"last_used_at"`
	ExpiresAt *string  `json:"expires_at"`
	Secret    string   `json:"secret,omitempty"` // only in the answer that made it
}

func tokenInfo(t store.Token) TokenInfo {
	return TokenInfo{ID: t.ID, Name: t.Name, Agent: t.Agent, Scopes: append([]string{}, t.Scopes...), CreatedAt: stamp(t.CreatedAt),
		LastUsed: stamp(t.LastUsed), ExpiresAt: stamp(t.Expires)}
}

func (a *Admin) apiTokens(w http.ResponseWriter, r *http.Request) error {
	list, err := a.opt.Tokens.List(r.Context())
	if err != nil {
		return err
	}
	out := struct {
		Tokens []TokenInfo `json:"tokens"`
	}{[]TokenInfo{}}
	for _, t := range list {
		out.Tokens = append(out.Tokens, tokenInfo(t))
	}
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (a *Admin) apiTokenCreate(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name      string   `json:"name"`
		Agent     string   `json:"agent"`
		Scopes    []string `json:"scopes"`
		ExpiresAt string   `json:"expires_at"`
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	var expires time.Time
	if in.ExpiresAt != "" {
		var err error
		if expires, err = time.Parse(time.RFC3339, in.ExpiresAt); err != nil {
			return badInput("expires_at: RFC 3339")
		}
	}
	secret, t, err := a.opt.Tokens.Create(r.Context(), in.Name, in.Agent, in.Scopes, expires.UTC())
	if err != nil {
		return err
	}
	a.note(r.Context(), store.AuditEntry{By: actor(r, grantOf(r)), Act: "token.create", Subject: t.Name})
	out := tokenInfo(t)
	out.Secret = secret
	problem.WriteJSON(w, http.StatusCreated, out)
	return nil
}

func (a *Admin) apiTokenRevoke(w http.ResponseWriter, r *http.Request) error {
	t, err := a.tokenOf(r)
	if err != nil {
		return err
	}
	if err := a.opt.Tokens.Revoke(r.Context(), t.ID); err != nil {
		return err
	}
	a.note(r.Context(), store.AuditEntry{By: actor(r, grantOf(r)), Act: "token.revoke", Subject: t.Name})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// UserInfo is a person without the password.
type UserInfo struct {
	Name      string  `json:"name"`
	Role      string  `json:"role"`
	Language  string  `json:"language"`
	CreatedAt *string `json:"created_at"`
}

func (a *Admin) apiUsers(w http.ResponseWriter, r *http.Request) error {
	list, err := a.opt.Users.List(r.Context())
	if err != nil {
		return err
	}
	out := struct {
		Users []UserInfo `json:"users"`
	}{[]UserInfo{}}
	for _, u := range list {
		out.Users = append(out.Users, UserInfo{u.Name, u.Role, u.Language, stamp(u.CreatedAt)})
	}
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (a *Admin) apiUserCreate(w http.ResponseWriter, r *http.Request) error {
	in := struct {
		Name     string `json:"name"`
		Password string `json:"password"`
		Role     string `json:"role"`
	}{Role: access.RoleOwner}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	if err := a.opt.Users.Create(r.Context(), in.Name, in.Password, in.Role); err != nil {
		return err
	}
	a.note(r.Context(), store.AuditEntry{By: actor(r, grantOf(r)), Act: "user.create", Subject: in.Name})
	u, err := a.opt.Accounts.UserByName(r.Context(), in.Name)
	if err != nil {
		return err
	}
	problem.WriteJSON(w, http.StatusCreated, UserInfo{u.Name, u.Role, u.Language, stamp(u.CreatedAt)})
	return nil
}

func (a *Admin) apiUserRemove(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if err := a.opt.Users.Remove(r.Context(), name); err != nil {
		return err
	}
	a.note(r.Context(), store.AuditEntry{By: actor(r, grantOf(r)), Act: "user.remove", Subject: name})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *Admin) apiUserPassword(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Password string `json:"password"`
	}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	name := r.PathValue("name")
	if err := a.opt.Users.SetPassword(r.Context(), name, in.Password); err != nil {
		return err
	}
	a.note(r.Context(), store.AuditEntry{By: actor(r, grantOf(r)), Act: "user.password", Subject: name})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// apiTest sends a test event and streams its steps, a line each, as they happen.
func (a *Admin) apiTest(w http.ResponseWriter, r *http.Request) error {
	in := TestRequest{}
	if err := readInput(w, r, &in); err != nil {
		return err
	}
	in.Source = r.PathValue("name")
	if a.opt.Test == nil {
		return errAbsent
	}
	known := false
	for _, s := range a.opt.Sources() {
		known = known || s.Name == in.Source
	}
	if !known {
		return store.ErrNotFound
	}
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(5 * time.Minute))
	started := false
	enc := json.NewEncoder(w)
	l := a.asked(r)
	emit := func(s TestStep) {
		if !started {
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.WriteHeader(http.StatusOK)
			started = true
		}
		_ = enc.Encode(testLine{s.Step, l.says(s.Says), s.Ms, s.OK}) // the caller left: the test goes on by its context
		_ = out.Flush()
	}
	err := a.opt.Test(r.Context(), in, emit)
	a.noteTest(in.Source, err)
	switch {
	case err == nil:
		if !started {
			return errors.New("test " + in.Source + ": no step was told")
		}
		return nil
	case started:
		emit(TestStep{Step: "failed", Says: saysOf(err)})
		return nil
	}
	return apiError{http.StatusConflict, "test", l.testError(err)}
}
