package provider

import (
	"io"
	"mime"
	"mime/multipart"
	"strings"
)

// maxParts bounds the parts of a multipart body that are looked at.
const maxParts = 1000

// parseMultipart reads the fields of a multipart body. Senders write a form in one of
// two or three ways, which are read where they stand; whatever looks otherwise goes
// the long way.
func (p *pairs) parseMultipart(contentType, text string) {
	if p.plainParts(contentType, text) {
		return
	}
	p.reset()
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return
	}
	r := multipart.NewReader(strings.NewReader(text), params["boundary"])
	for range maxParts {
		part, err := r.NextRawPart()
		if err != nil {
			return
		}
		if part.FileName() != "" || part.FormName() == "" {
			continue
		}
		value, err := io.ReadAll(part) // bounded: the body is
		if err != nil {
			return
		}
		p.list = append(p.list, pair{part.FormName(), string(value)})
	}
}

const (
	tokenChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	crlf       = "\r\n"
)

// plainParts reads a body without preamble whose lines end in CRLF, to the end that it
// promises; false: it is another one, and what was read does not count.
func (p *pairs) plainParts(contentType, text string) bool {
	const start = "multipart/form-data; boundary="
	boundary, ok := strings.CutPrefix(contentType, start)
	if n := len(boundary); n > 2 && boundary[0] == '"' && boundary[n-1] == '"' {
		boundary = boundary[1 : n-1]
	}
	if !ok || boundary == "" || len(boundary) > 70 || strings.Trim(boundary, tokenChars) != "" {
		return false
	}
	p.buf = append(append(p.buf, "\r\n--"...), boundary...)
	delimiter := view(p.buf)
	rest, ok := strings.CutPrefix(text, delimiter[len(crlf):])
	for n := 0; ok && n < maxParts; n++ {
		var part string
		if rest, ok = strings.CutPrefix(rest, crlf); !ok {
			end, last := strings.CutPrefix(rest, "--")
			return last && n > 0 && (end == "" || strings.HasPrefix(end, crlf))
		}
		if part, rest, ok = strings.Cut(rest, delimiter); !ok {
			return false
		}
		head, value, found := strings.Cut(part, crlf+crlf)
		name, file, plain := partName(head)
		if !found || !plain {
			return false
		}
		if !file && name != "" {
			p.list = append(p.list, pair{name, value})
		}
	}
	return false
}

// partName reads the head of a part: Content-Disposition in its usual form, and headers
// that do not matter.
func partName(head string) (name string, file, ok bool) {
	seen := false
	for line := range strings.SplitSeq(head, crlf) {
		header, value, found := strings.Cut(line, ":")
		if !found || header == "" || strings.Trim(header, tokenChars) != "" || strings.ContainsRune(value, '\\') || strings.ContainsFunc(value, control) {
			return "", false, false
		}
		if !strings.EqualFold(header, "Content-Disposition") {
			continue
		}
		value, found = strings.CutPrefix(value, ` form-data; name="`)
		var more string
		if name, more, ok = strings.Cut(value, `"`); !found || !ok || seen {
			return "", false, false
		}
		seen = true
		if more == "" {
			continue
		}
		more, found = strings.CutPrefix(more, `; filename="`)
		fileName, end, closed := strings.Cut(more, `"`)
		if !found || !closed || end != "" || fileName == "" {
			return "", false, false
		}
		file = true
	}
	return name, file, seen
}

// control tells of characters that no header value holds.
func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
