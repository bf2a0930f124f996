package provider

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// rehearsal gathers the keys that a Rehearsal is made of.
type rehearsal struct {
	keys []interface{ configured() (string, error) }
}

func (r *rehearsal) add(key any) {
	if k, ok := key.(interface{ configured() (string, error) }); ok {
		r.keys = append(r.keys, k)
	}
}

// Rehearsal is a checker of the same source for tests of ours, where only the provider
// could sign a request: wherever the source's own checker looks for a signature of the provider's private
// key, it looks for one of a key pair made here and now, and it can sign with it. Where
// nothing is signed at all (an address, a question asked back), it looks for a seal that
// only it can make. Each Rehearsal has keys of its own, which never leave the process:
// it accepts what it signed itself and what the source's shared secrets sign.
func (c *Checker) Rehearsal() (*Checker, error) {
	r := &rehearsal{}
	s := c.settings
	s.Keys = nil
	out := *c
	b := newBinding(&s, c.limit)
	b.rehearsal = r
	var err error
	if out.auth, err = c.plan.bind(b); err != nil {
		return nil, err
	}
	out.testKeys = nil
	for _, k := range r.keys {
		text, err := k.configured()
		if err != nil {
			return nil, err
		}
		out.testKeys = append(out.testKeys, text)
	}
	return &out, nil
}

// TestKeys are the public keys of a Rehearsal, as they would stand in a source's
// secrets, or as the provider would publish them: PEM or a JWKS.
func (c *Checker) TestKeys() []string { return c.testKeys }

// sealHeader carries the seal of a request that nobody signs.
const sealHeader = "Acuse-Test-Seal"

// seal makes a check that only accepts what it sealed.
func (r *rehearsal) seal() check {
	c := &sealCheck{key: make([]byte, 32)}
	_, _ = rand.Read(c.key) // never fails
	return c
}

type sealCheck struct{ key []byte }

func (c *sealCheck) of(in *input) string {
	m := hmac.New(sha256.New, c.key)
	m.Write(in.r.Body)
	return hex.EncodeToString(m.Sum(nil))
}

func (c *sealCheck) verify(in *input) verdict {
	in.hidden = nil
	if !hmac.Equal([]byte(c.of(in)), []byte(in.r.Header.Get(sealHeader))) {
		return refuse(SignatureMismatch, "header:"+sealHeader, false)
	}
	return verdict{whole: true}
}

func (c *sealCheck) early(http.Header) *Refusal { return nil }
func (c *sealCheck) present(*input) bool        { return true }
func (c *sealCheck) marks(func(*placeholder))   {}
func (c *sealCheck) canSign() bool              { return true }

func (c *sealCheck) sign(s *signing) error {
	s.in.r.Header.Set(sealHeader, c.of(s.in))
	return nil
}
