package admin

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// read takes the texts of a tree's elements.
func treeText(t testing.TB, tr tree) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader("<ul>" + string(tr.HTML) + "</ul>"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	walk(doc, func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	})
	return b.String()
}

func TestATreeKeepsKeysAndDigitsAsTheyWere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{"b":1,"a":12345678901234567890,"b":1.10e+2}`, `{"b": 1"a": 12345678901234567890"b": 1.10e+2}`},
		{`["\u003cb\u003e",true,null,-0.50]`, `["\u003cb\u003e"truenull-0.50]`},
		{`{}`, `{}`}, {` [ ] `, `[]`}, {`"x"`, `"x"`}, {`{"a":{"b":[]}}`, `{"a": {"b": []}}`},
	} {
		tr := parseTree([]byte(c.in))
		if got := treeText(t, tr); got != c.want || tr.Break != nil || tr.Cut {
			t.Errorf("%s: %s %v", c.in, got, tr.Break)
		}
	}
}

func TestWhereJSONBreaksIsMarked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in        string
		line, col int
		key       string
	}{
		{"{\n  \"total\": 12,5\n}", 2, 15, "json.key"},
		{`{"a":1`, 1, 7, "json.end"}, {`{"a" 1}`, 1, 6, "json.colon"}, {`[1 2]`, 1, 4, "json.comma"}, {`{"a":01}`, 1, 8, "json.number"},
		{`{"a":"x` + "\n" + `"}`, 1, 8, "json.control"}, {`["\q"]`, 1, 4, "json.escape"}, {`{"ñ":tru}`, 1, 6, "json.value"}, {`{} x`, 1, 4, "json.more"},
		{`{'a':1}`, 1, 2, "json.key"}, {``, 1, 1, "json.end"},
	} {
		b := parseTree([]byte(c.in)).Break
		if b == nil || b.Line != c.line || b.Column != c.col || b.Key != c.key {
			t.Errorf("%q: %+v", c.in, b)
		}
	}
}

func TestLargeAndDeepBodiesAreBounded(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"wide":  "[" + strings.TrimSuffix(strings.Repeat(`{"id":98765432109876543210},`, 80000), ",") + "]",
		"deep":  strings.Repeat(`{"a":[`, 100000) + strings.Repeat(`]}`, 100000),
		"open":  strings.Repeat(`[`, 1000000),
		"text":  `"` + strings.Repeat("ñ", 1<<20) + `"`,
		"lists": strings.Repeat(`[[],`, 500000),
	} {
		tr := parseTree([]byte(in))
		if len(tr.HTML) > 300<<10 || !tr.Cut && tr.Break == nil {
			t.Errorf("%s: %d bytes of page, cut %v", name, len(tr.HTML), tr.Cut)
		}
		if raw, shown := rawText([]byte(in), tr.Break); len(raw) > 400<<10 || shown > rawShown+4 {
			t.Errorf("%s raw: %d bytes of page, %d shown", name, len(raw), shown)
		}
	}
}

func FuzzTree(f *testing.F) {
	for _, s := range []string{invoice, hostileBody, `{"a":[1,2,{"b":null}]}`, "{\n\"a\":12,5}", `"\ud800"`, "\xff", `[1e5,-0]`, `{"</li></ul>":"&amp;"}`} {
		f.Add([]byte(s))
	}
	en, _ := loadLocale("en", nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		tr := parseTree(b)
		// Beyond the bound of depth brackets are counted, not matched.
		if strings.Count(string(b), "[")+strings.Count(string(b), "{") < treeDepth && (tr.Break == nil) != json.Valid(b) {
			t.Errorf("%q: %+v, valid %v", b, tr.Break, json.Valid(b))
		}
		if !utf8.ValidString(string(tr.HTML)) {
			t.Errorf("%q: not UTF-8", b)
		}
		for _, form := range []string{"", "tree", "raw", "hex"} {
			v := en.viewBody(b, form)
			doc, err := html.Parse(strings.NewReader("<ul>" + string(v.Tree.HTML) + "</ul><pre>" + string(v.Raw) + "</pre>"))
			if err != nil {
				t.Fatal(err)
			}
			walk(doc, func(n *html.Node) {
				if n.Type == html.ElementNode && !strings.Contains(" html head body ul li details summary span pre mark ", " "+n.Data+" ") {
					t.Errorf("%q makes an element %s", b, n.Data)
				}
			})
		}
	})
}

func TestMasksHideWhatOpensSomething(t *testing.T) {
	t.Parallel()
	m := maskOf(Source{AuthHeaders: []string{"x-custom-proof"}, AuthQuery: []string{"t"}})
	for _, h := range []string{"X-Custom-Proof", "Authorization", "cookie", "Set-Cookie", "Stripe-Signature", "X-Telegram-Bot-Api-Secret-Token", "X-API-Key", "X-Shopify-Hmac-Sha256", "Proxy-Authorization"} {
		if !m.hidesHeader(h) {
			t.Errorf("%s is shown", h)
		}
	}
	for _, h := range []string{"Content-Type", "User-Agent", "X-Github-Event", "Idempotency-Key"} {
		if m.hidesHeader(h) {
			t.Errorf("%s is hidden", h)
		}
	}
	for in, want := range map[string]string{
		"/in/q?t=SECRET&ok=1": "/in/q?t=[hidden]&ok=1", "/in/q?Access_Token=SECRET": "/in/q?Access_Token=[hidden]", "/in/q": "/in/q",
		"/in/q?%74=SECRET": "/in/q?%74=[hidden]", "/in/q?%zz=SECRET": "/in/q?%zz=[hidden]", "/in/q?a=%3Cb%3E": "/in/q?a=%3Cb%3E",
	} {
		if got := m.target(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	for in, want := range map[string]string{
		"http://user:SECRET@127.0.0.1:1/hook?key=SECRET&b=SECRET#SECRET": "http://[hidden]@127.0.0.1:1/hook?b=[hidden]&key=[hidden]",
		"https://app.example.org/x":                                      "https://app.example.org/x", "SECRET": hidden, "": "",
	} {
		if got := maskURL(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestACurlCommandCannotBeBrokenOutOf(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	page := c.get(w.path("xss")).Body.String()
	if !strings.Contains(page, "curl -X &#39;POST&#39;") {
		t.Error("no command")
	}
	for in, want := range map[string]string{`a'b`: `'a'\''b'`, `$(rm)`: `'$(rm)'`, "x\x00\x1b": `'x\u0000\u001B'`} {
		if got := quote(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
	if page := c.get(w.path("leased")).Body.String(); strings.Contains(page, "-H &#39;Authorization") || strings.Contains(page, "-H &#39;Cookie") {
		t.Error("a secret header is in the command")
	}
}
