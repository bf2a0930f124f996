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

// tamper changes one byte of a good request. changed is false when it stays the same in
// all that counts.
func tamper(r *Request, cov covered, part, pos int, b byte) (what string, changed bool) {
	switch part % 4 {
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

// TestP5NoChangedByteIsAccepted walks every byte of a good request of each kind of each
// provider. What the sender's scheme does not cover (a bearer token covers no body) is
// not walked; which providers are left without any part is written down here.
func TestP5NoChangedByteIsAccepted(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	tried := map[string]int{}
	open := map[string]bool{}
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		walked := 0
		for i, v := range goodVectors(t, name) {
			if i > 0 && v.Case != "good" && v.Auth == nil {
				continue
			}
			c := compileFor(t, p, v)
			now := time.Unix(v.Now, 0)
			cov := coveredBy(c, request(t, v), now)
			others := []byte("0a ")
			if i > 0 {
				others = others[:1] // the same check again, over another request
			}
			for part := range 4 {
				for pos := range 250 {
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
	if tried["body"] < 20000 || tried["signature"] < 20000 || tried["timestamp"] < 1000 || tried["field"] < 200 {
		t.Errorf("too little was tried: %v", tried)
	}
	for _, name := range cat.Names() {
		if open[name] != slices.Contains(bare, name) {
			t.Errorf("%s: some part is covered: %v", name, !open[name])
		}
	}
}

// bare are the providers whose requests no signature covers: shared words, addresses, hints.
var bare = []string{"alertmanager", "api-key", "auth0-logs", "basic-auth", "bearer", "chargebee", "cloudevents", "figma", "gumroad",
	"home-assistant", "ip-allow", "mollie-classic", "n8n", "okta", "postmark", "query-token", "telegram", "uptime-kuma"}
