package provider

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// covered says what the proof of a good request covers byte for byte.
type covered struct {
	body   bool     // as it is, or by a digest
	single []spot   // headers that hold one signature (and its time), or a token, and nothing else
	times  []spot   // headers with a time that the signature covers
	runs   []string // parts of the body that are part of a field which the signature covers
	marks  []string // parts of the body that are part of the signature
}

// spot is a header and from where in it every byte counts.
type spot struct {
	name string
	from int
	hex  bool // letters have two cases
}

// coveredBy looks at the check that lets the request in.
func coveredBy(c *Checker, r *Request, now time.Time) (out covered) {
	in := c.open(r, now)
	defer in.close()
	out.add(c.auth, in)
	return out
}

func (out *covered) add(c check, in *input) {
	switch c := c.(type) {
	case anyOf:
		var good []check
		for _, one := range c {
			if one.verify(in).refusal == nil {
				good = append(good, one)
			}
		}
		if len(good) == 1 { // of two that are good, the second lets pass what spoils the first
			out.add(good[0], in)
		}
	case allOf:
		for _, one := range c {
			out.add(one, in)
		}
	case when:
		out.add(c.check, in)
	case *signedCheck:
		out.addSigned(c, in)
	case *tokenCheck:
		if c.from.src == srcHeader {
			out.single = append(out.single, spot{name: c.from.arg, from: len(c.scheme)})
		}
	case *basicCheck:
		out.single = append(out.single, spot{name: "Authorization", from: len("Basic ")})
	case *jwtCheck:
		out.body = out.body || c.bodyHash != nil
		if v, ok := c.from.read(in); ok && c.from.src == srcHeader {
			out.single = append(out.single, spot{name: c.from.arg, from: strings.LastIndexByte(v, ' ') + 1})
		}
	}
}

func (out *covered) addSigned(h *signedCheck, in *input) {
	holds := func(want func(*placeholder) bool) bool {
		for _, m := range h.messages {
			found := false
			m.each(func(p *placeholder) { found = found || want(p) })
			if !found {
				return false
			}
		}
		return true
	}
	out.body = out.body || holds(func(p *placeholder) bool {
		return p.src == srcBody && (len(p.filters) == 0 || p.digest || strings.HasSuffix(p.text, "|crc32"))
	})
	var single []spot
	for _, p := range h.sig.from {
		v, ok := p.read(in)
		if run := plainRun(in.text, strings.Clone(v)); ok && p.src != srcHeader && h.sig.format == "plain" && len(h.sig.from) == 1 && run != "" {
			out.marks = append(out.marks, run)
		}
		if p.src != srcHeader || p.prefix != "" || !ok {
			continue
		}
		items := len(strings.Split(v, h.sig.separator))
		if items == 1+h.sig.skip || (h.sig.format == "pairs" && items == 2 && h.time != nil) {
			single = append(single, spot{name: p.arg, hex: h.sig.encoding == "hex"})
		}
	}
	if len(single) == 1 { // else another header may hold the one that counts
		out.single = append(out.single, single...)
	}
	h.messages[0].each(func(p *placeholder) {
		v, ok := p.append(nil, in)
		if run := plainRun(in.text, string(v)); ok && run != "" && (p.src == srcJSON || p.src == srcForm) && holds(func(q *placeholder) bool { return q.src == p.src && q.arg == p.arg }) {
			out.runs = append(out.runs, run)
		}
	})
	if h.time == nil || len(h.messages) != 1 {
		return
	}
	for _, t := range h.time.from {
		t.each(func(p *placeholder) {
			if p.src == srcHeader && holds(func(q *placeholder) bool { return q.text == p.text }) {
				out.times = append(out.times, spot{name: p.arg})
			}
		})
	}
}

// parts are what tamper can change.
const parts = 5

// size is how many positions a part has at most.
func (c covered) size(r *Request, part int) int {
	n := 0
	of := func(list []string) {
		for _, one := range list {
			n = max(n, len(one)*len(list))
		}
	}
	spots := func(list []spot) {
		for _, one := range list {
			n = max(n, len(r.Header.Get(one.name))*len(list))
		}
	}
	switch part {
	case 0:
		n = len(r.Body)
	case 1:
		spots(c.single)
	case 2:
		spots(c.times)
	case 3:
		of(c.runs)
	case 4:
		of(c.marks)
	}
	return n
}

