package provider

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// covered says what the hmac of a request covers byte for byte.
type covered struct {
	body   bool     // every message holds the body as it is, or a digest of it
	single []string // headers that hold one signature (and its time) and nothing else
	times  []string // headers with a time that every message holds
}

func coveredBy(c *Checker, r *Request) (out covered) {
	h, ok := c.auth.(*hmacCheck)
	if !ok {
		return out
	}
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
	out.body = holds(func(p *placeholder) bool { return p.src == srcBody && (len(p.filters) == 0 || p.digest) })
	for _, p := range h.sig.from {
		v, ok := p.read(&input{r: r})
		if p.src != srcHeader || p.prefix != "" || !ok {
			continue
		}
		items := len(strings.Split(v, h.sig.separator))
		if items == 1+h.sig.skip || (h.sig.format == "pairs" && items == 2 && h.time != nil) {
			out.single = append(out.single, p.arg)
		}
	}
	if len(out.single) > 1 {
		out.single = nil // another header may hold the one that counts
	}
	if h.time != nil && len(h.messages) == 1 {
		for _, t := range h.time.from {
			t.each(func(p *placeholder) {
				if p.src == srcHeader && holds(func(q *placeholder) bool { return q.text == p.text }) {
					out.times = append(out.times, p.arg)
				}
			})
		}
	}
	return out
}

// tamper changes one byte of a good request. changed is false when it stays the same in
// all that counts.
func tamper(r *Request, cov covered, part, pos int, b byte) (what string, changed bool) {
	header := func(list []string, what string) (string, bool) {
		if len(list) == 0 {
			return "", false
		}
		name := list[pos%len(list)]
		v := []byte(r.Header.Get(name))
		if len(v) == 0 {
			return "", false
		}
		old := string(v)
		v[(pos/len(list))%len(v)] = b
		r.Header.Set(name, string(v))
		return what + " " + name, !strings.EqualFold(old, string(v)) // hex has two cases
	}
	switch part % 3 {
	case 1:
		return header(cov.single, "signature")
	case 2:
		return header(cov.times, "timestamp")
	}
	if !cov.body || len(r.Body) == 0 {
		return "", false
	}
	old := r.Body
	r.Body = slices.Clone(old)
	r.Body[pos%len(old)] = b
	return "body", !bytes.Equal(old, r.Body)
}

// TestP5NoChangedByteIsAccepted walks every byte of the first good request of each provider.
func TestP5NoChangedByteIsAccepted(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	tried := map[string]int{}
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		v := goodVectors(t, name)[0]
		c := compileFor(t, p, v)
		now := time.Unix(v.Now, 0)
		cov := coveredBy(c, request(t, v))
		for part := range 3 {
			for pos := range 250 {
				for _, b := range []byte{'0', 'a', ' '} {
					r := request(t, v)
					what, changed := tamper(r, cov, part, pos, b)
					if !changed {
						continue
					}
					tried[strings.Fields(what)[0]]++
					if _, err := c.Receive(r, now); err == nil {
						t.Fatalf("%s: %s changed at %d to %q and accepted", v.Name, what, pos, b)
					}
				}
			}
		}
	}
	if tried["body"] < 5000 || tried["signature"] < 5000 || tried["timestamp"] < 200 {
		t.Errorf("too little was tried: %v", tried)
	}
}

