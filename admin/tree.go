package admin

import (
	"html/template"
	"strings"
	"unicode/utf8"
)

// The bounds of a tree. A body of 2 MB or of ten thousand brackets makes a page of
// the same size as any other; the whole is one click away as a download.
const (
	treeNodes = 1500
	treeDepth = 48
	treeValue = 2000 // bytes of one text that are shown
)

// tree is a body as nested, foldable elements: keys in their order, numbers and
// texts as they were written.
type tree struct {
	HTML  template.HTML
	Break *breakAt // where the JSON breaks; nil: it does not
	Cut   bool     // more was there than is shown
}

// breakAt is the first byte that JSON does not allow there.
type breakAt struct {
	Offset, Line, Column int // Line and Column from 1; Column counts characters
	Key                  string
}

// walker reads JSON and writes elements in one pass. Every byte that it writes of
// the body goes through text, which escapes it.
type walker struct {
	src   []byte
	pos   int
	out   strings.Builder
	nodes int
	cut   bool
	fault string // key of the words for what is wrong
	broke int    // where
}

// parseTree never fails: what is no JSON yields the part before the break.
func parseTree(body []byte) tree {
	w := &walker{src: body}
	w.space()
	w.value("", 0)
	w.space()
	if w.pos < len(w.src) {
		w.fail("json.more") // unless it broke before
	}
	t := tree{HTML: template.HTML(w.out.String()), Cut: w.cut} // written by text and literals of this file only
	if w.fault != "" {
		t.Break = place(body, w.broke, w.fault)
	}
	return t
}

func place(body []byte, at int, key string) *breakAt {
	at = min(at, len(body))
	b := &breakAt{Offset: at, Line: 1, Key: key}
	start := 0
	for i, c := range body[:at] {
		if c == '\n' {
			b.Line, start = b.Line+1, i+1
		}
	}
	b.Column = utf8.RuneCount(body[start:at]) + 1
	return b
}

func (w *walker) space() {
	for w.pos < len(w.src) && strings.IndexByte(" \t\r\n", w.src[w.pos]) >= 0 {
		w.pos++
	}
}

func (w *walker) fail(key string) bool {
	if w.fault == "" {
		w.fault, w.broke = key, w.pos
	}
	return false
}

// quiet tells that the bounds are reached: the rest is checked, not written.
func (w *walker) quiet() bool { return w.nodes > treeNodes }

func (w *walker) put(s string) {
	if !w.quiet() {
		w.out.WriteString(s)
	}
}

func (w *walker) text(class string, b []byte) {
	if w.quiet() {
		w.cut = true
		return
	}
	more := ""
	if len(b) > treeValue {
		n := treeValue
		for n > 0 && !utf8.RuneStart(b[n]) {
			n--
		}
		b, more, w.cut = b[:n], "…", true
	}
	w.out.WriteString(`<span class="` + class + `">`)
	template.HTMLEscape(&w.out, []byte(visible(string(b), false)+more))
	w.out.WriteString(`</span>`)
}

// value reads one value; label is the key or the index before it, as bytes of the
// source.
func (w *walker) value(label string, depth int) bool {
	if w.pos >= len(w.src) {
		return w.fail("json.end")
	}
	w.nodes++
	switch c := w.src[w.pos]; {
	case c == '{' || c == '[':
		return w.container(label, depth, c)
	case c == '"':
		s, ok := w.str()
		w.leaf(label, "jt", s)
		return ok
	case c == '-' || c >= '0' && c <= '9':
		s, ok := w.number()
		w.leaf(label, "jn", s)
		return ok
	default:
		for _, word := range []string{"true", "false", "null"} {
			if strings.HasPrefix(string(w.src[w.pos:min(len(w.src), w.pos+5)]), word) {
				w.pos += len(word)
				w.leaf(label, "jl", []byte(word))
				return true
			}
		}
		return w.fail("json.value")
	}
}

func (w *walker) leaf(label, class string, b []byte) {
	w.put(`<li>`)
	w.label(label)
	w.text(class, b)
	w.put(`</li>`)
}

func (w *walker) label(label string) {
	if label != "" && !w.quiet() {
		w.text("jk", []byte(label))
		w.put(`<span class="jp">: </span>`)
	}
}

