package provider

import (
	"maps"
	"slices"
)

// TokenHeaders are those of AuthHeaders that let whoever reads them in: tokens, and
// secrets that a handshake brings, but no signatures, which fit one body only. A
// refused request is kept with its signatures, so that it can be checked again under
// another secret, and without its tokens.
func (c *Checker) TokenHeaders() []string { return c.tokenNames(srcHeader) }

// TokenQuery is the same of query parameters.
func (c *Checker) TokenQuery() []string { return c.tokenNames(srcQuery) }

func (c *Checker) tokenNames(src source) []string {
	set := map[string]bool{}
	add := func(p *placeholder) {
		if p.src == src {
			set[p.arg] = true
		}
	}
	tokens(c.auth, add)
	for _, h := range c.handshakes {
		if h.from != nil {
			add(h.from.placeholder)
		}
		if h.capture != nil {
			h.capture.each(add)
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// tokens calls f for the places of tokens.
func tokens(c check, f func(*placeholder)) {
	switch c := c.(type) {
	case *signedCheck: // a signature is worth nothing without its body
	case *jwtCheck:
		if c.bodyHash == nil {
			c.marks(f)
		}
	case anyOf:
		for _, one := range c {
			tokens(one, f)
		}
	case allOf:
		for _, one := range c {
			tokens(one, f)
		}
	case when:
		tokens(c.check, f)
	default:
		c.marks(f)
	}
}
