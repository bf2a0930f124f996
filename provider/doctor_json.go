package provider

import (
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// otherJSON are the ways in which the common libraries write the same document: its
// values, the order of its keys and the text of its numbers stay.
func otherJSON(r *Request, yield func(string, []byte) bool) bool {
	text := string(r.Body)
	if first := strings.TrimLeft(text, " \t\r\n"); first == "" || (first[0] != '{' && first[0] != '[') || !soundJSON(text) {
		return true
	}
	tokens := jsonTokens(text)
	for _, l := range jsonLayouts {
		for _, s := range jsonTexts {
			how := "json_layout"
			if l.keep {
				how = "json_escapes"
			}
			if l.keep && s == textKept {
				continue
			}
			if !yield(how, writeJSON(tokens, l, s)) {
				return false
			}
		}
	}
	return true
}

// jsonToken is a sign, a text with its quotes, another value, or white space.
type jsonToken struct {
	text  string
	plain string // of a text: decoded
	kind  byte   // one of {}[],: or '"', '1', ' '
	lossy bool   // a text that cannot be written anew without loss
}

func jsonTokens(s string) []jsonToken {
	var out []jsonToken
	for i := 0; i < len(s); {
		c, n := s[i], 1
		t := jsonToken{kind: c}
		switch c {
		case '{', '}', '[', ']', ',', ':':
		case '"':
			n = textEnd(s[i+1:]) + 2
			t.lossy = json.Unmarshal([]byte(s[i:i+n]), &t.plain) != nil || strings.ContainsRune(t.plain, utf8.RuneError)
		case ' ', '\t', '\r', '\n':
			t.kind = ' '
			for i+n < len(s) && strings.IndexByte(" \t\r\n", s[i+n]) >= 0 {
				n++
			}
		default:
			t.kind = '1'
			for i+n < len(s) && strings.IndexByte(" \t\r\n,:{}[]\"", s[i+n]) < 0 {
				n++
			}
		}
		t.text = s[i : i+n]
		out = append(out, t)
		i += n
	}
	return out
}

// jsonLayout is where white space stands.
type jsonLayout struct {
	keep        bool // as it is
	item, colon string
	indent      string // not empty: a line for each item
}

var jsonLayouts = []jsonLayout{
	{keep: true}, {item: ",", colon: ":"}, {item: ", ", colon: ": "}, {item: ",", colon: ": ", indent: "  "},
	{item: ",", colon: ": ", indent: "    "}, {item: ",", colon: ": ", indent: "\t"},
}

// jsonText is how texts are escaped.
type jsonText int

const (
	textKept    jsonText = iota
	textPlain            // what must be
	textHTML             // <, > and & too
	textASCII            // all that is not ASCII
	textSlashed          // that, and slashes
	textSlash            // slashes
)

var jsonTexts = []jsonText{textKept, textPlain, textHTML, textASCII, textSlashed, textSlash}

func writeJSON(tokens []jsonToken, l jsonLayout, s jsonText) []byte {
	var b []byte
	depth := 0
	line := func() {
		if l.indent != "" {
			b = append(b, '\n')
			for range depth {
				b = append(b, l.indent...)
			}
		}
	}
	last := byte(0)
	for _, t := range tokens {
		if t.kind == ' ' {
			if l.keep {
				b = append(b, t.text...)
			}
			continue
		}
		opened := last == '{' || last == '['
		switch t.kind {
		case '}', ']':
			depth--
			if !opened {
				line()
			}
		default:
			if opened {
				line()
			}
		}
		switch {
		case t.kind == '{' || t.kind == '[':
			depth++
			b = append(b, t.kind)
		case t.kind == ',' && !l.keep:
			b = append(b, l.item...)
			line()
		case t.kind == ':' && !l.keep:
			b = append(b, l.colon...)
		case t.kind == '"' && s != textKept && !t.lossy:
			b = s.append(b, t.plain)
		default:
			b = append(b, t.text...)
		}
		last = t.kind
	}
	return b
}

func (s jsonText) append(b []byte, text string) []byte {
	b = append(b, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '/' && (s == textSlashed || s == textSlash):
			b = append(b, '\\', '/')
		case c < 0x20:
			if i := strings.IndexByte("\b\t\n\f\r", byte(c)); i >= 0 {
				b = append(b, '\\', "btnfr"[i])
			} else {
				b = appendUnicode(b, c)
			}
		case s == textHTML && (c == '<' || c == '>' || c == '&' || c == '\u2028' || c == '\u2029'):
			b = appendUnicode(b, c)
		case c >= 0x80 && (s == textASCII || s == textSlashed):
			if c > 0xffff {
				high, low := utf16.EncodeRune(c)
				b = appendUnicode(b, high)
				c = low
			}
			b = appendUnicode(b, c)
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}

func appendUnicode(b []byte, c rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15])
}
