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

// FuzzReceive: whatever comes, nothing panics; and what was signed cannot be changed.
func FuzzReceive(f *testing.F) {
	cat, err := Embedded()
	if err != nil {
		f.Fatal(err)
	}
	names := cat.Names()
	good := map[string][]Vector{}
	for _, n := range names {
		if good[n] = goodVectors(f, n); len(good[n]) == 0 {
			good[n] = vectorsOf(f, n)[:1] // a provider that signs nothing
		}
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
		if what, changed := tamper(r, coveredBy(c, r, now), int(part), max(pos, 0), b); changed {
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
	var noKey *NoKey
	if err != nil && !errors.As(err, &refusal) && !errors.As(err, &noKey) {
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
