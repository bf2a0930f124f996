package provider

import (
	"crypto/subtle"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// handshake is a request that the provider wants answered and that is no event.
type handshake struct {
	kind    string
	match   *match
	auth    bool // the provider's auth comes first
	from    *place
	equals  *template
	capture *template
	status  int
	headers []replyHeader
	body    *template
	json    bool      // values are escaped as parts of JSON strings
	then    *template // a URL to get after the answer
	hosts   hostList  // of it
}

type replyHeader struct {
	name  string
	value *template
}

func parseHandshake(path string, f *handFile, warn func(string)) (*handshake, error) {
	h := &handshake{kind: f.Kind, auth: f.Auth, status: f.Respond.Status}
	var err error
	if h.match, err = parseMatch(join(path, "match"), f.Match, warn); err != nil {
		return nil, err
	}
	if f.Check != nil {
		h.auth = h.auth || f.Check.Auth
		if err := h.parseCheck(join(path, "check"), f.Check); err != nil {
			return nil, err
		}
	}
	if f.Capture != nil {
		if h.capture, err = parseTemplate(join(path, "capture.secret"), f.Capture.Secret, inIdentity); err != nil {
			return nil, err
		}
	}
	if f.Then != nil {
		if !h.auth {
			return nil, at(join(path, "then"), "needs auth: true: a stranger must not choose what is fetched")
		}
		if h.then, err = parseTemplate(join(path, "then.get"), f.Then.Get, inIdentity); err != nil {
			return nil, err
		}
		if h.hosts, err = parseHosts(join(path, "then.allow_hosts"), f.Then.AllowHosts); err != nil {
			return nil, err
		}
	}
	return h, h.parseReply(join(path, "respond"), &f.Respond)
}

func (h *handshake) parseCheck(path string, f *checkFile) error {
	if f.From == "" && f.Equals == "" {
		return nil
	}
	from, err := parsePlace(join(path, "from"), f.From)
	if err != nil {
		return err
	}
	h.from = &from
	h.equals, err = parseTemplate(join(path, "equals"), f.Equals, inConfig)
	return err
}

func (h *handshake) parseReply(path string, f *respondFile) (err error) {
	if h.status < 200 || h.status > 299 {
		return at(join(path, "status"), "want 200 to 299")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Headers)) {
		text := f.Headers[name]
		t, err := h.replyTemplate(join(path, "headers."+name), text)
		if err != nil {
			return err
		}
		name = http.CanonicalHeaderKey(name)
		h.headers = append(h.headers, replyHeader{name, t})
		if name == "Content-Type" && strings.Contains(text, "json") {
			h.json = true
		}
	}
	h.body, err = h.replyTemplate(join(path, "body"), deref(f.Body))
	return err
}

// replyTemplate refuses to make an oracle: whoever is answered without a signature must
// not choose what we sign. Filter bt_sign takes a bare challenge only.
func (h *handshake) replyTemplate(path, text string) (*template, error) {
	t, err := parseTemplate(path, text, inReply)
	if err == nil && !h.auth && strings.Contains(text, "|hmac:") {
		err = at(path, "a keyed hash in an answer needs auth: true")
	}
	return t, err
}

// answer makes the reply; a refusal when the request lacks what it must contain.
func (h *handshake) answer(in *input) (*Reply, *Refusal) {
	in.full = false
	out := &Reply{Status: h.status, Header: http.Header{}}
	for _, hd := range h.headers {
		v, missing := hd.value.append(nil, in)
		if missing == nil && !strings.ContainsFunc(string(v), func(r rune) bool { return r < ' ' || r == 0x7f }) {
			out.Header.Set(hd.name, string(v))
		}
	}
	for _, p := range h.body.parts {
		b, missing := appendParts(nil, []part{p}, in, false)
		if missing != nil {
			return nil, &Refusal{Reason: MissingHeader, Detail: missing.text}
		}
		if h.json && p.lit == "" {
			b = escapeJSON(b)
		}
		out.Body = append(out.Body, b...)
	}
	return out, nil
}

// escapeJSON writes a text as the inside of a JSON string.
func escapeJSON(b []byte) []byte {
	q, err := json.Marshal(string(b))
	if err != nil {
		return nil // a string always has a form
	}
	return q[1 : len(q)-1]
}

// checked compares a value of the request with the one configured, in constant time.
func (h *handshake) checked(in *input) *Refusal {
	if h.from == nil {
		return nil
	}
	got, ok := h.from.read(in)
	if !ok {
		return &Refusal{Reason: MissingHeader, Detail: h.from.text}
	}
	want, missing := h.equals.append(nil, in)
	if missing != nil || len(want) == 0 || subtle.ConstantTimeCompare(want, []byte(got)) != 1 {
		return &Refusal{Reason: TokenMismatch, Detail: h.from.text}
	}
	return nil
}

// shake answers a handshake; done is false when the request is none.
func (c *Checker) shake(in *input) (res Result, refusal *Refusal, done bool) {
	for _, h := range c.handshakes {
		if (h.capture != nil && !in.r.Capturing) || !h.match.holds(in) {
			continue
		}
		if h.auth {
			v := c.auth.verify(in)
			if v.refusal != nil {
				return res, v.refusal, true
			}
			res.Slot = v.slot
		}
		if r := h.checked(in); r != nil {
			return res, r, true
		}
		if h.capture != nil {
			in.full = true
			b, missing := h.capture.append(nil, in)
			if missing != nil {
				continue
			}
			res.Captured = string(b)
		}
		if h.then != nil {
			b, missing := h.then.append(nil, in)
			if _, ok := h.hosts.allow(string(b)); missing != nil || !ok {
				return res, &Refusal{Reason: KeyUntrusted, Detail: "then.allow_hosts", Signed: true}, true
			}
			res.Then = string(b)
		}
		res.Handshake, refusal = h.answer(in)
		return res, refusal, true
	}
	return res, nil, false
}

// Captures tells whether a handshake of the provider brings the source's secret.
func (p *Provider) Captures() bool {
	return slices.ContainsFunc(p.shakes, func(h *handshake) bool { return h.capture != nil })
}

func (h *handshake) each(f func(*placeholder)) {
	if h.equals != nil {
		h.equals.each(f)
	}
	for _, hd := range h.headers {
		hd.value.each(f)
	}
	h.body.each(f)
}
