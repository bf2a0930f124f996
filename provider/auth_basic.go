package provider

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

// basicPlan is kind basic: user and password of HTTP Basic, "user:password".
type basicPlan struct{ from place }

func parseBasic(path string, f *authFile) (plan, error) {
	if f.Secret != nil && f.Secret.Encoding != "" && f.Secret.Encoding != "utf8" {
		return nil, at(join(path, "secret.encoding"), "user:password is text: utf8")
	}
	from, err := parsePlace(path, "header:Authorization")
	return &basicPlan{from}, err
}

func (p *basicPlan) each(f func(*placeholder)) { f(p.from.placeholder) }

func (p *basicPlan) bind(b *binding) (check, error) {
	c := &basicCheck{basicPlan: p}
	for i, s := range b.secrets {
		var err error
		if !strings.Contains(s, ":") {
			err = errors.New("is not user:password")
		}
		if b.take(i, err) {
			c.users = append(c.users, newToken(i+1, []byte(s)))
		}
	}
	return c, nil
}

type basicCheck struct {
	*basicPlan
	users []token
}

func (c *basicCheck) verify(in *input) verdict {
	in.hidden = nil
	text, ok := c.from.read(in)
	if !ok {
		return refuse(MissingHeader, c.from.text, false)
	}
	text, ok = cutScheme(text, "Basic ")
	if !ok {
		return refuse(MalformedHeader, c.from.text, false)
	}
	pair, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return refuse(MalformedHeader, c.from.text, false)
	}
	if slot := matchToken(c.users, pair); slot > 0 {
		return verdict{slot: slot}
	}
	return refuse(TokenMismatch, c.from.text, true)
}

func (c *basicCheck) early(h http.Header) *Refusal {
	if c.from.lacks(h) {
		return &Refusal{Reason: MissingHeader, Detail: c.from.text}
	}
	return nil
}

func (c *basicCheck) present(in *input) bool {
	v, ok := c.from.read(in)
	return ok && v != ""
}

func (c *basicCheck) marks(f func(*placeholder)) { f(c.from.placeholder) }

func (c *basicCheck) canSign() bool { return len(c.users) > 0 }

func (c *basicCheck) sign(s *signing) error {
	u, ok := pick(c.users, s.slot, func(t token) int { return t.slot })
	if !ok {
		return errCannotSign
	}
	return s.set(c.from, "Basic "+base64.StdEncoding.EncodeToString(u.secret))
}
