package effect

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// ErrPath reports a path that could mean one thing here and another at the upstream.
var ErrPath = errors.New("the path holds an empty segment, a dot segment, an encoded slash or an encoding of an encoding: " +
	"send it plain")

// Segments decodes the path of a call, as it came, part by part. What is matched against the
// allow-list is these, and what goes out is made of them again, so both sides see the
// same. ErrPath for a path that could be read in two ways.
func Segments(escaped string) ([]string, error) {
	rest, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return nil, ErrPath
	}
	if rest == "" {
		return []string{}, nil
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		s, err := url.PathUnescape(p)
		if err != nil || !plain(s) {
			return nil, ErrPath
		}
		parts[i] = s
	}
	return parts, nil
}

// plain tells whether a decoded segment has one reading everywhere.
func plain(s string) bool {
	if s == "" || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20, c == 0x7f, c == '/', c == '\\':
			return false
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			return false
		case c == ';' || c == '#' || c == '?':
			// A path parameter to some servers, the end of the path to others.
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// Join is the path that goes out.
func Join(segments []string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	if len(segments) == 0 {
		return "/"
	}
	return b.String()
}

// Pattern is one entry of an allow-list: "POST /v1/refunds", "GET /v1/refunds/{id}",
// "GET /v1/{rest...}".
type Pattern struct {
	Text     string // as the owner wrote it, spaces tidied
	method   string
	segments []string // "{}" is any one
	rest     bool     // any more may follow
}

// ParsePattern reads one entry.
func ParsePattern(text string) (Pattern, error) {
	method, path, ok := strings.Cut(strings.TrimSpace(text), " ")
	path = strings.TrimSpace(path)
	if !ok || method == "" || strings.ToUpper(method) != method || !token(method) {
		return Pattern{}, fmt.Errorf("%q: a method in capitals and a path are wanted, such as \"POST /v1/refunds\"", text)
	}
	p := Pattern{Text: method + " " + path, method: method}
	if path == "/" {
		return p, nil
	}
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return Pattern{}, fmt.Errorf("%q: the path begins with a slash", text)
	}
	parts := strings.Split(rest, "/")
	for i, s := range parts {
		switch {
		case strings.HasPrefix(s, "{") && strings.HasSuffix(s, "...}") && i == len(parts)-1:
			p.rest = true
		case strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") && !strings.Contains(s, "..."):
			p.segments = append(p.segments, "{}")
		case !plain(s) || strings.ContainsAny(s, "{}*"):
			return Pattern{}, fmt.Errorf("%q: %q is no part of a path: write {id} for any one part, {rest...} at the end for any more", text, s)
		default:
			p.segments = append(p.segments, s)
		}
	}
	return p, nil
}

func token(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < 'A' || r > 'Z') && r != '-' })
}

// Matches tells whether a call of the method to the decoded path is allowed by the entry.
func (p *Pattern) Matches(method string, segments []string) bool {
	if method != p.method || len(segments) < len(p.segments) || (len(segments) > len(p.segments) && !p.rest) {
		return false
	}
	for i, want := range p.segments {
		if want != "{}" && want != segments[i] {
			return false
		}
	}
	return true
}

// Match finds the first entry that allows a call.
func Match(list []Pattern, method string, segments []string) (Pattern, bool) {
	i := slices.IndexFunc(list, func(p Pattern) bool { return p.Matches(method, segments) })
	if i < 0 {
		return Pattern{}, false
	}
	return list[i], true
}

// Safe tells whether a method only reads.
func Safe(method string) bool { return method == "GET" || method == "HEAD" || method == "OPTIONS" }
