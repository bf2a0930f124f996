package access

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/alexedwards/scs/v2"

	"acuse/store"
)

// SessionUser is the key under which a session's data names its person.
const SessionUser = "user"

// sweepEvery is how often ended sessions are removed.
const sweepEvery = time.Hour

// SessionStore keeps browser sessions for scs. The cookie's value is kept as its
// SHA-256 only: who reads the data file cannot log in with what stands there. Leave
// SessionManager.HashTokenInStore off, it would hash twice.
type SessionStore struct {
	accounts store.Accounts
	now      func() time.Time

	mu    sync.Mutex
	swept time.Time
}

var _ scs.CtxStore = (*SessionStore)(nil)

// NewSessionStore returns a store over the accounts; now may be nil.
func NewSessionStore(a store.Accounts, now func() time.Time) *SessionStore {
	if now == nil {
		now = time.Now
	}
	return &SessionStore{accounts: a, now: now}
}

// FindCtx reads a live session.
func (s *SessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	sess, err := s.accounts.SessionByID(ctx, sessionID(token))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case !s.now().Before(sess.Expires):
		return nil, false, nil
	}
	return sess.Data, true, nil
}

// CommitCtx writes a session and, once an hour, removes those that ended.
func (s *SessionStore) CommitCtx(ctx context.Context, token string, b []byte, expiry time.Time) error {
	if s.due() {
		if err := s.accounts.ExpireSessions(ctx, s.now()); err != nil {
			return err
		}
	}
	return s.accounts.PutSession(ctx, store.Session{ID: sessionID(token), User: userOf(b), Data: b, Expires: expiry.UTC()})
}

// DeleteCtx removes a session; one that is not there is no error.
func (s *SessionStore) DeleteCtx(ctx context.Context, token string) error {
	err := s.accounts.RemoveSession(ctx, sessionID(token))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Find, Commit and Delete are the forms without a context that scs asks for.
func (s *SessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit is CommitCtx without a context.
func (s *SessionStore) Commit(token string, b []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, b, expiry)
}

// Delete is DeleteCtx without a context.
func (s *SessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

func (s *SessionStore) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Sub(s.swept) < sweepEvery {
		return false
	}
	s.swept = s.now()
	return true
}

func sessionID(token string) string { return hex.EncodeToString(digest(token)) }

// userOf reads the person from a session's data; empty before login.
func userOf(b []byte) string {
	_, values, err := scs.GobCodec{}.Decode(b)
	if err != nil {
		return ""
	}
	name, _ := values[SessionUser].(string)
	return name
}