// FuzzReceive: whatever comes, nothing panics; and what was signed cannot be changed.
func FuzzReceive(f *testing.F) {
	cat, err := Embedded()
	if err != nil {
		f.Fatal(err)
	}
	names := cat.Names()
	good := map[string][]Vector{}
	for _, n := range names {
		good[n] = goodVectors(f, n)
	}
	for i, n := range names {
		v := good[n][0]
		f.Add(uint16(i), uint8(0), uint8(0), 7, byte('x'), v.Method, v.Path, "Content-Type: application/json\nX-Extra: 1", []byte(v.Body))
	}
	f.Fuzz(func(t *testing.T, which uint16, vec, part uint8, pos int, b byte, method, target, headers string, body []byte) {
		name := names[int(which)%len(names)]
		p, _ := cat.Get(name)
		v := good[name][int(vec)%len(good[name])]
		c := compileFor(t, p, v)
		now := time.Unix(v.Now, 0)
		r := request(t, v)
		if what, changed := tamper(r, coveredBy(c, r), int(part), max(pos, 0), b); changed {
			if _, err := c.Receive(r, now); err == nil {
				t.Fatalf("%s: %s changed at %d to %q and accepted", v.Name, what, pos, b)
			}
		}
		r.Method, r.Target, r.URL, r.Body = method, target, "https://x.example"+target, body
		for line := range strings.SplitSeq(headers, "\n") {
			if name, value, ok := strings.Cut(line, ":"); ok {
				r.Header.Add(name, strings.TrimSpace(value))
			}
		}
		trample(t, c, r, now)
		r.Header = http.Header{}
		trample(t, c, r, now)
		open, err := p.Compile(Settings{Unsigned: true, Params: v.Params})
		if err != nil {
			t.Fatal(err)
		}
		trample(t, open, r, now)
	})
}

// trample calls all that takes a request.
func trample(t *testing.T, c *Checker, r *Request, now time.Time) {
	before := slices.Clone(r.Body)
	res, err := c.Receive(r, now)
	var refusal *Refusal
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("an error that is no refusal: %v", err)
	}
	for _, e := range res.Events {
		if len(e.ID) > MaxID || len(e.Type) > MaxID || len(e.Resource) > MaxID {
			t.Fatalf("too long: %+v", e)
		}
		if (e.ID == "") != (e.NoID || res.Quarantine != "") {
			t.Fatalf("an id that is neither there nor missed: %+v", e)
		}
		if e.Part >= 0 {
			if _, err := c.Item(r.Body, e.Part); err != nil {
				t.Fatalf("item %d: %v", e.Part, err)
			}
		}
	}
	_ = c.Early(r.Method, r.Header)
	_ = c.Reply(r)
	_ = c.Identify(r)
	if !bytes.Equal(before, r.Body) {
		t.Fatal("the body was written to")
	}
	_ = c.Sign(r, 1, now)
}

// FuzzTemplate: a template compiles or says why not; what compiles can be read.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{sig:t}.{body}", "a[b{json:x|lower}]\\[c", "{json:a\\.b.0|const:x}", "{", "}", "[[", "{json:|jsonpath:..}", "{header:X|urldecode|unbase64|crc32}", "\\", "{json:@this|sha256:base64}"} {
		f.Add(s, []byte(`{"x":"Y","a":[1]}`))
	}
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		for _, use := range []usage{inMessage, inIdentity, inItem, inReply, inConfig} {
			tm, err := parseTemplate("f", text, use)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "f: ") {
					t.Fatalf("no path: %v", err)
				}
				continue
			}
			in := (&Checker{firstSecret: "k"}).open(post(body, "Content-Type", "application/json", "X", "a b"), caseNow)
			first([]*template{tm}, in)
			in.close()
		}
	})
}

// FuzzCatalogueFile: a file loads or says why not, and what loads compiles or says why not.
func FuzzCatalogueFile(f *testing.F) {
	files, err := filepath.Glob("catalogue/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		b = bytes.Replace(b, []byte(`"name": "`+strings.TrimSuffix(filepath.Base(file), ".json")+`"`), []byte(`"name": "x"`), 1)
		f.Add(b)
	}
	f.Add([]byte(`{"name":"x","auth":{"kind":"any","of":[{"kind":"token","from":"query:k"},{"kind":"basic"}]},"batch":{"items":"json:a.*.b","id":"{item:id}"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Load(fstest.MapFS{"x.json": {Data: b}})
		if err != nil {
			return
		}
		p, _ := c.Get("x")
		_ = p.Window(true, 0) + p.Window(false, 0)
		_, _, _ = p.SecretHelp()
		ch, err := p.Compile(Settings{Secrets: []string{"a:b"}, Params: map[string]string{}})
		if err != nil {
			return
		}
		trample(t, ch, post([]byte(`{"id":"1"}`)), caseNow)
	})
}
