package provider

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// tokenPlan is kind token: a shared value, compared in constant time.
type tokenPlan struct {
	from   place
	scheme string // "Bearer": the prefix without its space, compared without case
}

func parseToken(path string, f *authFile) (plan, error) {
	from, err := parsePlace(join(path, "from"), f.From)
	if err != nil {
		return nil, err
	}
	if f.Secret != nil && f.Secret.Encoding != "" && f.Secret.Encoding != "utf8" {
		return nil, at(join(path, "secret.encoding"), "a token is text: utf8")
	}
	if f.Secret != nil && (len(f.Secret.StripPrefix) > 0 || deref(f.Secret.Derive) != "" || f.Secret.UnlessPrefixed != "") {
		return nil, at(join(path, "secret"), "a token is compared as it is")
	}
	return &tokenPlan{from: from, scheme: f.Prefix}, nil
}

func (p *tokenPlan) each(f func(*placeholder)) { f(p.from.placeholder) }

func (p *tokenPlan) bind(b *binding) (check, error) {
	c := &tokenCheck{tokenPlan: p}
	for i, s := range b.secrets {
		if b.take(i, nil) {
			c.tokens = append(c.tokens, newToken(i+1, []byte(s)))
		}
	}
	return c, nil
}

// token is a secret and its digest: digests have one length, so that comparing them
// does not tell the length of the secret.
type token struct {
	slot   int
	secret []byte
	digest [sha256.Size]byte
}

func newToken(slot int, secret []byte) token {
	return token{slot: slot, secret: secret, digest: sha256.Sum256(secret)}
}

// matchToken gives the slot of the token that a value is, or 0.
func matchToken(tokens []token, value []byte) int {
	digest := sha256.Sum256(value)
	slot := 0
	for i := range tokens {
		if subtle.ConstantTimeCompare(tokens[i].digest[:], digest[:]) == 1 && slot == 0 {
			slot = tokens[i].slot
		}
	}
	return slot
}

type tokenCheck struct {
	*tokenPlan
	tokens []token
}

func (c *tokenCheck) verify(in *input) verdict {
	in.hidden = nil
	text, ok := c.from.read(in)
	if !ok {
		return refuse(MissingHeader, c.from.text, false)
	}
	if c.scheme != "" {
		if text, ok = cutScheme(text, c.scheme); !ok {
			return refuse(MalformedHeader, c.from.text, false)
		}
	}
	if slot := matchToken(c.tokens, []byte(text)); slot > 0 {
		return verdict{slot: slot}
	}
	return refuse(TokenMismatch, c.from.text, text != "")
}

// cutScheme takes "Bearer " off; the word is compared without case.
func cutScheme(text, scheme string) (string, bool) {
	if len(text) < len(scheme) {
		// "Bearer" alone, its space trimmed on the way, is an empty token
		return "", strings.EqualFold(text, strings.TrimRight(scheme, " "))
	}
	return text[len(scheme):], strings.EqualFold(text[:len(scheme)], scheme)
}

func (c *tokenCheck) early(h http.Header) *Refusal {
	if c.from.lacks(h) {
		return &Refusal{Reason: MissingHeader, Detail: c.from.text}
	}
	return nil
}

func (c *tokenCheck) present(in *input) bool {
	v, ok := c.from.read(in)
	return ok && v != ""
}

func (c *tokenCheck) marks(f func(*placeholder)) { f(c.from.placeholder) }

func (c *tokenCheck) canSign() bool { return len(c.tokens) > 0 }

func (c *tokenCheck) sign(s *signing) error {
	t, ok := pick(c.tokens, s.slot, func(t token) int { return t.slot })
	if !ok {
		return errCannotSign
	}
	return s.set(c.from, c.scheme+string(t.secret))
}
