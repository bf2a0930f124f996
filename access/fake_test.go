package access

import (
	"bytes"
	"context"
	"sync"
	"time"

	"acuse/store"
)

var t0 = time.Date(2026, 11, 30, 14, 2, 11, 0, time.UTC)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: t0} }

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }

func (c *clock) add(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.t = c.t.Add(d) }

// memory is store.Accounts in maps.
type memory struct {
	mu       sync.Mutex
	users    map[string]store.User
	tokens   map[string]store.Token
	sessions map[string]store.Session
	settings map[string]string
	puts     int   // of tokens
	fail     error // of every write
}

var _ store.Accounts = (*memory)(nil)

func newMemory() *memory {
	return &memory{users: map[string]store.User{}, tokens: map[string]store.Token{},
		sessions: map[string]store.Session{}, settings: map[string]string{}}
}

func put[V any](m *memory, kept map[string]V, key string, v V) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail == nil {
		kept[key] = v
	}
	return m.fail
}

func get[V any](m *memory, kept map[string]V, key string) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := kept[key]
	if !ok {
		return v, store.ErrNotFound
	}
	return v, nil
}

func remove[V any](m *memory, kept map[string]V, key string) error {
	if _, err := get(m, kept, key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(kept, key)
	return nil
}

func list[V any](m *memory, kept map[string]V) (vs []V, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range kept {
		vs = append(vs, v)
	}
	return vs, nil
}

func (m *memory) PutUser(_ context.Context, u store.User) error { return put(m, m.users, u.Name, u) }
func (m *memory) UserByName(_ context.Context, n string) (store.User, error) {
	return get(m, m.users, n)
}
func (m *memory) Users(context.Context) ([]store.User, error)      { return list(m, m.users) }
func (m *memory) RemoveUser(_ context.Context, n string) error     { return remove(m, m.users, n) }
func (m *memory) Tokens(context.Context) ([]store.Token, error)    { return list(m, m.tokens) }
func (m *memory) RemoveToken(_ context.Context, id string) error   { return remove(m, m.tokens, id) }
func (m *memory) RemoveSession(_ context.Context, id string) error { return remove(m, m.sessions, id) }
func (m *memory) PutSetting(_ context.Context, name, v string) error {
	return put(m, m.settings, name, v)
}
func (m *memory) PutSession(_ context.Context, s store.Session) error {
	return put(m, m.sessions, s.ID, s)
}
func (m *memory) SessionByID(_ context.Context, id string) (store.Session, error) {
	return get(m, m.sessions, id)
}

func (m *memory) PutToken(_ context.Context, t store.Token) error {
	m.mu.Lock()
	m.puts++
	m.mu.Unlock()
	return put(m, m.tokens, t.ID, t)
}

func (m *memory) TokenByHash(_ context.Context, hash []byte) (store.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tokens {
		if bytes.Equal(t.Hash, hash) {
			return t, nil
		}
	}
	return store.Token{}, store.ErrNotFound
}

func (m *memory) ExpireSessions(_ context.Context, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, s := range m.sessions {
		if s.Expires.Before(now) {
			delete(m.sessions, id)
		}
	}
	return nil
}

func (m *memory) Setting(_ context.Context, name string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.settings[name]
	return v, ok, nil
}
