package admin

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"acuse/access"
)

// client is a browser without a script: it keeps cookies and follows nothing.
type client struct {
	t       testing.TB
	h       http.Handler
	cookies map[string]*http.Cookie
	lang    string
}

func newClient(t testing.TB, h http.Handler) *client {
	return &client{t: t, h: h, cookies: map[string]*http.Cookie{}, lang: "en"}
}

func (c *client) do(method, path string, form url.Values, header ...string) *httptest.ResponseRecorder {
	c.t.Helper()
	var body *strings.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	} else {
		body = strings.NewReader("")
	}
	r := httptest.NewRequestWithContext(c.t.Context(), method, "http://127.0.0.1:8081"+path, body)
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Accept-Language", c.lang)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for _, k := range c.cookies {
		r.AddCookie(k)
	}
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	for _, k := range w.Result().Cookies() {
		if k.MaxAge < 0 {
			delete(c.cookies, k.Name)
		} else {
			c.cookies[k.Name] = k
		}
	}
	return w
}

func (c *client) get(path string) *httptest.ResponseRecorder {
	c.t.Helper()
	return c.do(http.MethodGet, path, nil)
}

func (c *client) post(path string, form url.Values) *httptest.ResponseRecorder {
	c.t.Helper()
	return c.do(http.MethodPost, path, form, "Origin", "http://127.0.0.1:8081", "Sec-Fetch-Site", "same-origin")
}

// owner makes the owner and logs in.
func (w *world) owner(t testing.TB) *client {
	t.Helper()
	return w.person(t, ownerName, access.RoleOwner)
}

func (w *world) person(t testing.TB, name, role string) *client {
	t.Helper()
	if err := w.users.Create(t.Context(), name, ownerPassword, role); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, w.admin)
	if r := c.post("/login", url.Values{"name": {name}, "password": {ownerPassword}}); r.Code != http.StatusSeeOther {
		t.Fatalf("login: %d %s", r.Code, r.Body)
	}
	return c
}

func (w *world) path(name string) string {
	return "/deliveries/" + strconv.FormatInt(w.id[name], 10)
}

// everyPage is every address that shows something of its own.
func (w *world) everyPage() []string {
	list := []string{"/", "/deliveries", "/deliveries?state=dead", "/deliveries?q=nothing-like-it", "/deliveries?state=nonsense", "/deliveries?failing=1",
		"/resend?id=" + strconv.FormatInt(w.id["dead"], 10), "/resend", "/dead", "/rejections", "/rejections/recheck", "/rejections/recheck?source=stripe", "/rejections/recheck?look=gone", "/sources", "/sources/stripe", "/sources/bot", "/sources/notion", "/sources/sensor", "/destinations", "/destinations/app", "/destinations/agent", "/settings/account", "/settings/tokens",
		"/settings/storage", "/settings/storage/backup", "/settings/storage/verify", "/settings/about", "/keyboard", "/logout", "/nowhere", "/deliveries/999999", w.path("retry") + "/resend", w.path("two") + "/resend", w.path("leased") + "/resend",
		w.path("retry") + "/cancel", w.path("quarantined") + "/release"}
	for _, name := range sortedNames(w.id) {
		list = append(list, w.path(name))
	}
	for _, form := range []string{"tree", "raw", "hex"} {
		list = append(list, w.path("xss")+"?body="+form, w.path("broken")+"?body="+form, w.path("big")+"?body="+form, w.path("binary")+"?body="+form)
	}
	for _, id := range w.rejected {
		list = append(list, "/rejections/"+strconv.FormatInt(id, 10))
	}
	return list
}

func TestEveryPageIsShownWhole(t *testing.T) {
	t.Parallel()
	w := seeded(t, 3)
	c := w.owner(t)
	for _, lang := range []string{"en", "es"} {
		c.cookies["acuse_language"] = &http.Cookie{Name: "acuse_language", Value: lang}
		for _, p := range w.everyPage() {
			r := c.get(p)
			body := r.Body.String()
			if r.Code >= 500 || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
				t.Errorf("%s %s: %d\n%.300s\n%s", lang, p, r.Code, body, w.log.String())
			}
			if strings.Contains(body, "⟦") {
				i := strings.Index(body, "⟦")
				t.Errorf("%s %s: missing words %.60s", lang, p, body[i:])
			}
			if !strings.Contains(body, `<html lang="`+lang+`"`) {
				t.Errorf("%s %s: another language", lang, p)
			}
		}
	}
}

// TestNoAttributeIsTakenForAScript: html/template takes data-on… for an event handler
// and writes its value as a quoted string of a script.
func TestNoAttributeIsTakenForAScript(t *testing.T) {
	t.Parallel()
	w := seeded(t, 1)
	c := w.owner(t)
	for lang, word := range map[string]string{"en": "Live", "es": "En vivo"} {
		c.cookies["acuse_language"] = &http.Cookie{Name: "acuse_language", Value: lang}
		if body := c.get("/").Body.String(); !strings.Contains(body, `data-word-live="`+word+`"`) {
			t.Errorf("the overview does not hold the word %s as it is", word)
		}
	}
	for name, text := range templateTexts(t) {
		if strings.Contains(strings.ToLower(text), " data-on") {
			t.Errorf("%s has an attribute data-on…", name)
		}
	}
}

