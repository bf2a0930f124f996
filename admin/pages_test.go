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
		"/resend?id=" + strconv.FormatInt(w.id["dead"], 10), "/resend", "/dead", "/rejections", "/sources", "/destinations", "/settings/account", "/settings/tokens",
		"/settings/about", "/keyboard", "/logout", "/nowhere", "/deliveries/999999", w.path("retry") + "/resend", w.path("two") + "/resend", w.path("leased") + "/resend",
		w.path("retry") + "/cancel", w.path("quarantined") + "/release"}
	for _, name := range sortedNames(w.id) {
		list = append(list, w.path(name))
	}
	for _, form := range []string{"tree", "raw", "hex"} {
		list = append(list, w.path("xss")+"?body="+form, w.path("broken")+"?body="+form, w.path("big")+"?body="+form, w.path("binary")+"?body="+form)
	}
	for i := 1; i <= 6; i++ {
		list = append(list, "/rejections/"+strconv.Itoa(i))
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