// tamper changes one byte of a good request. changed is false when it stays the same in
// all that counts.
func tamper(r *Request, cov covered, part, pos int, b byte) (what string, changed bool) {
	switch part % parts {
	case 4:
		old := r.Body
		_, changed := tamperField(r, cov.marks, pos, b)
		return "signature in the body", changed && !bytes.EqualFold(old, r.Body) // hexadecimal digits have two cases
	case 1:
		return tamperHeader(r, cov.single, "signature", pos, b)
	case 2:
		return tamperHeader(r, cov.times, "timestamp", pos, b)
	case 3:
		return tamperField(r, cov.runs, pos, b)
	}
	if !cov.body || len(r.Body) == 0 {
		return "", false
	}
	old := r.Body
	r.Body = slices.Clone(old)
	r.Body[pos%len(old)] = b
	return "body", !bytes.Equal(old, r.Body)
}

func tamperHeader(r *Request, list []spot, what string, pos int, b byte) (string, bool) {
	if len(list) == 0 {
		return "", false
	}
	at := list[pos%len(list)]
	v := []byte(r.Header.Get(at.name))
	if len(v) <= at.from {
		return "", false
	}
	old := string(v)
	v[at.from+(pos/len(list))%(len(v)-at.from)] = b
	r.Header.Set(at.name, string(v))
	if at.hex {
		return what + " " + at.name, !strings.EqualFold(old, string(v))
	}
	return what + " " + at.name, old != string(v)
}

// tamperField changes a byte of a covered field where it stands in the body.
func tamperField(r *Request, runs []string, pos int, b byte) (string, bool) {
	if len(runs) == 0 {
		return "", false
	}
	run := runs[pos%len(runs)]
	at := strings.Index(string(r.Body), run) + (pos/len(runs))%len(run)
	old := r.Body[at]
	r.Body = slices.Clone(r.Body)
	r.Body[at] = b
	return "field", old != b
}

// plainRun is the longest part of a value that every encoding leaves as it is, if it
// stands in the body just once.
func plainRun(body, value string) string {
	best := ""
	for _, run := range strings.FieldsFunc(value, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", r)
	}) {
		if len(run) > len(best) {
			best = run
		}
	}
	if strings.Count(body, best) != 1 {
		return ""
	}
	return best
}

// TestP5NoChangedByteIsAccepted walks every good request of every provider: each byte of
// the body, of the signature or token and of the signed time. What the sender's scheme does not cover (a bearer token covers no body) is not walked; which providers are
// left without any part is written down here.
func TestP5NoChangedByteIsAccepted(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	tried := map[string]int{}
	open := map[string]bool{}
	vectors := 0
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		walked := 0
		for i, v := range goodVectors(t, name) {
			c := compileFor(t, p, v)
			now := time.Unix(v.Now, 0)
			good := request(t, v)
			cov := coveredBy(c, good, now)
			vectors++
			for part := range parts {
				others := []byte("0a ")
				if i > 0 {
					others = others[:2]
				}
				for pos := range cov.size(good, part) {
					for _, b := range others {
						r := request(t, v)
						what, changed := tamper(r, cov, part, pos, b)
						if !changed {
							continue
						}
						walked++
						tried[strings.Fields(what)[0]]++
						if _, err := c.Receive(r, now); err == nil {
							t.Fatalf("%s: %s changed at %d to %q and accepted", v.Name, what, pos, b)
						}
					}
				}
			}
		}
		open[name] = walked == 0
	}
	t.Logf("%d requests, %v", vectors, tried)
	if vectors < 500 || tried["body"] < 20000 || tried["signature"] < 20000 || tried["timestamp"] < 1000 || tried["field"] < 200 {
		t.Errorf("too little was tried: %v", tried)
	}
	for _, name := range cat.Names() {
		if open[name] != slices.Contains(bare, name) {
			t.Errorf("%s: some part is covered: %v", name, !open[name])
		}
	}
}

// bare are the providers of whose requests no header is proven: hints that are asked back
// about, addresses, a word in the query or in the body.
var bare = []string{"figma", "gumroad", "ip-allow", "mollie-classic", "query-token"}
