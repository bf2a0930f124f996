package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"acuse/store"
)

// elements that the templates use; data can bring no other one in.
var ownElements = strings.Fields(`html head meta title link script body a header div svg rect path use nav ul ol li span form input button
	details summary main footer p h1 h2 h3 h4 strong small code pre mark section article dl dt dd table caption thead tbody tr th td time label
	select option datalist textarea fieldset legend kbd wbr meter`)

func walk(n *html.Node, f func(*html.Node)) {
	f(n)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		walk(c, f)
	}
}

// The case adm-01: what a stranger posted never becomes an element, an attribute or
// a link of its own choice.
func TestNoElementIsMadeOfData(t *testing.T) {
	t.Parallel()
	w := seeded(t, 2)
	c := w.owner(t)
	pages := append(w.everyPage(), "/deliveries?q="+url.QueryEscape(`"><script>alert(9)</script>`), "/deliveries?source="+url.QueryEscape(`' onfocus=alert(1) x='`),
		w.path("xss")+"?from="+url.QueryEscape("javascript:alert(1)"), w.path("retry")+"/resend?reason="+url.QueryEscape(`"><img src=x onerror=alert(1)>`),
		"/login?next="+url.QueryEscape("javascript:alert(1)"), "/rejections?source="+url.QueryEscape("<b>"))
	for _, p := range pages {
		doc, err := html.Parse(c.get(p).Body)
		if err != nil {
			t.Fatal(err)
		}
		walk(doc, func(n *html.Node) {
			if n.Type != html.ElementNode {
				return
			}
			if !slices.Contains(ownElements, n.Data) {
				t.Errorf("%s: element %s", p, n.Data)
			}
			if n.Data == "script" && n.FirstChild != nil {
				t.Errorf("%s: inline script", p)
			}
			for _, at := range n.Attr {
				checkAttr(t, p, n.Data, at)
			}
		})
	}
}

func checkAttr(t *testing.T, page, element string, at html.Attribute) {
	t.Helper()
	switch {
	case strings.HasPrefix(at.Key, "on"), at.Key == "style", at.Key == "srcdoc":
		t.Errorf("%s: %s has %s=%q", page, element, at.Key, at.Val)
	case at.Key == "href" && strings.HasPrefix(page, "/sources/") && slices.Contains(slices.Concat(aboutOf("stripe").Docs, aboutOf("telegram").Docs, aboutOf("notion").Docs), at.Val):
		// the provider's own pages, as its file names them
	case at.Key == "href" || at.Key == "src" || at.Key == "action":
		if !strings.HasPrefix(at.Val, "/") && !strings.HasPrefix(at.Val, "#") && at.Val != "https://acuse.dev/docs" || strings.HasPrefix(at.Val, "//") {
			t.Errorf("%s: %s leads to %q", page, element, at.Val)
		}
	}
}

func TestHostileTextIsShownAsItIs(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	page := c.get(w.path("xss") + "?body=tree").Body.String()
	for _, want := range []string{"&lt;img src=x onerror=alert(1)&gt;", "&#34;&lt;/script&gt;&lt;script&gt;alert(2)&lt;/script&gt;&#34;",
		`&#34;\u003cscript\u003e&#34;`, "javascript:alert(3)", "&lt;script&gt;alert(6)&lt;/script&gt;", "&lt;script&gt;alert(8)&lt;/script&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") {
		t.Error("markup came through")
	}
	// The copy button carries the exact value; what is read does not.
	if read := texts(t, c.get(w.path("rtl")).Body.String()); strings.ContainsAny(read, "\u202e\u200f") || !strings.Contains(read, `\u202E`) {
		t.Error("a mark of writing direction came through")
	}
}

func TestEveryAnswerCarriesThePolicy(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	css, err := w.admin.assets.name("app.css")
	if err != nil {
		t.Fatal(err)
	}
	paths := append(w.everyPage(), "/login", "/setup", "/static/"+css, "/static/none.css", "/api/v1/deliveries", "/api/v1/none", w.path("xss")+"/body",
		"/api/v1"+w.path("xss")+"/body", "/api/v1/openapi.json")
	for _, p := range paths {
		h := c.get(p).Header()
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "object-src 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: policy lacks %s: %q", p, part, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
			t.Errorf("%s: policy %q", p, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %v", p, h)
		}
	}
}

func TestABodyLeavesOnlyAsAnAttachmentInASandbox(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	for _, p := range []string{w.path("xss") + "/body", "/api/v1" + w.path("xss") + "/body"} {
		r := c.get(p)
		h := r.Header()
		if r.Body.String() != hostileBody || h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment;") ||
			!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %d %v", p, r.Code, h)
		}
	}
}

