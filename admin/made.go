package admin

import (
	"crypto/rand"
	"sync"
	"time"
)

// madeTokens hold the secrets of new tokens between the POST that made one and the
// GET that shows it, in memory only: a session's data would stand on the disk.
type madeTokens struct {
	mu   sync.Mutex
	kept map[string]madeToken
}

type madeToken struct {
	secret, name, user string
	until              time.Time
}

// put keeps a secret for a minute and returns the word that takes it.
func (m *madeTokens) put(secret, name, user string, now time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[string]madeToken{}
	}
	for k, t := range m.kept {
		if now.After(t.until) {
			delete(m.kept, k)
		}
	}
	word := rand.Text()
	m.kept[word] = madeToken{secret: secret, name: name, user: user, until: now.Add(time.Minute)}
	return word
}

// take hands a secret out once, to the person who made it.
func (m *madeTokens) take(word, user string, now time.Time) (madeToken, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.kept[word]
	if !ok || t.user != user {
		return madeToken{}, false
	}
	delete(m.kept, word)
	return t, now.Before(t.until)
}
