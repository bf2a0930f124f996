package admin

import (
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// hidden stands where a secret was. It is not translated: people search for it.
const hidden = "[hidden]"

// secretParts of a header's or a parameter's name say that its value opens
// something, whatever the provider.
var secretParts = []string{"authorization", "cookie", "signature", "secret", "token", "password", "passwd",
	"api-key", "apikey", "api_key", "access-key", "access_key", "private-key", "hmac", "x-auth", "-sig", "credential"}

var secretParams = []string{"key", "sig", "sign", "auth", "code", "pass", "pwd", "jwt", "hash"}

// mask knows which values of one source never reach a page or an answer.
type mask struct {
	headers map[string]bool // canonical
	params  map[string]bool // lower case
}

func maskOf(s Source) mask {
	m := mask{headers: map[string]bool{}, params: map[string]bool{}}
	for _, h := range s.AuthHeaders {
		m.headers[textproto.CanonicalMIMEHeaderKey(h)] = true
	}
	for _, p := range s.AuthQuery {
		m.params[strings.ToLower(p)] = true
	}
	return m
}

func (m mask) hidesHeader(name string) bool {
	if m.headers[textproto.CanonicalMIMEHeaderKey(name)] {
		return true
	}
	low := strings.ToLower(name)
	return slices.ContainsFunc(secretParts, func(p string) bool { return strings.Contains(low, p) })
}

func (m mask) hidesParam(name string) bool {
	low := strings.ToLower(name)
	return m.params[low] || slices.Contains(secretParams, low) ||
		slices.ContainsFunc(secretParts, func(p string) bool { return strings.Contains(low, p) })
}

// headers is a copy of h with the values of secret ones replaced.
func (m mask) headersOf(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for k, vs := range h {
		if m.hidesHeader(k) {
			masked := make([]string, len(vs))
			for i := range masked {
				masked[i] = hidden
			}
			out[k] = masked
			continue
		}
		out[k] = slices.Clone(vs)
	}
	return out
}

// target is a path and query with the values of secret parameters replaced; the
// rest stays as it came, escapes included.
func (m mask) target(t string) string {
	path, query, ok := strings.Cut(t, "?")
	if !ok {
		return t
	}
	parts := strings.Split(query, "&")
	for i, p := range parts {
		name, _, has := strings.Cut(p, "=")
		plain, err := url.QueryUnescape(name)
		if has && (err != nil || m.hidesParam(plain)) {
			parts[i] = name + "=" + hidden
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// maskURL hides what a configured address may carry: user, password, every value
// of its query, and the fragment. What is no address is hidden whole.
func maskURL(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return hidden
	}
	out := u.Scheme + "://"
	if u.User != nil {
		out += hidden + "@"
	}
	out += u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		names := []string{}
		for name := range u.Query() {
			names = append(names, url.QueryEscape(name)+"="+hidden)
		}
		slices.Sort(names)
		out += "?" + strings.Join(names, "&")
	}
	return out
}