// state is what an act would change.
func (w *world) state(t *testing.T) string {
	t.Helper()
	list, _, err := w.db.Deliveries(t.Context(), store.DeliveryFilter{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range list {
		for _, j := range d.Jobs {
			b.WriteString(strconv.FormatInt(j.ID, 10) + stateWords[j.State] + j.DueAt.String() + ";")
		}
	}
	log, err := w.db.AuditLog(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := w.db.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + strconv.Itoa(len(log)) + "/" + strconv.Itoa(len(tokens)) + "/" + strconv.Itoa(len(w.released))
}

// fill puts real numbers into the path of a route.
func (w *world) fill(t *testing.T, path string) string {
	t.Helper()
	groups, err := w.db.DeadGroups(t.Context())
	if err != nil || len(groups) == 0 {
		t.Fatal(groups, err)
	}
	id := strconv.FormatInt(w.id["dead"], 10)
	return strings.NewReplacer("{id}", id, "{group}", groupID(groups[0]), "{name}", "stripe", "{$}", "").Replace(path)
}

// The case adm-02: a page of another origin, a sibling of the same site included,
// moves nothing, and a GET moves nothing whoever asks.
func TestAnotherOriginChangesNothing(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	before := w.state(t)
	for _, rt := range slices.Concat(w.admin.pageRoutes(), w.admin.apiRoutes()) {
		if rt.method == http.MethodGet {
			continue
		}
		for _, from := range [][]string{
			{"Origin", "https://evil.example.test", "Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"},
			{"Origin", "http://127.0.0.1:9999", "Sec-Fetch-Site", "same-site"},
			{"Origin", "https://evil.example.test"},
			{"Origin", "null"},
		} {
			r := c.do(rt.method, w.fill(t, rt.path), url.Values{}, from...)
			if r.Code != http.StatusForbidden {
				t.Errorf("%s %s from %v: %d", rt.method, rt.path, from, r.Code)
			}
		}
	}
	if after := w.state(t); after != before {
		t.Errorf("something changed:\n%s\n%s", before, after)
	}
}

func TestAGetChangesNothing(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	before := w.state(t)
	for _, rt := range slices.Concat(w.admin.pageRoutes(), w.admin.apiRoutes()) {
		if rt.path == "/api/v1/events" {
			continue // does not end by itself
		}
		c.do(http.MethodGet, w.fill(t, rt.path), nil, "Origin", "https://evil.example.test", "Sec-Fetch-Site", "cross-site")
	}
	if after := w.state(t); after != before {
		t.Errorf("something changed:\n%s\n%s", before, after)
	}
}

func TestNoRedirectLeavesTheDashboard(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"//evil.example.test", `/\evil.example.test`, "https://evil.example.test", "/\t/evil.example.test", "javascript:alert(1)", "evil",
		"/%2f/evil", "///evil.example.test", "/..//evil.example.test", ""} {
		if got := safePath(next); strings.HasPrefix(got, "//") || strings.Contains(got, `\`) || !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "/\t") {
			t.Errorf("%q became %q", next, got)
		}
	}
	w := seeded(t, 0)
	c := w.owner(t)
	for _, p := range []string{"/login?next=//evil.example.test", "/login/done?next=//evil.example.test", "/login?next=https:evil.example.test"} {
		if to := c.get(p).Header().Get("Location"); to != "/" {
			t.Errorf("%s: Location %q", p, to)
		}
	}
	for _, p := range []string{"/preferences", "/resend"} {
		r := c.post(p, url.Values{"next": {"//evil.example.test"}, "back": {"//evil.example.test"}, "theme": {"dark"}})
		if to := r.Header().Get("Location"); r.Code != http.StatusSeeOther || to != "/" && to != "/deliveries" {
			t.Errorf("%s: %d %q", p, r.Code, to)
		}
	}
	if to := w.login(t, "127.0.0.1:8081", "//evil.example.test").Header().Get("Location"); to != "/login/done?next=%2F" {
		t.Errorf("login leads to %q", to)
	}
}

func TestATokenNeverWorksFromAQueryString(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := newClient(t, w.admin)
	for _, p := range []string{"/api/v1/deliveries?token=" + adminToken, "/api/v1/deliveries?access_token=" + adminToken, "/api/v1/status?bearer=" + adminToken} {
		if r := c.get(p); r.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", p, r.Code)
		}
	}
	if r := c.do(http.MethodGet, "/api/v1/status", nil, "Authorization", "Bearer "+adminToken); r.Code != http.StatusOK {
		t.Errorf("the header: %d", r.Code)
	}
}

// P9: pages, answers and the log show no planted secret, also when everything is
// asked for (the case adm-04).
func TestP9NoSecretIsShownOrLogged(t *testing.T) {
	t.Parallel()
	w := seeded(t, 1)
	c := w.owner(t)
	paths := w.everyPage()
	for _, id := range w.id {
		paths = append(paths, "/api/v1/deliveries/"+strconv.FormatInt(id, 10))
	}
	for i := 1; i <= 6; i++ {
		paths = append(paths, "/api/v1/rejections/"+strconv.Itoa(i))
	}
	paths = append(paths, "/api/v1/deliveries?limit=500", "/api/v1/destinations", "/api/v1/sources", "/api/v1/dead", "/api/v1/rejections", "/api/v1/status")
	for _, p := range paths {
		body := c.get(p).Body.String()
		for _, s := range secrets {
			if strings.Contains(body, s) {
				t.Errorf("%s shows %s", p, s)
			}
		}
	}
	if page := c.get(w.path("leased")).Body.String(); strings.Count(page, hidden) < 3 {
		t.Error("masked headers are not shown as hidden")
	}
	log := w.log.String()
	for _, s := range append(secrets, "lucía", ownerPassword) {
		if strings.Contains(log, s) {
			t.Errorf("the log holds %s", s)
		}
	}
}

// texts are the text nodes of a page, a line each, and what a screen reader says of
// its elements.
func texts(t *testing.T, page string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	walk(doc, func(n *html.Node) {
		if n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "code" {
			b.WriteString(strings.TrimSpace(n.Data))
			if n.NextSibling == nil || n.NextSibling.Data != "wbr" { // the parts of one word stay together
				b.WriteByte('\n')
			}
		}
		for _, k := range []string{"title", "aria-label", "placeholder"} {
			if v := attr(n, k); v != "" {
				b.WriteString(v + "\n")
			}
		}
	})
	return b.String()
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
