package provider

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
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
	if !in.isForm() {
		return dst, false
	}
	form, err := url.ParseQuery(string(v))
	if err != nil {
		return dst, false
	}
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := slices.Clone(form[name])
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			dst = append(append(dst, name...), value...)
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

// xmlTag takes the text of the first element of a name.
func xmlTag(name string) (filter, error) {
	if name == "" {
		return nil, fmt.Errorf("filter xmltag: want xmltag:name")
	}
	return func(_ *input, dst, v []byte) ([]byte, bool) {
		d := xml.NewDecoder(bytes.NewReader(v))
		for {
			tok, err := d.Token()
			if err != nil {
				return dst, false
			}
			if start, ok := tok.(xml.StartElement); ok && start.Name.Local == name {
				var value string
				err := d.DecodeElement(&value, &start)
				return append(dst, value...), err == nil
			}
		}
	}, nil
}

// contentfulPath is encodeURI(path?encodeURIComponent(query)), so a query is escaped twice.
func contentfulPath(_ *input, dst, v []byte) ([]byte, bool) {
	const component = "-_.!~*'()"
	const uri = ";,/?:@&=+$#" + component
	path, query, has := strings.Cut(string(v), "?")
	if has {
		path += "?" + escapeBut(query, component)
	}
	return append(dst, escapeBut(path, uri)...), true
}

// escapeBut percent-encodes all but letters, digits and keep, as JavaScript does.
func escapeBut(s, keep string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// contentfulHeaders writes the headers that a list names: lower case, sorted,
// "name:value" trimmed, joined with ";". The list must cover itself and the time.
func contentfulHeaders(in *input, dst, v []byte) ([]byte, bool) {
	names := strings.Split(strings.ToLower(string(v)), ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	slices.Sort(names)
	if !slices.Contains(names, "x-contentful-signed-headers") || !slices.Contains(names, "x-contentful-timestamp") {
		return dst, false
	}
	for i, name := range names {
		values := in.r.Header[http.CanonicalHeaderKey(name)]
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