// container reads an object or an array. Below treeDepth the values are checked
// without being nested further: a loop over a stack of closing brackets.
func (w *walker) container(label string, depth int, open byte) bool {
	if depth >= treeDepth {
		start := w.pos
		ok := w.skip()
		w.leaf(label, "jp", w.src[start:min(w.pos, start+80)])
		w.cut = true
		return ok
	}
	shut := byte('}')
	if open == '[' {
		shut = ']'
	}
	w.pos++
	w.space()
	if w.pos < len(w.src) && w.src[w.pos] == shut {
		w.pos++
		w.leaf(label, "jp", []byte{open, shut})
		return true
	}
	// Closed from the fourth level on, so that the outline can be seen first.
	fold := ` open`
	if depth > 3 {
		fold = ""
	}
	w.put(`<li><details` + fold + `><summary>`)
	w.label(label)
	w.put(`<span class="jp">` + string(open) + `</span></summary><ul>`)
	written := !w.quiet()
	ok := w.members(depth, open, shut)
	if written {
		w.out.WriteString(`</ul>`)
		if ok {
			w.out.WriteString(`<span class="jp">` + string(shut) + `</span>`)
		}
		w.out.WriteString(`</details></li>`)
	}
	return ok
}

func (w *walker) members(depth int, open, shut byte) bool {
	for {
		w.space()
		label := ""
		if open == '{' {
			if w.pos >= len(w.src) {
				return w.fail("json.end")
			}
			if w.src[w.pos] != '"' {
				return w.fail("json.key")
			}
			s, ok := w.str()
			if !ok {
				return false
			}
			label = string(s)
			w.space()
			if w.pos >= len(w.src) {
				return w.fail("json.end")
			}
			if w.src[w.pos] != ':' {
				return w.fail("json.colon")
			}
			w.pos++
			w.space()
		}
		if !w.value(label, depth+1) {
			return false
		}
		w.space()
		if w.pos >= len(w.src) {
			return w.fail("json.end")
		}
		switch w.src[w.pos] {
		case ',':
			w.pos++
		case shut:
			w.pos++
			return true
		default:
			return w.fail("json.comma")
		}
	}
}

// str reads a text and returns it as written, quotes and escapes included.
func (w *walker) str() ([]byte, bool) {
	start := w.pos
	for w.pos++; w.pos < len(w.src); w.pos++ {
		switch c := w.src[w.pos]; {
		case c == '"':
			w.pos++
			return w.src[start:w.pos], true
		case c == '\\':
			w.pos++
			if !w.escape() {
				return w.src[start:w.pos], w.fail("json.escape")
			}
		case c < 0x20:
			return w.src[start:w.pos], w.fail("json.control")
		}
	}
	w.pos = len(w.src)
	return w.src[start:], w.fail("json.end")
}

// escape looks at what follows a backslash and stands on its last byte. A body that
// ends within it is no bad escape: it ends too early.
func (w *walker) escape() bool {
	if w.pos >= len(w.src) {
		return true
	}
	if w.src[w.pos] != 'u' {
		return strings.IndexByte(`"\/bfnrt`, w.src[w.pos]) >= 0
	}
	for range 4 {
		if w.pos++; w.pos >= len(w.src) {
			return true
		}
		if strings.IndexByte("0123456789abcdefABCDEF", w.src[w.pos]) < 0 {
			return false
		}
	}
	return true
}

// number reads a number by JSON's rule and keeps its digits.
func (w *walker) number() ([]byte, bool) {
	start := w.pos
	digits := func() bool {
		n := w.pos
		for w.pos < len(w.src) && w.src[w.pos] >= '0' && w.src[w.pos] <= '9' {
			w.pos++
		}
		return w.pos > n
	}
	is := func(set string) bool { return w.pos < len(w.src) && strings.IndexByte(set, w.src[w.pos]) >= 0 }
	if is("-") {
		w.pos++
	}
	first := w.pos
	ok := digits() && (w.src[first] != '0' || w.pos == first+1)
	if ok && is(".") {
		w.pos++
		ok = digits()
	}
	if ok && is("eE") {
		w.pos++
		if is("+-") {
			w.pos++
		}
		ok = digits()
	}
	if !ok {
		return w.src[start:w.pos], w.fail("json.number")
	}
	return w.src[start:w.pos], true
}

// skip passes over a container without nesting: it only counts brackets and steps
// over texts.
func (w *walker) skip() bool {
	for level := 0; w.pos < len(w.src); {
		switch w.src[w.pos] {
		case '"':
			if _, ok := w.str(); !ok {
				return false
			}
			continue
		case '{', '[':
			level++
		case '}', ']':
			level--
		}
		w.pos++
		if level == 0 {
			return true
		}
	}
	return w.fail("json.end")
}
