package provider

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
)

// ed25519Scheme is kind ed25519. It hashes twice, so the message is built whole.
type ed25519Scheme struct{ rule publicRule }

func parseEd25519(path string, f *authFile) (plan, error) {
	rule, err := parsePublicRule(join(path, "secret"), f.Secret, "raw-hex")
	if err != nil {
		return nil, err
	}
	return parseSigned(path, f, ed25519Scheme{rule})
}

func (s ed25519Scheme) key(slot int, secret string) (signingKey, error) {
	pub, err := s.rule.read(secret)
	if err != nil {
		return nil, err
	}
	key, ok := pub.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("is no Ed25519 key")
	}
	return &ed25519Key{slot: slot, public: key, rule: s.rule}, nil
}

func (s ed25519Scheme) public(doc []byte) (signingKey, error) { return s.key(0, string(doc)) }

func (s ed25519Scheme) pair() (signingKey, error) {
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	return &ed25519Key{slot: 1, public: pub, private: private, rule: s.rule}, err
}

type ed25519Key struct {
	slot    int
	public  ed25519.PublicKey
	private ed25519.PrivateKey // of tests of ours; nil: the provider's alone
	rule    publicRule
}

func (k *ed25519Key) slotNumber() int             { return k.slot }
func (k *ed25519Key) signs() bool                 { return k.private != nil }
func (k *ed25519Key) configured() (string, error) { return k.rule.write(k.public) }

func (k *ed25519Key) verify(m *template, in *input) (bool, *placeholder) {
	var missing *placeholder
	if in.buf, missing = m.append(in.buf[:0], in); missing != nil {
		return false, missing
	}
	good := false
	for i := range in.sigs.n {
		sig := in.sigs.data[i][:in.sigs.size[i]]
		good = good || (len(sig) == ed25519.SignatureSize && ed25519.Verify(k.public, in.buf, sig))
	}
	return good, nil
}

func (k *ed25519Key) sign(m *template, in *input) ([]byte, *placeholder, error) {
	msg, missing := m.append(nil, in)
	if missing != nil || k.private == nil {
		return nil, missing, errCannotSign
	}
	return ed25519.Sign(k.private, msg), nil, nil
}
