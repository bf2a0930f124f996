package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"acuse/store"
)

// PutUser adds or replaces; see store.Accounts.
func (d *DB) PutUser(ctx context.Context, u store.User) error {
	return wrap(d.put(ctx, "INSERT OR REPLACE INTO users (name, role, password, language, created_at) VALUES (?, ?, ?, ?, ?)",
		u.Name, u.Role, u.Password, u.Language, ms(u.CreatedAt)), "user %s", u.Name)
}

const userColumns = "SELECT name, role, password, language, created_at FROM users"

func scanUser(s scanner) (u store.User, err error) {
	var created int64
	err = s.Scan(&u.Name, &u.Role, &u.Password, &u.Language, &created)
	u.CreatedAt = instant(created)
	return u, err
}

// UserByName reads one.
func (d *DB) UserByName(ctx context.Context, name string) (store.User, error) {
	u, err := scanUser(d.read.QueryRowContext(ctx, userColumns+" WHERE name = ?", name))
	return u, wrap(d.missing(err), "user %s", name)
}

// Users lists by name.
func (d *DB) Users(ctx context.Context) (list []store.User, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, userColumns+" ORDER BY name", func(s scanner) error {
			u, err := scanUser(s)
			list = append(list, u)
			return err
		})
	})
	return list, wrap(err, "users")
}

// RemoveUser removes one. store.ErrNotFound.
func (d *DB) RemoveUser(ctx context.Context, name string) error {
	return wrap(d.remove(ctx, "DELETE FROM users WHERE name = ?", name), "user %s", name)
}

// remove commits a DELETE that must find something.
func (d *DB) remove(ctx context.Context, text string, args ...val) error {
	return d.do(ctx, func(w *writer) error {
		n, err := w.exec(text, args...)
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		return err
	})
}

// PutToken adds or replaces; see store.Accounts.
func (d *DB) PutToken(ctx context.Context, t store.Token) error {
	scopes, err := json.Marshal(append([]string{}, t.Scopes...))
	if err != nil {
		return err
	}
	// Not OR REPLACE: that would also take out another token with the same digest.
	return wrap(d.put(ctx, `INSERT INTO tokens (id, name, agent, hash, scopes, created_at, last_used, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, agent = excluded.agent, hash = excluded.hash, scopes = excluded.scopes,
		created_at = excluded.created_at, last_used = excluded.last_used, expires = excluded.expires`,
		t.ID, t.Name, t.Agent, blob(t.Hash), string(scopes), ms(t.CreatedAt), ms(t.LastUsed), ms(t.Expires)), "token %s", t.ID)
}

const tokenColumns = "SELECT id, name, agent, hash, scopes, created_at, last_used, expires FROM tokens"

func scanToken(s scanner) (t store.Token, err error) {
	var created, used, expires int64
	var scopes string
	if err := s.Scan(&t.ID, &t.Name, &t.Agent, &t.Hash, &scopes, &created, &used, &expires); err != nil {
		return t, err
	}
	t.CreatedAt, t.LastUsed, t.Expires = instant(created), instant(used), instant(expires)
	return t, json.Unmarshal([]byte(scopes), &t.Scopes)
}

// TokenByHash finds one; its expiry is the caller's to judge.
func (d *DB) TokenByHash(ctx context.Context, hash []byte) (store.Token, error) {
	t, err := scanToken(d.read.QueryRowContext(ctx, tokenColumns+" WHERE hash = ?", blob(hash)))
	return t, wrap(d.missing(err), "token")
}

// Tokens lists, oldest first.
func (d *DB) Tokens(ctx context.Context) (list []store.Token, err error) {
	err = d.view(ctx, func(tx *sql.Tx) error {
		return each(ctx, tx, tokenColumns+" ORDER BY created_at, id", func(s scanner) error {
			t, err := scanToken(s)
			list = append(list, t)
			return err
		})
	})
	return list, wrap(err, "tokens")
}

// RemoveToken removes one. store.ErrNotFound.
func (d *DB) RemoveToken(ctx context.Context, id string) error {
	return wrap(d.remove(ctx, "DELETE FROM tokens WHERE id = ?", id), "token %s", id)
}

// PutSession adds or replaces.
func (d *DB) PutSession(ctx context.Context, s store.Session) error {
	return wrap(d.put(ctx, "INSERT OR REPLACE INTO sessions (id, user, data, expires) VALUES (?, ?, ?, ?)", s.ID, s.User, blob(s.Data), ms(s.Expires)), "session")
}

func scanSession(s scanner) (v store.Session, err error) {
	var expires int64
	err = s.Scan(&v.ID, &v.User, &v.Data, &expires)
	v.Expires = instant(expires)
	return v, err
}

// SessionByID reads one; its expiry is the caller's to judge.
func (d *DB) SessionByID(ctx context.Context, id string) (store.Session, error) {
	s, err := scanSession(d.read.QueryRowContext(ctx, "SELECT id, user, data, expires FROM sessions WHERE id = ?", id))
	return s, wrap(d.missing(err), "session")
}

// RemoveSession removes one, if it is there: logging out twice is no error.
func (d *DB) RemoveSession(ctx context.Context, id string) error {
	return wrap(d.put(ctx, "DELETE FROM sessions WHERE id = ?", id), "session")
}

// ExpireSessions removes what ended before now.
func (d *DB) ExpireSessions(ctx context.Context, now time.Time) error {
	return wrap(d.put(ctx, "DELETE FROM sessions WHERE expires < ?", ms(now)), "sessions")
}

// Setting reads a small value.
func (d *DB) Setting(ctx context.Context, name string) (value string, ok bool, err error) {
	err = d.read.QueryRowContext(ctx, "SELECT value FROM settings WHERE name = ?", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return value, err == nil, wrap(d.closed(err), "setting %s", name)
}

// PutSetting writes a small value.
func (d *DB) PutSetting(ctx context.Context, name, value string) error {
	return wrap(d.put(ctx, "INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", name, value), "setting %s", name)
}
