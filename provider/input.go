package provider

import (
	"bytes"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// input is one request as the templates see it. It is pooled: nothing that leaves the
// package may point into its buffers.
type input struct {
	r      *Request
	now    time.Time
	params map[string]string
	first  string // the first configured secret, for the hmac filter
	secret string // the secret being tried, for {secret}
	url    string // the public URL, or its variant being tried
	body   []byte // what signatures cover: wire bytes, or decoded
	sig    container
	sigs   signatures
	item   string // JSON of the batch item being read
	claims string // JSON of a proven token; kid is its key id
	kid    string
	hidden *hidden
	full   bool // an empty value counts as absent: for identity
	tmp    []byte
	buf    []byte

	text     string // the decoded body as text: a view of its bytes
	jsonDoc  string // text, when it is sound JSON
	jsonDone bool
	forms    url.Values
	formDone bool
	queries  url.Values
	queryOK  bool
}

var inputs = sync.Pool{New: func() any { return new(input) }}

// open prepares an input for a request; close gives it back.
func (c *Checker) open(r *Request, now time.Time) *input {
	in := inputs.Get().(*input)
	*in = input{r: r, now: now, params: c.params, first: c.firstSecret, url: r.URL, body: r.Body, tmp: in.tmp[:0], buf: in.buf[:0]}
	in.setText(r.Body)
	return in
}

func (in *input) close() {
	const keep = 64 << 10 // larger buffers are left to the collector
	tmp, buf := in.tmp, in.buf
	if cap(tmp) > keep || cap(buf) > keep {
		tmp, buf = nil, nil
	}
	*in = input{tmp: tmp, buf: buf}
	inputs.Put(in)
}

// setText sets what JSON and form fields are read from. The text is a view of b, not a
// copy: nobody changes the body while it is judged, and values are copied on their way out.
func (in *input) setText(b []byte) {
	in.text, in.jsonDone, in.formDone = unsafe.String(unsafe.SliceData(b), len(b)), false, false
}

// json is the body when it is sound JSON and no form; else empty.
func (in *input) json() string {
	if !in.jsonDone {
		in.jsonDone, in.jsonDoc = true, ""
		doc := strings.TrimPrefix(in.text, "\ufeff") // some senders write a byte-order mark
		if len(doc) > 0 && !in.isForm() && soundJSON(doc) {
			in.jsonDoc = doc
		}
	}
	return in.jsonDoc
}

// isForm tells whether the content type is one of the two of forms.
func (in *input) isForm() bool {
	ct := in.r.Header["Content-Type"]
	return len(ct) > 0 && formType(ct[0]) != ""
}

func formType(ct string) string {
	for _, t := range []string{"application/x-www-form-urlencoded", "multipart/form-data"} {
		if len(ct) >= len(t) && strings.EqualFold(ct[:len(t)], t) {
			return t
		}
	}
	return ""
}

func (in *input) form(name string) (string, bool) {
	if !in.formDone {
		in.formDone = true
		in.forms = parseForm(in.r.Header["Content-Type"], in.text)
	}
	v, ok := in.forms[name]
	if !ok {
		return "", false
	}
	return v[0], true
}

func (in *input) query(name string) (string, bool) {
	if !in.queryOK {
		in.queryOK = true
		if _, q, has := strings.Cut(in.r.Target, "?"); has {
			in.queries, _ = url.ParseQuery(q) // what can be read counts
		}
	}
	v, ok := in.queries[name]
	if !ok {
		return "", false
	}
	return v[0], true
}

// parseForm reads the fields of an urlencoded or multipart body; files are left out.
func parseForm(ct []string, text string) url.Values {
	if len(ct) == 0 {
		return nil
	}
	switch formType(ct[0]) {
	case "application/x-www-form-urlencoded":
		v, _ := url.ParseQuery(text) // what can be read counts
		return v
	case "multipart/form-data":
		_, params, err := mime.ParseMediaType(ct[0])
		if err != nil {
			return nil
		}
		return parseMultipart(multipart.NewReader(strings.NewReader(text), params["boundary"]))
	}
	return nil
}

// maxFields bounds the parts of a multipart body that are looked at.
const maxFields = 1000

func parseMultipart(r *multipart.Reader) url.Values {
	out := url.Values{}
	for range maxFields {
		p, err := r.NextRawPart()
		if err != nil {
			break
		}
		if p.FileName() != "" || p.FormName() == "" {
			continue
		}
		var b bytes.Buffer
		if _, err := io.Copy(&b, p); err != nil { // bounded: the body is
			break
		}
		out.Add(p.FormName(), b.String())
	}
	return out
}

// feeder gathers small pieces of a message and hands them to the hash.
type feeder struct {
	h   hash.Hash
	buf []byte
}

func (f *feeder) flush() {
	f.h.Write(f.buf)
	f.buf = f.buf[:0]
}

// hidden are the values that count as absent because the message that verified does
// not cover them, while another message of the same scheme would have.
type hidden struct {
	body    bool // body, json and form fields
	query   bool
	names   map[string]bool // single headers and fields, as "header:Svix-Id"
	exempts map[string]bool // form fields that are covered although the body is not
}

func (in *input) hides(p *placeholder) bool {
	h := in.hidden
	if h == nil {
		return false
	}
	switch p.src {
	case srcBody, srcJSON, srcItem:
		return h.body
	case srcForm:
		return (h.body && !h.exempts[p.key()]) || h.names[p.key()]
	case srcQuery, srcRawQuery:
		return (h.query && !h.exempts[p.key()]) || h.names[p.key()]
	case srcHeader:
		return h.names[p.key()]
	}
	return false
}

// key names the value itself, without filters.
func (p *placeholder) key() string {
	switch p.src {
	case srcHeader:
		return "header:" + p.arg
	case srcForm:
		return "form:" + p.arg
	case srcQuery:
		return "query:" + p.arg
	}
	return ""
}
