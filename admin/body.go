package admin

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"acuse/store"
)

// The bounds of what a page shows of a body.
const (
	rawShown = 32 << 10
	hexShown = 4 << 10
)

// bodyView is a body in one of its three forms.
type bodyView struct {
	Form      string // tree, raw, hex
	Forms     []viewLink
	Tree      tree
	Raw       template.HTML
	Hex       string
	Size      int64
	Shown     int64
	Cut       bool
	Empty     bool
	BreakText string
	Download  string
}

// viewBody picks the form: what the address asks for if the bytes allow it, else
// the one that says most.
func (l *locale) viewBody(b []byte, asked string) bodyView {
	v := bodyView{Size: int64(len(b)), Shown: int64(len(b)), Empty: len(b) == 0}
	isText := utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
	first := bytes.TrimLeft(b, " \t\r\n\ufeff")
	isJSON := isText && len(first) > 0 && strings.IndexByte("{[", first[0]) >= 0
	switch {
	case asked == "hex", asked == "" && !isText, asked == "tree" && !isText:
		v.Form = "hex"
	case asked == "raw", !isJSON:
		v.Form = "raw"
	default:
		v.Form = "tree"
	}
	switch v.Form {
	case "tree":
		v.Tree = parseTree(b)
		v.Cut = v.Tree.Cut
		v.BreakText = l.breakText(v.Tree.Break)
	case "raw":
		var at *breakAt
		if isJSON {
			at = parseTree(b).Break
			v.BreakText = l.breakText(at)
		}
		v.Raw, v.Shown = rawText(b, at)
		v.Cut = v.Shown < v.Size
	case "hex":
		n := min(len(b), hexShown)
		v.Hex, v.Shown, v.Cut = dump(b[:n]), int64(n), n < len(b)
	}
	return v
}

func (l *locale) breakText(at *breakAt) string {
	if at == nil {
		return ""
	}
	return l.T("body.breaks", at.Line, at.Column, l.T(at.Key))
}

// rawText is the body as it came, escaped, with a mark at the break. When the break
// lies further than what is shown, the part around it is shown instead of the start.
func rawText(b []byte, at *breakAt) (template.HTML, int64) {
	from := 0
	if at != nil && at.Offset > rawShown-1024 {
		from = at.Offset - rawShown/2
	}
	to := min(len(b), from+rawShown)
	for from > 0 && !utf8.RuneStart(b[from]) {
		from--
	}
	for to < len(b) && !utf8.RuneStart(b[to]) {
		to--
	}
	var out strings.Builder
	write := func(p []byte) { template.HTMLEscape(&out, []byte(visible(string(p), true))) }
	if at != nil && at.Offset >= from && at.Offset <= to {
		write(b[from:at.Offset])
		end := at.Offset
		if end < to {
			_, n := utf8.DecodeRune(b[end:to])
			end += n
		}
		out.WriteString(`<mark id="break">`)
		if end == at.Offset || b[at.Offset] == '\n' {
			out.WriteString("⏎")
		}
		write(b[at.Offset:end])
		out.WriteString(`</mark>`)
		write(b[end:to])
	} else {
		write(b[from:to])
	}
	return template.HTML(out.String()), int64(to - from) // escaped piece by piece above
}

// dump is the common three columns: offset, bytes, what is printable.
func dump(b []byte) string { return hex.Dump(b) }

// downloadBody hands the raw bytes over as a file, never as something that a
// browser would show: an attachment, in a sandbox, of a type it does not guess.
func (a *Admin) downloadBody(w http.ResponseWriter, r *http.Request) error {
	id, ok := readID(r.PathValue("id"))
	if !ok {
		return store.ErrNotFound
	}
	p, err := a.opt.Archive.Payload(r.Context(), id)
	if err != nil {
		return err
	}
	sendBody(w, id, p.Body)
	return nil
}

func sendBody(w http.ResponseWriter, id int64, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="delivery-%d.body"`, id))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; base-uri 'none'; frame-ancestors 'none'; object-src 'none'")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the browser left: nobody to tell
}
