package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// always are headers that hold credentials whatever the provider, unless it puts a
// signature there.
var always = []string{"Authorization", "Proxy-Authorization", "Cookie"}

// hiddenHeaders are the headers of which a rejection keeps digests only: a signature fits
// one body, so it is kept and can be checked again; a token lets in whoever reads it.
func hiddenHeaders(c Checker) []string {
	out, signs := c.TokenHeaders(), c.AuthHeaders()
	for _, name := range always {
		if !slices.Contains(signs, name) && !slices.Contains(out, name) {
			out = append(slices.Clip(out), name)
		}
	}
	return out
}

// digestMark begins what stands for a token.
const digestMark = "digest:"

// digest stands for a token: the same token has the same digest, and nobody gets from
// one to the other without the key.
func (r *rejects) digest(value string) string {
	m := hmac.New(sha256.New, r.key)
	m.Write([]byte(value))
	return digestMark + hex.EncodeToString(m.Sum(nil)[:16])
}

// schemeOf is the word before a token: it is no secret, and the digest is of the rest.
func schemeOf(value string) string {
	for _, scheme := range []string{"Bearer ", "Basic ", "Token "} {
		if len(value) >= len(scheme) && strings.EqualFold(value[:len(scheme)], scheme) {
			return value[:len(scheme)]
		}
	}
	return ""
}

// maskHeader is a copy in which the named headers are digests.
func (r *rejects) maskHeader(h http.Header, names []string) http.Header {
	return eachHidden(h, names, func(v string) (string, bool) {
		scheme := schemeOf(v)
		return scheme + r.digest(v[len(scheme):]), true
	})
}

// restoreHeader puts back what the digests of the named headers stand for, where the checker
// knows it, and leaves out the others.
func (r *rejects) restoreHeader(h http.Header, names []string, c Checker) http.Header {
	return eachHidden(h, names, func(v string) (string, bool) {
		scheme := schemeOf(v)
		text, ok := r.restore(v[len(scheme):], c)
		return scheme + text, ok
	})
}

func (r *rejects) restore(digest string, c Checker) (string, bool) {
	return c.Restore(func(text string) bool { return hmac.Equal([]byte(r.digest(text)), []byte(digest)) })
}

// eachHidden is a copy with the values of the named headers changed, or left out.
func eachHidden(h http.Header, names []string, change func(string) (string, bool)) http.Header {
	out := make(http.Header, len(h))
	for k, vs := range h {
		if !slices.ContainsFunc(names, func(n string) bool { return matches(n, k) }) {
			out[k] = vs
			continue
		}
		for _, v := range vs {
			if text, ok := change(v); ok {
				out[k] = append(out[k], text)
			}
		}
	}
	return out
}

// matches compares header names; one of a provider's file may end in a star.
func matches(pattern, name string) bool {
	if stem, ok := strings.CutSuffix(pattern, "*"); ok {
		return len(name) >= len(stem) && strings.EqualFold(name[:len(stem)], stem)
	}
	return strings.EqualFold(pattern, name)
}

// maskTarget replaces the values of the named query parameters by digests and leaves
// all else as it was written.
func (r *rejects) maskTarget(target string, names []string) string {
	return eachPair(target, names, func(value string) string {
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		return r.digest(value)
	})
}

// restoreTarget puts back what the digests stand for, where the checker knows it.
func (r *rejects) restoreTarget(target string, names []string, c Checker) string {
	return eachPair(target, names, func(value string) string {
		if text, ok := r.restore(value, c); ok {
			return url.QueryEscape(text)
		}
		return value
	})
}

func eachPair(target string, names []string, change func(value string) string) string {
	path, query, ok := strings.Cut(target, "?")
	if !ok || len(names) == 0 {
		return target
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil {
			plain = name
		}
		if slices.Contains(names, plain) {
			parts[i] = name + "=" + change(value)
		}
	}
	return path + "?" + strings.Join(parts, "&")
}
