package provider

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// Besides is the checker of the same source with one more secret, tried first, and with
// another tolerance: for requests that were refused. An empty secret and a tolerance of 0
// change nothing. Its slot 1 is the secret given, if there is one. Where the source has as
// many secrets as it may have, the last one is left out. The error hides the secret.
func (c *Checker) Besides(secret string, tolerance time.Duration) (*Checker, error) {
	s := c.settings
	if tolerance != 0 {
		s.Tolerance = tolerance
	}
	if secret != "" {
		s.Secrets = append([]string{secret}, s.Secrets[:min(len(s.Secrets), maxSecrets-1)]...)
		s.Waiting = false
	}
	return c.provider.Compile(s)
}

// Restore finds the text of a token or password that a good request would carry and that
// same says yes to. A refused request is kept with digests in their place; same compares
// with such a digest.
func (c *Checker) Restore(same func(text string) bool) (text string, ok bool) {
	schemes := []string{""}
	var add func(check)
	add = func(one check) {
		switch one := one.(type) {
		case *tokenCheck:
			if !slices.Contains(schemes, one.scheme) {
				schemes = append(schemes, one.scheme)
			}
		case anyOf:
			for _, c := range one {
				add(c)
			}
		case allOf:
			for _, c := range one {
				add(c)
			}
		case when:
			add(one.check)
		}
	}
	add(c.auth)
	for _, s := range c.settings.Secrets {
		for _, scheme := range schemes {
			if same(scheme + s) {
				return scheme + s, true
			}
		}
		if strings.Contains(s, ":") {
			if pair := base64.StdEncoding.EncodeToString([]byte(s)); same(pair) {
				return pair, true
			}
		}
	}
	return "", false
}