func templateTexts(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("templates/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f] = string(b)
	}
	return out
}

func TestEveryLinkStaysUnderTheBasePath(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t.Context(), t.TempDir(), func() time.Time { return noon }, "/acuse/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.db.Close() })
	if err := w.seed(t.Context(), 120); err != nil {
		t.Fatal(err)
	}
	if err := w.users.Create(t.Context(), ownerName, ownerPassword, access.RoleOwner); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, w.admin)
	if to := c.get("/acuse").Header().Get("Location"); to != "/acuse/" {
		t.Errorf("the folder itself leads to %q", to)
	}
	if to := c.get("/acuse/deliveries?state=dead").Header().Get("Location"); to != "/acuse/login?next=%2Fdeliveries%3Fstate%3Ddead" {
		t.Errorf("without a login: %q", to)
	}
	r := c.post("/acuse/login", url.Values{"name": {ownerName}, "password": {ownerPassword}, "next": {"/deliveries?state=dead"}})
	r = c.get(r.Header().Get("Location"))
	if to := r.Header().Get("Location"); to != "/acuse/deliveries?state=dead" {
		t.Fatalf("after the login: %q", to)
	}
	for _, p := range w.everyPage() {
		doc, err := html.Parse(c.get("/acuse" + p).Body)
		if err != nil {
			t.Fatal(err)
		}
		walk(doc, func(n *html.Node) {
			for _, k := range []string{"href", "src", "action"} {
				if v := attr(n, k); v != "" && !strings.HasPrefix(v, "/acuse/") && !strings.HasPrefix(v, "#") && !strings.HasPrefix(v, "https://") {
					t.Errorf("%s: %s %s=%q", p, n.Data, k, v)
				}
			}
		})
	}
}

func TestTextFromOutsideHidesNothing(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ñ 📦": "plain ñ 📦", "a\u202eb": `a\u202Eb`, "a\x00b\x1b[31m": `a\u0000b\u001B[31m`, "\xff\xfe": `\xFF\xFE`, "a\u200db": `a\u200Db`,
		"👩\u200d💻": "👩\u200d💻", "می\u200cخواهم": "می\u200cخواهم", "x\r\ny\tz": `x\u000D\u000Ay\u0009z`, "soft\u00adhyphen": `soft\u00ADhyphen`, "\u2028": `\u2028`,
	} {
		if got := visible(in, false); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := visible("a\r\nb\tc\rd\x00", true); got != "a\nb\tc\\rd\\u0000" {
		t.Errorf("lines: %q", got)
	}
}

// Quarantined deliveries are released from their page, and a group of dead letters
// is resent one first.
func TestPeopleActOnWhatWaits(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	if page := c.get(w.path("quarantined")).Body.String(); !strings.Contains(page, "/release") || strings.Contains(page, "/resend?") {
		t.Error("a quarantined one offers no release, or a resend")
	}
	if r := c.post(w.path("quarantined")+"/release", url.Values{}); r.Code != http.StatusSeeOther || len(w.released) != 1 {
		t.Errorf("release: %d %v", r.Code, w.released)
	}
	if page := c.get(w.path("quarantined")).Body.String(); !strings.Contains(page, "Released. Its jobs are queued.") {
		t.Error("the page does not say so")
	}
	if page := c.get(w.path("quarantined")).Body.String(); strings.Contains(page, "Released. Its jobs are queued.") {
		t.Error("it says so twice")
	}
	groups, err := w.db.DeadGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if g.Jobs < 6 {
			continue
		}
		page := c.get("/dead").Body.String()
		if !strings.Contains(page, `class="button main" href="/dead/`+groupID(g)+`/resend?trial=1"`) {
			t.Error("the trial is not the main button of a large group")
		}
		if r := c.post("/dead/"+groupID(g)+"/resend", url.Values{"trial": {"1"}}); r.Code != http.StatusSeeOther || !strings.HasPrefix(r.Header().Get("Location"), "/deliveries/") {
			t.Errorf("trial: %d %q", r.Code, r.Header().Get("Location"))
		}
		if left := w.dead(t); left != 7 {
			t.Errorf("after the trial %d are dead", left)
		}
		if r := c.post("/dead/"+groupID(g)+"/cancel", url.Values{}); r.Code != http.StatusSeeOther {
			t.Errorf("cancel: %d", r.Code)
		}
		if page := c.get("/dead").Body.String(); !strings.Contains(page, "6 jobs of app cancelled.") || w.dead(t) != 1 {
			t.Errorf("after the cancel %d are dead", w.dead(t))
		}
	}
	r := c.post("/resend", url.Values{"id": {strconv.FormatInt(w.id["paid"], 10), strconv.FormatInt(w.id["leased"], 10)}, "back": {"/deliveries?state=dead"}})
	if r.Header().Get("Location") != "/deliveries?state=dead" {
		t.Errorf("selected: %q", r.Header().Get("Location"))
	}
	if page := c.get("/deliveries").Body.String(); !strings.Contains(page, "1 delivery queued again. 1 could not be: it is running or its body is gone.") {
		t.Error("the counts of a resend of several are not said")
	}
}

func (w *world) dead(t *testing.T) int64 {
	t.Helper()
	n, err := w.db.Totals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n.Dead
}
