package provider

import (
	"bytes"
	"iter"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// bodyChanged tries the body as it may have been before somebody on the way wrote it
// anew. What cannot be undone (a lost key order, a lost character) cannot be shown.
func (d *doctor) bodyChanged(refusal *Refusal) Diagnosis {
	switch refusal.Reason {
	case SignatureMismatch, TokenMismatch, ClaimMismatch, MalformedBody, MissingHeader:
	default:
		return Diagnosis{}
	}
	if d.r.Body == nil || len(d.r.Body) > maxDiagnosed {
		return Diagnosis{}
	}
	for how, body := range formerBodies(d.r) {
		if len(body) > maxDiagnosed || bytes.Equal(body, d.r.Body) {
			continue
		}
		r := *d.r
		r.Body = body
		if how == "packed" {
			r.Header = d.r.Header.Clone()
			r.Header.Del("Content-Encoding")
		}
		if d.passes(d.c, &r) {
			return Diagnosis{Cause: BodyChanged, How: how}
		}
		if d.tried >= maxTried || d.hashed >= maxHashed {
			break
		}
	}
	return Diagnosis{}
}

// formerBodies are what the body may have been, with a word for what was done to it.
func formerBodies(r *Request) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, group := range []func(*Request, func(string, []byte) bool) bool{unpacked, otherEnds, otherCharsets, otherForms, otherJSON} {
			if !group(r, yield) {
				return
			}
		}
	}
}

func unpacked(r *Request, yield func(string, []byte) bool) bool {
	encoding := r.Header.Get("Content-Encoding")
	if encoding == "" && bytes.HasPrefix(r.Body, []byte{0x1f, 0x8b}) {
		encoding = "gzip"
	}
	if encoding == "" {
		return true
	}
	b, err := unpack(encoding, r.Body, maxDiagnosed)
	return err != nil || yield("packed", b)
}

// otherEnds are the body with other ends of lines, and with other ends.
func otherEnds(r *Request, yield func(string, []byte) bool) bool {
	b := r.Body
	crlf, lf := []byte("\r\n"), []byte("\n")
	unix := bytes.ReplaceAll(b, crlf, lf)
	return yield("newline_added", bytes.TrimRight(b, "\r\n")) &&
		yield("newline_lost", append(slices.Clip(b), '\n')) &&
		yield("newline_lost", append(slices.Clip(b), '\r', '\n')) &&
		yield("space_added", bytes.TrimSpace(b)) &&
		yield("line_ends", unix) &&
		yield("line_ends", bytes.ReplaceAll(unix, lf, crlf))
}

var utf8Mark = []byte("\xef\xbb\xbf")

func otherCharsets(r *Request, yield func(string, []byte) bool) bool {
	b := r.Body
	if rest, had := bytes.CutPrefix(b, utf8Mark); had {
		if !yield("byte_order_mark", rest) {
			return false
		}
	} else if !yield("byte_order_mark", append(slices.Clip(utf8Mark), b...)) {
		return false
	}
	if narrow, ok := toLatin1(b); ok && !yield("charset", narrow) { // it was Latin-1, or UTF-8 encoded twice
		return false
	}
	if utf8.Valid(b) {
		return true
	}
	wide := make([]byte, 0, len(b)+len(b)/8)
	for _, c := range b {
		wide = utf8.AppendRune(wide, rune(c))
	}
	return yield("charset", wide)
}

// toLatin1 writes each character as one byte, those of Windows-1252 too.
func toLatin1(b []byte) ([]byte, bool) {
	if !utf8.Valid(b) {
		return nil, false
	}
	const high = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"
	windows := []rune(high)
	out := make([]byte, 0, len(b))
	for _, c := range string(b) {
		if c <= 0xff {
			out = append(out, byte(c))
			continue
		}
		i := slices.Index(windows, c)
		if i < 0 {
			return nil, false
		}
		out = append(out, byte(0x80+i))
	}
	return out, true
}

// formStyle is a way to write the fields of a form.
type formStyle struct {
	space string
	plain string // characters left as they are, besides letters and digits
	lower bool   // hex digits
}

var formStyles = []formStyle{
	{space: "+", plain: "-_."}, {space: "+", plain: "-_.~"}, {space: "%20", plain: "-_.~"}, {space: "+", plain: "*-._"},
	{space: "%20", plain: "!'()*~-_."}, {space: "+", plain: "-_.~", lower: true}, {space: "%20", plain: "-_.~", lower: true}, {space: "+", plain: "*-._", lower: true},
}

func otherForms(r *Request, yield func(string, []byte) bool) bool {
	const maxPairs = 2000
	text := string(r.Body)
	if strings.ContainsAny(text, "{<\n") || !strings.Contains(text, "=") || strings.Count(text, "&") > maxPairs {
		return true
	}
	var pairs [][2]string
	for part := range strings.SplitSeq(text, "&") {
		k, v, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(k)
		value, err2 := url.QueryUnescape(v)
		if err != nil || err2 != nil {
			return true
		}
		pairs = append(pairs, [2]string{name, value})
	}
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	for _, list := range [][][2]string{pairs, sorted} {
		for _, s := range formStyles {
			if !yield("form", s.write(list)) {
				return false
			}
		}
	}
	return true
}

func (s formStyle) write(pairs [][2]string) []byte {
	var b []byte
	for i, p := range pairs {
		if i > 0 {
			b = append(b, '&')
		}
		b = s.append(b, p[0])
		b = append(b, '=')
		b = s.append(b, p[1])
	}
	return b
}

func (s formStyle) append(b []byte, text string) []byte {
	digits := "0123456789ABCDEF"
	if s.lower {
		digits = "0123456789abcdef"
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(s.plain, c) >= 0:
			b = append(b, c)
		case c == ' ':
			b = append(b, s.space...)
		default:
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return b
}
