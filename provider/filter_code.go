package provider

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The filters below are code for one sender each.

// sortedPairs is Twilio's form of urlencoded parameters: names in code point order,
// values of a name made unique and sorted, each written behind its name. A request
// whose URL carries bodySHA256 is bound to its body by that digest and has no pairs:
// otherwise the bare URL would pass with any body taken away.
func sortedPairs(in *input, dst, v []byte) ([]byte, bool) {
	if _, ok := in.query("bodySHA256"); ok {
		return dst, false
	}
	if len(v) == 0 {
		return dst, true
	}
	if !in.isForm() || !in.sorted.parse(view(v)) {
		return dst, false
	}
	list := in.sorted.list
	slices.SortFunc(list, func(a, b pair) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	for i, p := range list {
		if i == 0 || p != list[i-1] {
			dst = append(append(dst, p.name...), p.value...)
		}
	}
	return dst, true
}

// escapeUnicodeSlash is how Box's sender may have written a body before signing it:
// \uXXXX for every UTF-16 unit from U+007F on, and "/" as "\/" unless escaped already.
func escapeUnicodeSlash(_ *input, dst, v []byte) ([]byte, bool) {
	for i := 0; i < len(v); {
		c := v[i]
		switch {
		case c == '\\' && i+1 < len(v) && v[i+1] < utf8.RuneSelf:
			dst = append(dst, c, v[i+1])
			i += 2
		case c == '/':
			dst = append(dst, '\\', '/')
			i++
		case c < 0x7f:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(v[i:])
			if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
				dst = fmt.Appendf(dst, `\u%04x\u%04x`, hi, lo)
			} else {
				dst = fmt.Appendf(dst, `\u%04x`, r)
			}
			i += n
		}
	}
	return dst, true
}

// braintreeSign answers Braintree's challenge: 20 to 32 hex characters, nothing else,
// or we would sign whatever a stranger asks for.
func braintreeSign(in *input, dst, v []byte) ([]byte, bool) {
	if len(v) < 20 || len(v) > 32 || in.first == "" {
		return dst, false
	}
	for _, c := range v {
		if !strings.ContainsRune("0123456789abcdef", rune(c)) {
			return dst, false
		}
	}
	key := sha1.Sum([]byte(in.first))
	h := hmac.New(sha1.New, key[:])
	h.Write(v)
	return hex.AppendEncode(dst, h.Sum(nil)), true
}

// contentfulPath is encodeURI(path?encodeURIComponent(query)), so a query is escaped twice.
func contentfulPath(in *input, dst, v []byte) ([]byte, bool) {
	const component = "-_.!~*'()"
	const uri = ";,/?:@&=+$#" + component
	path, query, has := bytes.Cut(v, []byte("?"))
	dst = escapeBut(dst, path, uri)
	if has {
		dst = append(dst, '?')
		in.buf = escapeBut(in.buf[:0], query, component)
		dst = escapeBut(dst, in.buf, uri)
	}
	return dst, true
}

// escapeBut percent-encodes all but letters, digits and keep, as JavaScript does.
func escapeBut(dst, s []byte, keep string) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range s {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(keep, c) >= 0 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

// contentfulHeaders writes the headers that a list names: lower case, sorted,
// "name:value" trimmed, joined with ";". The list must cover itself and the time.
func contentfulHeaders(in *input, dst, v []byte) ([]byte, bool) {
	names := strings.Split(strings.ToLower(view(v)), ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	slices.Sort(names)
	if !slices.Contains(names, "x-contentful-signed-headers") || !slices.Contains(names, "x-contentful-timestamp") {
		return dst, false
	}
	for i, name := range names {
		values := valuesOf(in.r.Header, name)
		if len(values) == 0 {
			return dst, false
		}
		if i > 0 {
			dst = append(dst, ';')
		}
		dst = append(append(append(dst, name...), ':'), strings.TrimSpace(values[0])...)
	}
	return dst, true
}

// valuesOf finds a header by its name in lower case without making the canonical name,
// which costs memory for each.
func valuesOf(h http.Header, lower string) []string {
	for name, values := range h {
		if len(name) == len(lower) && strings.EqualFold(name, lower) {
			return values
		}
	}
	return nil
}
