package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"acuse/store"
	"acuse/store/engine"
)

// byName is the key of a record by its name: bbolt takes no empty key.
func byName(name string) []byte { return text(name) }

// PutUser adds or replaces; see store.Accounts.
func (d *DB) PutUser(ctx context.Context, u store.User) error {
	return wrap(d.put(ctx, tUsers, byName(u.Name), encodeUser(&u)), "user %s", u.Name)
}

func encodeUser(u *store.User) []byte {
	return record(128).text(u.Name, u.Role, u.Password, u.Language).int(engine.Milli(u.CreatedAt)).b
}

func decodeUser(b []byte) (u store.User, err error) {
	r := reading(b)
	u = store.User{Name: r.text(), Role: r.text(), Password: r.text(), Language: r.text(), CreatedAt: engine.Instant(r.int())}
	return u, r.done("users")
}

// one reads the record of a key. store.ErrNotFound.
func one[T any](ctx context.Context, d *DB, t table, key []byte, decode func([]byte) (T, error)) (out T, err error) {
	err = d.view(ctx, func(x *tx) error {
		v := x.get(t, key)
		if v == nil {
			return store.ErrNotFound
		}
		out, err = decode(v)
		return err
	})
	return out, err
}

// every reads all records of a small bucket.
func every[T any](ctx context.Context, d *DB, t table, decode func([]byte) (T, error)) (list []T, err error) {
	err = d.view(ctx, func(x *tx) error {
		for _, v := range x.pairs(t, nil, false) {
			r, err := decode(v)
			if err != nil {
				return err
			}
			list = append(list, r)
		}
		return nil
	})
	return list, err
}

// UserByName reads one.
func (d *DB) UserByName(ctx context.Context, name string) (store.User, error) {
	u, err := one(ctx, d, tUsers, byName(name), decodeUser)
	return u, wrap(err, "user %s", name)
}

// Users lists by name.
func (d *DB) Users(ctx context.Context) ([]store.User, error) {
	list, err := every(ctx, d, tUsers, decodeUser)
	slices.SortFunc(list, func(a, b store.User) int { return cmp.Compare(a.Name, b.Name) })
	return list, wrap(err, "users")
}

// RemoveUser removes one. store.ErrNotFound.
func (d *DB) RemoveUser(ctx context.Context, name string) error {
	return wrap(d.remove(ctx, tUsers, byName(name)), "user %s", name)
}

func decodeToken(b []byte) (t store.Token, err error) {
	r := reading(b)
	t = store.Token{ID: r.text(), Name: r.text(), Agent: r.text(), Hash: r.bytes(), CreatedAt: engine.Instant(r.int()), LastUsed: engine.Instant(r.int()), Expires: engine.Instant(r.int())}
	t.Scopes = []string{}
	for n := r.int(); n > 0 && !r.bad; n-- {
		t.Scopes = append(t.Scopes, r.text())
	}
	return t, r.done("tokens")
}

// PutToken adds or replaces; see store.Accounts. Two with one digest are refused.
func (d *DB) PutToken(ctx context.Context, t store.Token) error {
	return wrap(d.do(ctx, func(w *writer) error { return w.putToken(&t) }), "token %s", t.ID)
}

func (w *writer) putToken(t *store.Token) error {
	if holder := w.get(tHashes, text(string(t.Hash))); holder != nil && string(holder) != t.ID {
		return fmt.Errorf("%w: another token has this digest", store.ErrRefused)
	}
	if err := w.dropHash(t.ID, t.Hash); err != nil {
		return err
	}
	if err := w.put(tHashes, text(string(t.Hash)), []byte(t.ID)); err != nil {
		return err
	}
	r := record(128).text(t.ID, t.Name, t.Agent).bytes(t.Hash).int(engine.Milli(t.CreatedAt), engine.Milli(t.LastUsed), engine.Milli(t.Expires))
	return w.put(tTokens, byName(t.ID), r.int(int64(len(t.Scopes))).text(t.Scopes...).b)
}

// dropHash removes the digest that a token had, unless it is the one to keep.
func (w *writer) dropHash(id string, keep []byte) error {
	v := w.get(tTokens, byName(id))
	if v == nil {
		return nil
	}
	old, err := decodeToken(v)
	if err != nil || bytes.Equal(old.Hash, keep) {
		return err
	}
	return w.del(tHashes, text(string(old.Hash)))
}

