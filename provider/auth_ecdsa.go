package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"hash"
	"math/big"
)

// ecdsaScheme is kind ecdsa, over P-256.
type ecdsaScheme struct {
	rule    publicRule
	newHash func() hash.Hash
	p1363   bool // two numbers of 32 bytes instead of DER
}

func parseECDSA(path string, f *authFile) (plan, error) {
	s := ecdsaScheme{p1363: f.Format == "p1363"}
	var err error
	if s.rule, err = parsePublicRule(join(path, "secret"), f.Secret, "pem"); err != nil {
		return nil, err
	}
	if f.Curve != "" && f.Curve != "P-256" {
		return nil, at(join(path, "curve"), "want P-256, not %q", f.Curve)
	}
	switch f.Format {
	case "", "der", "p1363":
	default:
		return nil, at(join(path, "format"), "want der or p1363, not %q", f.Format)
	}
	if s.newHash, _, err = digestOf(path, f); err != nil {
		return nil, err
	}
	return parseSigned(path, f, s)
}

func (s ecdsaScheme) key(slot int, secret string) (signingKey, error) {
	pub, err := s.rule.read(secret)
	if err != nil {
		return nil, err
	}
	key, err := fitECDSA(pub)
	if err != nil {
		return nil, err
	}
	return &ecdsaKey{ecdsaScheme: s, slot: slot, public: key}, nil
}

func (s ecdsaScheme) public(doc []byte) (signingKey, error) { return s.key(0, string(doc)) }

func (s ecdsaScheme) pair() (signingKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &ecdsaKey{ecdsaScheme: s, slot: 1, public: &private.PublicKey, private: private}, nil
}

type ecdsaKey struct {
	ecdsaScheme
	slot    int
	public  *ecdsa.PublicKey
	private *ecdsa.PrivateKey // of tests of ours
}

func (k *ecdsaKey) slotNumber() int             { return k.slot }
func (k *ecdsaKey) signs() bool                 { return k.private != nil }
func (k *ecdsaKey) configured() (string, error) { return k.rule.write(k.public) }

func (k *ecdsaKey) verify(m *template, in *input) (bool, *placeholder) {
	sum, missing := hashOf(k.newHash, m, in)
	if missing != nil {
		return false, missing
	}
	good := false
	in.sigs.each(func(sig []byte) { good = good || k.good(sum, sig) })
	return good, nil
}

func (k *ecdsaKey) good(sum, sig []byte) bool {
	if !k.p1363 {
		return ecdsa.VerifyASN1(k.public, sum, sig)
	}
	if len(sig) != 64 {
		return false
	}
	return ecdsa.Verify(k.public, sum, new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:]))
}

func (k *ecdsaKey) sign(m *template, in *input) ([]byte, *placeholder, error) {
	sum, missing := hashOf(k.newHash, m, in)
	if missing != nil || k.private == nil {
		return nil, missing, errCannotSign
	}
	if !k.p1363 {
		sig, err := ecdsa.SignASN1(rand.Reader, k.private, sum)
		return sig, nil, err
	}
	r, s, err := ecdsa.Sign(rand.Reader, k.private, sum)
	if err != nil {
		return nil, nil, err
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return sig, nil, nil
}
