package provider

import (
	"fmt"
	"slices"
	"strings"
)

// template is a compiled text with placeholders, such as "{sig:t}.{body}".
type template struct {
	text  string // as written
	parts []part
}

// part is a literal, a placeholder, or an optional group: exactly one is set.
type part struct {
	lit string
	ph  *placeholder
	opt []part
}

// usage says where a template stands and so which sources it may name.
type usage int

const (
	inMessage  usage = iota // what a signature covers, and its timestamp
	inIdentity              // ids, types, resources, versions
	inItem                  // the same inside a batch
	inReply                 // what a handshake answers
	inConfig                // made of params alone: keys, expected values
)

// parseTemplate compiles a text.
func parseTemplate(path, text string, use usage) (*template, error) {
	p := tmplParser{rest: text, use: use}
	parts, err := p.parts(false)
	if err != nil {
		return nil, at(path, "template %q: %v", text, err)
	}
	return &template{text: text, parts: parts}, nil
}

// parseTemplates compiles texts that are tried in order.
func parseTemplates(path string, list texts, use usage) ([]*template, error) {
	var out []*template
	for i, text := range list {
		p := path
		if len(list) > 1 {
			p = fmt.Sprintf("%s[%d]", path, i)
		}
		t, err := parseTemplate(p, text, use)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

type tmplParser struct {
	rest string
	use  usage
}

// parts reads until the end, or until the "]" that closes an optional group.
func (p *tmplParser) parts(inGroup bool) ([]part, error) {
	var out []part
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			out = append(out, part{lit: lit.String()})
			lit.Reset()
		}
	}
	for p.rest != "" {
		c := p.rest[0]
		switch {
		case c == '\\' && len(p.rest) > 1 && strings.IndexByte(`[]{}\`, p.rest[1]) >= 0:
			lit.WriteByte(p.rest[1])
			p.rest = p.rest[2:]
		case c == '{':
			flush()
			ph, err := p.placeholder()
			if err != nil {
				return nil, err
			}
			out = append(out, part{ph: ph})
		case c == '[':
			if inGroup {
				return nil, fmt.Errorf("an optional part inside an optional part")
			}
			flush()
			p.rest = p.rest[1:]
			group, err := p.parts(true)
			if err != nil {
				return nil, err
			}
			out = append(out, part{opt: group})
		case c == ']':
			if !inGroup {
				return nil, fmt.Errorf("a ] without its [")
			}
			flush()
			p.rest = p.rest[1:]
			return out, nil
		case c == '}':
			return nil, fmt.Errorf("a } without its {")
		default:
			lit.WriteByte(c)
			p.rest = p.rest[1:]
		}
	}
	if inGroup {
		return nil, fmt.Errorf("a [ without its ]")
	}
	flush()
	return out, nil
}

// placeholder reads "{source:argument|filter|filter}".
func (p *tmplParser) placeholder() (*placeholder, error) {
	end := -1
	for i := 1; i < len(p.rest); i++ {
		if p.rest[i] == '\\' {
			i++
		} else if p.rest[i] == '}' {
			end = i
			break
		}
	}
	if end < 0 {
		return nil, fmt.Errorf("a { without its }")
	}
	text := p.rest[1:end]
	p.rest = p.rest[end+1:]
	return parsePlaceholder(text, p.use)
}

// parsePlaceholder reads "source:argument|filter|filter", the inside of a placeholder.
func parsePlaceholder(text string, use usage) (*placeholder, error) {
	words := splitEscaped(text, '|')
	ph, err := parseSource(words[0], use)
	if err != nil {
		return nil, err
	}
	ph.text = text
	if ph.src == srcParam && len(words) > 1 {
		if usual, ok := strings.CutPrefix(words[1], "or:"); ok { // what a param is when the source has none
			ph.usual, words = usual, slices.Delete(words, 1, 2)
		}
	}
	for i, w := range words[1:] {
		f, err := parseFilter(w)
		if err != nil {
			return nil, err
		}
		if i == 0 && strings.HasPrefix(w, "const:") {
			ph.objects = true
		}
		ph.filters = append(ph.filters, f)
	}
	ph.digest = len(words) > 1 && slices.ContainsFunc(words[1:], func(w string) bool { return digestFilter(w) != nil })
	return ph, nil
}

// splitEscaped splits at a byte that no backslash stands before; "\|" becomes "|".
func splitEscaped(s string, sep byte) []string {
	var out []string
	var cur []byte
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == sep:
			cur = append(cur, sep)
			i++
		case s[i] == sep:
			out = append(out, string(cur))
			cur = cur[:0]
		default:
			cur = append(cur, s[i])
		}
	}
	return append(out, string(cur))
}

// append writes the value behind dst. The placeholder is the one whose absence makes
// the whole template absent; nil: dst holds the value.
func (t *template) append(dst []byte, in *input) ([]byte, *placeholder) {
	return appendParts(dst, t.parts, in, false)
}

func appendParts(dst []byte, parts []part, in *input, full bool) ([]byte, *placeholder) {
	for i := range parts {
		p := &parts[i]
		start := len(dst)
		switch {
		case p.ph != nil:
			var ok bool
			if dst, ok = p.ph.append(dst, in); !ok || ((full || in.full) && len(dst) == start) {
				return dst, p.ph
			}
		case p.opt != nil:
			out, missing := appendParts(dst, p.opt, in, true)
			if missing != nil {
				out = out[:start]
			}
			dst = out
		default:
			dst = append(dst, p.lit...)
		}
	}
	return dst, nil
}

// feed writes the value into w piece by piece, so that a message of the size of the
// body is never built.
func (t *template) feed(w *feeder, in *input) *placeholder {
	for i := range t.parts {
		p := &t.parts[i]
		if p.ph != nil && p.ph.src == srcBody && len(p.ph.filters) == 0 {
			w.flush()
			w.h.Write(in.body)
			continue
		}
		var missing *placeholder
		if w.buf, missing = appendParts(w.buf, t.parts[i:i+1], in, false); missing != nil {
			return missing
		}
	}
	w.flush()
	return nil
}

// first gives the value of the first template that yields one which is not empty.
func first(list []*template, in *input) (string, *template) {
	for _, t := range list {
		out, missing := t.append(in.buf[:0], in)
		in.buf = out
		if missing == nil && len(out) > 0 {
			return string(out), t
		}
	}
	return "", nil
}

// each calls f for every placeholder.
func (t *template) each(f func(*placeholder)) { eachPart(t.parts, f) }

func eachPart(parts []part, f func(*placeholder)) {
	for _, p := range parts {
		if p.ph != nil {
			f(p.ph)
		}
		eachPart(p.opt, f)
	}
}