// TokenByHash finds one; its expiry is the caller's to judge.
func (d *DB) TokenByHash(ctx context.Context, hash []byte) (t store.Token, err error) {
	err = d.view(ctx, func(x *tx) error {
		id := x.get(tHashes, text(string(hash)))
		if id == nil {
			return store.ErrNotFound
		}
		t, err = decodeToken(x.get(tTokens, byName(string(id))))
		return err
	})
	return t, wrap(err, "token")
}

// Tokens lists, oldest first.
func (d *DB) Tokens(ctx context.Context) ([]store.Token, error) {
	list, err := every(ctx, d, tTokens, decodeToken)
	slices.SortFunc(list, func(a, b store.Token) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	return list, wrap(err, "tokens")
}

// RemoveToken removes one. store.ErrNotFound.
func (d *DB) RemoveToken(ctx context.Context, id string) error {
	return wrap(d.do(ctx, func(w *writer) error {
		if w.get(tTokens, byName(id)) == nil {
			return store.ErrNotFound
		}
		if err := w.dropHash(id, nil); err != nil {
			return err
		}
		return w.del(tTokens, byName(id))
	}), "token %s", id)
}

func decodeSession(b []byte) (s store.Session, err error) {
	r := reading(b)
	s = store.Session{ID: r.text(), User: r.text(), Data: r.bytes(), Expires: engine.Instant(r.int())}
	return s, r.done("sessions")
}

// PutSession adds or replaces.
func (d *DB) PutSession(ctx context.Context, s store.Session) error {
	return wrap(d.do(ctx, func(w *writer) error { return w.putSession(&s) }), "session")
}

func (w *writer) putSession(s *store.Session) error {
	if err := w.dropSession(s.ID); err != nil {
		return err
	}
	if err := w.put(tSessionEnd, key(num(engine.Milli(s.Expires)), []byte(s.ID)), nil); err != nil {
		return err
	}
	return w.put(tSessions, byName(s.ID), record(96+len(s.Data)).text(s.ID, s.User).bytes(s.Data).int(engine.Milli(s.Expires)).b)
}

// dropSession removes a session, if it is there.
func (w *writer) dropSession(id string) error {
	v := w.get(tSessions, byName(id))
	if v == nil {
		return nil
	}
	s, err := decodeSession(v)
	if err != nil {
		return err
	}
	if err := w.del(tSessionEnd, key(num(engine.Milli(s.Expires)), []byte(id))); err != nil {
		return err
	}
	return w.del(tSessions, byName(id))
}

// SessionByID reads one; its expiry is the caller's to judge.
func (d *DB) SessionByID(ctx context.Context, id string) (store.Session, error) {
	s, err := one(ctx, d, tSessions, byName(id), decodeSession)
	return s, wrap(err, "session")
}

// RemoveSession removes one, if it is there: logging out twice is no error.
func (d *DB) RemoveSession(ctx context.Context, id string) error {
	return wrap(d.do(ctx, func(w *writer) error { return w.dropSession(id) }), "session")
}

// ExpireSessions removes what ended before now.
func (d *DB) ExpireSessions(ctx context.Context, now time.Time) error {
	return wrap(d.do(ctx, func(w *writer) error {
		_, err := w.dropSessionsBefore(engine.Milli(now), 1<<30)
		return err
	}), "sessions")
}

// dropSessionsBefore removes up to most that ended before an instant.
func (w *writer) dropSessionsBefore(now int64, most int) (int, error) {
	var ended []string
	for k := range w.keys(tSessionEnd, nil, false) {
		if numAt(k, 0) >= now || len(ended) == most {
			break
		}
		ended = append(ended, string(k[8:]))
	}
	for _, id := range ended {
		if err := w.dropSession(id); err != nil {
			return 0, err
		}
	}
	return len(ended), nil
}

func decodeSetting(k, v []byte) (store.Setting, error) {
	_, size := binary.Uvarint(k)
	r := reading(v)
	s := store.Setting{Name: string(k[max(0, size):]), Value: r.text()}
	return s, r.done("settings")
}

// Setting reads a small value.
func (d *DB) Setting(ctx context.Context, name string) (value string, ok bool, err error) {
	s, err := one(ctx, d, tSettings, byName(name), func(v []byte) (store.Setting, error) { return decodeSetting(byName(name), v) })
	if errors.Is(err, store.ErrNotFound) {
		return "", false, nil
	}
	return s.Value, err == nil, wrap(err, "setting %s", name)
}

func encodeSetting(value string) []byte { return record(16 + len(value)).text(value).b }

// PutSetting writes a small value.
func (d *DB) PutSetting(ctx context.Context, name, value string) error {
	return wrap(d.put(ctx, tSettings, byName(name), encodeSetting(value)), "setting %s", name)
}
