package provider

import (
	"crypto/hmac"
	"errors"
	"hash"
	"sync"
)

// hmacScheme is kind hmac: a keyed hash.
type hmacScheme struct {
	newHash func() hash.Hash
	rule    keyRule
}

func parseHMAC(path string, f *authFile) (plan, error) {
	newHash, ok := hashes[f.Alg]
	if !ok {
		return nil, at(join(path, "alg"), "unknown algorithm %q", f.Alg)
	}
	rule, err := parseKeyRule(join(path, "secret"), f.Secret)
	if err != nil {
		return nil, err
	}
	return parseSigned(path, f, hmacScheme{newHash, rule})
}

func (s hmacScheme) key(slot int, secret string) (signingKey, error) {
	key, err := s.rule.key(secret)
	if err != nil {
		return nil, err
	}
	return newHMACKey(s.newHash, key, slot, secret), nil
}

func (hmacScheme) public([]byte) (signingKey, error) {
	return nil, errors.New("a shared key is never fetched")
}
func (hmacScheme) pair() (signingKey, error) { return nil, nil }

// hmacKey is one secret. Its keyed hash states are pooled: making one costs two
// compressions and several allocations, resetting one costs neither.
type hmacKey struct {
	slot   int
	secret string
	pool   sync.Pool
}

type hmacState struct {
	feeder
	sum []byte
}

func newHMACKey(newHash func() hash.Hash, key []byte, slot int, secret string) *hmacKey {
	k := &hmacKey{slot: slot, secret: secret}
	k.pool.New = func() any { return &hmacState{feeder: feeder{h: hmac.New(newHash, key)}} }
	return k
}

// sum gives the keyed hash of a message; the state goes back with put.
func (k *hmacKey) sum(m *template, in *input) (*hmacState, *placeholder) {
	st := k.pool.Get().(*hmacState)
	st.h.Reset()
	st.buf = st.buf[:0]
	in.secret = k.secret
	missing := m.feed(&st.feeder, in)
	in.secret = ""
	if missing == nil {
		st.sum = st.h.Sum(st.sum[:0])
	}
	return st, missing
}

func (k *hmacKey) put(st *hmacState) { k.pool.Put(st) }

func (k *hmacKey) slotNumber() int { return k.slot }
func (k *hmacKey) signs() bool     { return true }

func (k *hmacKey) verify(m *template, in *input) (bool, *placeholder) {
	st, missing := k.sum(m, in)
	good := missing == nil && in.sigs.match(st.sum)
	k.put(st)
	return good, missing
}

func (k *hmacKey) sign(m *template, in *input) ([]byte, *placeholder, error) {
	st, missing := k.sum(m, in)
	defer k.put(st)
	return append([]byte(nil), st.sum...), missing, nil
}
