package provider

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"hash"
)

// rsaScheme is kind rsa: PKCS #1 v1.5 or PSS.
type rsaScheme struct {
	rule    publicRule
	newHash func() hash.Hash
	hash    crypto.Hash
	pss     bool
}

// cryptoHashes are the digests that RSA and ECDSA sign. SHA-1 is there for Amazon
// SNS, which uses it unless a topic asks for SignatureVersion 2.
var cryptoHashes = map[string]crypto.Hash{
	"sha1": crypto.SHA1, "sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512,
}

// digestOf reads hash, or alg, which means the same.
func digestOf(path string, f *authFile) (func() hash.Hash, crypto.Hash, error) {
	name := f.Hash
	if name == "" {
		name = f.Alg
	} else if f.Alg != "" && f.Alg != name {
		return nil, 0, at(join(path, "alg"), "is not what hash says")
	}
	if name == "" {
		name = "sha256"
	}
	h, ok := cryptoHashes[name]
	if !ok {
		return nil, 0, at(join(path, "hash"), "unknown algorithm %q", name)
	}
	return hashes[name], h, nil
}

// hashOf hashes a message piece by piece.
func hashOf(newHash func() hash.Hash, m *template, in *input) ([]byte, *placeholder) {
	f := feeder{h: newHash(), buf: in.buf[:0]}
	missing := m.feed(&f, in)
	in.buf = f.buf[:0]
	if missing != nil {
		return nil, missing
	}
	return f.h.Sum(nil), nil
}

func parseRSA(path string, f *authFile) (plan, error) {
	s := rsaScheme{pss: f.Padding == "pss"}
	var err error
	if s.rule, err = parsePublicRule(join(path, "secret"), f.Secret, "pem"); err != nil {
		return nil, err
	}
	switch f.Padding {
	case "", "pkcs1", "pss":
	default:
		return nil, at(join(path, "padding"), "want pkcs1 or pss, not %q", f.Padding)
	}
	if s.newHash, s.hash, err = digestOf(path, f); err != nil {
		return nil, err
	}
	return parseSigned(path, f, s)
}

func (s rsaScheme) key(slot int, secret string) (signingKey, error) {
	pub, err := s.rule.read(secret)
	if err != nil {
		return nil, err
	}
	key, err := fitRSA(pub)
	if err != nil {
		return nil, err
	}
	return &rsaKey{rsaScheme: s, slot: slot, public: key}, nil
}

func (s rsaScheme) public(doc []byte) (signingKey, error) { return s.key(0, string(doc)) }

func (s rsaScheme) pair() (signingKey, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return &rsaKey{rsaScheme: s, slot: 1, public: &private.PublicKey, private: private}, nil
}

type rsaKey struct {
	rsaScheme
	slot    int
	public  *rsa.PublicKey
	private *rsa.PrivateKey // of tests of ours
}

func (k *rsaKey) slotNumber() int             { return k.slot }
func (k *rsaKey) signs() bool                 { return k.private != nil }
func (k *rsaKey) configured() (string, error) { return k.rule.write(k.public) }

func (k *rsaKey) verify(m *template, in *input) (bool, *placeholder) {
	sum, missing := hashOf(k.newHash, m, in)
	if missing != nil {
		return false, missing
	}
	good := false
	in.sigs.each(func(sig []byte) {
		if k.pss {
			good = good || rsa.VerifyPSS(k.public, k.hash, sum, sig, nil) == nil
		} else {
			good = good || rsa.VerifyPKCS1v15(k.public, k.hash, sum, sig) == nil
		}
	})
	return good, nil
}

func (k *rsaKey) sign(m *template, in *input) ([]byte, *placeholder, error) {
	sum, missing := hashOf(k.newHash, m, in)
	if missing != nil || k.private == nil {
		return nil, missing, errCannotSign
	}
	var sig []byte
	var err error
	if k.pss {
		sig, err = rsa.SignPSS(rand.Reader, k.private, k.hash, sum, nil)
	} else {
		sig, err = rsa.SignPKCS1v15(rand.Reader, k.private, k.hash, sum)
	}
	return sig, nil, err
}
