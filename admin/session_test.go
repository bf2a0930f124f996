package admin

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"acuse/access"
)

// login posts the form of a new browser.
func (w *world) login(t *testing.T, host, next string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+"/login", strings.NewReader(url.Values{"name": {ownerName}, "password": {ownerPassword}, "next": {next}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	w.admin.ServeHTTP(rec, r)
	return rec
}

func TestTheSessionCookieIsBoundToThisHost(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	w.owner(t)
	for _, c := range []struct {
		host   string
		name   string
		secure bool
	}{{"acuse.example.org", "__Host-acuse", true}, {"192.168.1.20:8081", "__Host-acuse", true}, {"127.0.0.1:8081", "acuse", false}, {"localhost:8081", "acuse", false}, {"[::1]:8081", "acuse", false}} {
		rec := w.login(t, c.host, "/")
		cookies := rec.Result().Cookies()
		if len(cookies) != 1 {
			t.Fatalf("%s: %d cookies", c.host, len(cookies))
		}
		k := cookies[0]
		if k.Name != c.name || k.Secure != c.secure || !k.HttpOnly || k.SameSite != http.SameSiteLaxMode || k.Path != "/" || k.Domain != "" || len(k.Value) < 22 {
			t.Errorf("%s: %+v", c.host, k)
		}
	}
}

func TestASessionIsNewAfterLoginAndDeadAfterLogout(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	old := *c.cookies["acuse"]
	if r := c.post("/login", url.Values{"name": {ownerName}, "password": {ownerPassword}}); r.Code != http.StatusSeeOther {
		t.Fatal(r.Code)
	}
	if c.cookies["acuse"].Value == old.Value {
		t.Error("the token stayed the same over a login")
	}
	live := *c.cookies["acuse"]
	if r := c.post("/logout", url.Values{}); r.Code != http.StatusSeeOther {
		t.Fatal(r.Code)
	}
	for _, k := range []http.Cookie{old, live} {
		c.cookies["acuse"] = &k
		if r := c.get("/deliveries"); r.Code != http.StatusSeeOther || !strings.HasPrefix(r.Header().Get("Location"), "/login?") {
			t.Errorf("a dead session still sees: %d", r.Code)
		}
		if r := c.get("/api/v1/deliveries"); r.Code != http.StatusUnauthorized {
			t.Errorf("a dead session still asks the API: %d", r.Code)
		}
	}
}

func TestAnotherPasswordEndsTheOtherSessions(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	here := w.owner(t)
	there := newClient(t, w.admin)
	there.post("/login", url.Values{"name": {ownerName}, "password": {ownerPassword}})
	if r := here.post("/settings/account", url.Values{"old_password": {"wrong-wrong-wrong"}, "new_password": {"another horse battery"}}); r.Code != http.StatusUnprocessableEntity {
		t.Errorf("the wrong old password: %d", r.Code)
	}
	if r := here.post("/settings/account", url.Values{"old_password": {ownerPassword}, "new_password": {"short"}}); r.Code != http.StatusUnprocessableEntity {
		t.Errorf("a short password: %d", r.Code)
	}
	if r := here.post("/settings/account", url.Values{"old_password": {ownerPassword}, "new_password": {"another horse battery"}}); r.Code != http.StatusSeeOther {
		t.Fatalf("change: %d %s", r.Code, r.Body)
	}
	if r := here.get("/deliveries"); r.Code != http.StatusOK {
		t.Errorf("this session: %d", r.Code)
	}
	if r := there.get("/deliveries"); r.Code != http.StatusSeeOther {
		t.Errorf("the other session: %d", r.Code)
	}
}

func TestWrongPasswordsSlowDown(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := newClient(t, w.admin)
	if err := w.users.Create(t.Context(), ownerName, ownerPassword, access.RoleOwner); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"name": {ownerName}, "password": {"not the password"}}
	for range 10 {
		if r := c.post("/login", form); r.Code != http.StatusUnauthorized {
			t.Fatalf("try: %d", r.Code)
		}
	}
	form.Set("password", ownerPassword)
	r := c.post("/login", form)
	if r.Code != http.StatusTooManyRequests || r.Header().Get("Retry-After") == "" || !strings.Contains(r.Body.String(), "Too many wrong passwords") {
		t.Errorf("the eleventh: %d %v", r.Code, r.Header())
	}
}

func TestRolesBoundWhatAPersonDoes(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	viewer := w.person(t, "vera", access.RoleViewer)
	page := viewer.get(w.path("paid")).Body.String()
	if strings.Contains(page, "amount_paid") || strings.Contains(page, "/resend") || !strings.Contains(page, "may not read bodies") {
		t.Error("a viewer sees the body or a button to resend")
	}
	for _, p := range []string{w.path("paid") + "/body", "/settings/tokens", w.path("paid") + "/resend"} {
		if r := viewer.get(p); r.Code != http.StatusForbidden || !strings.Contains(r.Body.String(), "may not do that") {
			t.Errorf("viewer %s: %d", p, r.Code)
		}
	}
	before := w.state(t)
	if r := viewer.post(w.path("dead")+"/resend", url.Values{}); r.Code != http.StatusForbidden || w.state(t) != before {
		t.Errorf("a viewer resends: %d", r.Code)
	}
	operator := w.person(t, "omar", access.RoleOperator)
	if r := operator.get("/settings/tokens"); r.Code != http.StatusForbidden {
		t.Errorf("operator at the tokens: %d", r.Code)
	}
	if r := operator.get(w.path("paid")); r.Code != http.StatusOK || !strings.Contains(r.Body.String(), "amount_paid") {
		t.Errorf("operator at a body: %d", r.Code)
	}
}

func TestAnEndedSessionKeepsTheForm(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	delete(c.cookies, "acuse")
	r := c.post(w.path("retry")+"/resend", url.Values{"destination": {"app"}, "reason": {"fixed it"}, "password": {"x"}})
	if r.Code != http.StatusForbidden || !strings.Contains(r.Body.String(), "Your session ended. Log in again; your form is kept.") {
		t.Fatalf("%d %.200s", r.Code, r.Body)
	}
	doc, err := html.Parse(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	next := ""
	walk(doc, func(n *html.Node) {
		if n.Data == "input" && attr(n, "name") == "next" && strings.Contains(attr(n, "value"), "/resend") {
			next = attr(n, "value")
		}
	})
	if strings.Contains(next, "password") {
		t.Error("a password was kept")
	}
	r = c.post("/login", url.Values{"name": {ownerName}, "password": {ownerPassword}, "next": {next}})
	r = c.get(c.get(r.Header().Get("Location")).Header().Get("Location"))
	if r.Code != http.StatusOK || !strings.Contains(r.Body.String(), `value="fixed it"`) {
		t.Errorf("the form after the login: %d", r.Code)
	}
}

func TestSetupNeedsTheLinkAndTakesItOnce(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t.Context(), t.TempDir(), time.Now, "") // the session library reads the real clock
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.db.Close() })
	stranger := newClient(t, w.admin)
	if page := stranger.get("/setup").Body.String(); strings.Contains(page, "<form method=\"post\" action=\"/setup\"") || !strings.Contains(page, "acuse setup-link") {
		t.Error("without the link the form is shown, or not how to get it")
	}
	if r := stranger.post("/setup", url.Values{"name": {"eve"}, "password": {ownerPassword}}); r.Code != http.StatusForbidden {
		t.Errorf("the first visitor wins: %d", r.Code)
	}
	token, _, err := w.users.NewSetupLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, w.admin)
	if r := c.get("/setup?t=" + token); r.Code != http.StatusSeeOther || r.Header().Get("Location") != "/setup" {
		t.Fatalf("redeem: %d %q", r.Code, r.Header().Get("Location"))
	}
	if r := stranger.get("/setup?t=" + token); r.Code != http.StatusForbidden {
		t.Errorf("the link works twice: %d", r.Code)
	}
	if r := c.post("/setup", url.Values{"language": {"es"}, "name": {"lucía"}, "password": {"corta"}}); r.Code != http.StatusUnprocessableEntity ||
		!strings.Contains(r.Body.String(), "12 caracteres") {
		t.Errorf("a short password: %d", r.Code)
	}
	r := c.post("/setup", url.Values{"language": {"es"}, "name": {"lucía"}, "password": {ownerPassword}})
	if r.Code != http.StatusSeeOther {
		t.Fatalf("setup: %d %s", r.Code, r.Body)
	}
	if page := c.get("/").Body.String(); !strings.Contains(page, "Todo listo") || !strings.Contains(page, "Primeros pasos") {
		t.Error("the overview of an empty archive")
	}
	if r := c.get("/setup"); !strings.Contains(r.Body.String(), "ya tiene su primera cuenta") {
		t.Error("setup is still open")
	}
}
