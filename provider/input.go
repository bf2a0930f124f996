package provider

import (
	"hash"
	"strings"
	"sync"
	"time"
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
	forms    pairs
	formDone bool
	queries  pairs
	queryOK  bool
	sorted   pairs  // of filter sorted_pairs
	ids      []byte // of a batch that is one event
	kept     []byte // values that places were read from, until the input is closed
}

var inputs = sync.Pool{New: func() any { return new(input) }}

// open prepares an input for a request; close gives it back.
func (c *Checker) open(r *Request, now time.Time) *input {
	in := inputs.Get().(*input)
	*in = input{r: r, now: now, params: c.params, first: c.firstSecret, url: r.URL, body: r.Body,
		tmp: in.tmp, buf: in.buf, ids: in.ids, kept: in.kept, forms: in.forms, queries: in.queries, sorted: in.sorted}
	in.setText(r.Body)
	return in
}

func (in *input) close() {
	in.forms.reset()
	in.queries.reset()
	in.sorted.reset()
	*in = input{tmp: reuse(in.tmp), buf: reuse(in.buf), ids: reuse(in.ids), kept: reuse(in.kept), forms: in.forms, queries: in.queries, sorted: in.sorted}
	inputs.Put(in)
}

// keepBuffer is the size beyond which a buffer is left to the collector.
const keepBuffer = 64 << 10

func reuse(b []byte) []byte {
	if cap(b) > keepBuffer {
		return nil
	}
	return b[:0]
}

// setText sets what JSON and form fields are read from. The text is a view of b, not a
// copy: nobody changes the body while it is judged, and values are copied on their way out.
func (in *input) setText(b []byte) {
	in.text, in.jsonDone, in.formDone = view(b), false, false
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
		in.forms.parseForm(in.r.Header["Content-Type"], in.text)
	}
	return in.forms.get(name)
}

func (in *input) query(name string) (string, bool) {
	if !in.queryOK {
		in.queryOK = true
		if _, q, has := strings.Cut(in.r.Target, "?"); has {
			in.queries.parse(q) // what can be read counts
		} else {
			in.queries.reset()
		}
	}
	return in.queries.get(name)
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
