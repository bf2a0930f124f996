package provider

import (
	"strings"
	"unsafe"
)

// maxFields bounds the fields of a form or query: url.ParseQuery has the same bound.
const maxFields = 10_000

// pairs are the fields of a form or query as they stand there. They live as long as the
// input they belong to: texts that nothing hides are views, the others stand in buf.
type pairs struct {
	list []pair
	buf  []byte
}

type pair struct{ name, value string }

// get gives the first value of a name.
func (p *pairs) get(name string) (string, bool) {
	for i := range p.list {
		if p.list[i].name == name {
			return p.list[i].value, true
		}
	}
	return "", false
}

// reset forgets the fields and keeps the memory, unless it is large.
func (p *pairs) reset() {
	const keep = 256
	clear(p.list) // they point into a body
	p.list, p.buf = p.list[:0], p.buf[:0]
	if cap(p.list) > keep {
		p.list = nil
	}
	if cap(p.buf) > keepBuffer {
		p.buf = nil
	}
}

// parse reads what can be read of an urlencoded text. It understands what
// url.ParseQuery does; whole is false where that has an error.
func (p *pairs) parse(text string) (whole bool) {
	p.reset()
	if strings.Count(text, "&") >= maxFields {
		return false
	}
	whole = true
	for text != "" {
		var field string
		field, text, _ = strings.Cut(text, "&")
		if field == "" {
			continue
		}
		name, value, _ := strings.Cut(field, "=")
		name, okName := p.plain(name)
		value, okValue := p.plain(value)
		if strings.Contains(field, ";") || !okName || !okValue {
			whole = false
			continue
		}
		p.list = append(p.list, pair{name, value})
	}
	return whole
}

// plain undoes the escapes of a text.
func (p *pairs) plain(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, true
	}
	start := len(p.buf)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '+':
			p.buf = append(p.buf, ' ')
		case '%':
			if i+2 >= len(s) {
				return "", false
			}
			high, low := nibble(s[i+1]), nibble(s[i+2])
			if high > 15 || low > 15 {
				return "", false
			}
			p.buf = append(p.buf, high<<4|low)
			i += 2
		default:
			p.buf = append(p.buf, c)
		}
	}
	return view(p.buf[start:]), true
}

func nibble(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// view shows bytes as a text without a copy: nobody writes to them while it is used.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// parseForm reads the fields of an urlencoded or multipart body; files are left out.
func (p *pairs) parseForm(ct []string, text string) {
	p.reset()
	if len(ct) == 0 {
		return
	}
	switch formType(ct[0]) {
	case "application/x-www-form-urlencoded":
		p.parse(text)
	case "multipart/form-data":
		p.parseMultipart(ct[0], text)
	}
}
