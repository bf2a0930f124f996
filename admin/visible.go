package admin

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible makes text from outside safe to read: characters that steer the terminal
// or the direction of writing, and bytes that are no UTF-8, are written as their
// code ("\u202E", "\xFF"), so that nothing can hide or turn what stands beside it.
// Line breaks and tabs stay when lines is true. It does not escape HTML.
func visible(s string, lines bool) string {
	if clean(s, lines) {
		return s
	}
	var b strings.Builder
	before := rune(0)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case joins(before, r):
			b.WriteRune(r)
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02X`, s[i])
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case lines && r == '\r':
			if !strings.HasPrefix(s[i+1:], "\n") {
				b.WriteString(`\r`)
			}
		case hides(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i, before = i+n, r
	}
	return b.String()
}

func clean(s string, lines bool) bool {
	if !utf8.ValidString(s) {
		return false
	}
	before := rune(0)
	for _, r := range s {
		if hides(r) && !(lines && (r == '\n' || r == '\t')) && !joins(before, r) {
			return false
		}
		before = r
	}
	return true
}

// joins tells of the two joiners where they belong: within an emoji or a word of a
// script that needs them, never after a letter of ours.
func joins(before, r rune) bool { return (r == '\u200c' || r == '\u200d') && before > 0x24f }

// hides tells of control characters, marks of writing direction, and characters
// without width.
func hides(r rune) bool {
	if r < 0x80 {
		return r < 0x20 || r == 0x7f
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || r == '\u2028' || r == '\u2029'
}

// short cuts s to n characters for a row; the whole stands on the page of its own.
func short(s string, n int) string {
	s = visible(s, false)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}
