package store

import (
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"
)

// EncodeHeader gives headers the form in which they are kept: a JSON object of
// arrays, readable in the sqlite3 shell: {"Content-Type":["application/json"]}.
// A byte over 0x7F is kept as the code point of the same number, so that every
// value comes back bit for bit whatever its charset.
func EncodeHeader(h http.Header) []byte {
	n := 2
	for k, vs := range h {
		n += len(k) + 8
		for _, v := range vs {
			n += len(v) + 4
		}
	}
	b := make([]byte, 0, n)
	b = append(b, '{')
	first := true
	for k, vs := range h {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendText(b, k), ':', '[')
		for i, v := range vs {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, v)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// DecodeHeader reads EncodeHeader's form.
func DecodeHeader(b []byte) (http.Header, error) {
	h := http.Header{}
	if len(b) == 0 {
		return h, nil
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return nil, fmt.Errorf("kept headers: %w", err)
	}
	for _, vs := range h {
		for i, v := range vs {
			vs[i] = latin1(v)
		}
	}
	return h, nil
}

// appendText appends s as a JSON string.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < 0x80:
			b = append(b, c)
		default:
			b = utf8.AppendRune(b, rune(c))
		}
	}
	return append(b, '"')
}

// latin1 turns the code points up to U+00FF back into bytes.
func latin1(s string) string {
	if isASCII(s) {
		return s
	}
	b := make([]byte, 0, len(s))
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
