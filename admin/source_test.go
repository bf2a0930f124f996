package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"acuse/access"
)

func TestASourcePageSaysHowToConnectItWithOurAddress(t *testing.T) {
	t.Parallel()
	w := seeded(t, 1)
	c := w.owner(t)
	body := c.get("/sources/stripe").Body.String()
	for _, want := range []string{"<li>Paste <code>https://hooks.example.org/in/stripe</code> as the endpoint URL and create it.</li>", "into <code>secrets:</code> whole",
		"<dd class=\"mono\">{json:id}</dd>", "test vectors", "7 days", "a day more than it can be sent again there", `href="/deliveries?source=stripe"`,
		`<option value="invoice.paid">`, "nothing known", `<dt>Secrets</dt><dd>2</dd>`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	c.cookies["acuse_language"] = &http.Cookie{Name: "acuse_language", Value: "es"}
	if body := c.get("/sources/bot").Body.String(); !strings.Contains(body, "con url=<code>https://hooks.example.org/in/bot</code>") ||
		!strings.Contains(body, "quien conozca el token puede enviar cualquier cosa") {
		t.Errorf("in Spanish:\n%s", body)
	}
	if r := c.get("/sources/none"); r.Code != http.StatusNotFound {
		t.Errorf("an unknown source: %d", r.Code)
	}
	if body := c.get("/sources").Body.String(); !strings.Contains(body, `href="/sources/stripe"`) {
		t.Error("the list does not lead to the page")
	}
}

func TestATestEventIsSentFromThePageOfItsSource(t *testing.T) {
	t.Parallel()
	w := seeded(t, 1)
	var asked TestRequest
	w.admin.opt.Test = func(_ context.Context, r TestRequest, emit func(TestStep)) error {
		asked = r
		emit(TestStep{"signed", Says{SaysSecret, []any{1, 2}}, 0, true})
		emit(TestStep{"leased", Says{SaysLeased, []any{"<b>http</b>"}}, 0, true})
		emit(TestStep{"failed", Says{SaysFailed, []any{"app", 1, Outcome{Class: "refused"}}}, 12, false})
		return &TestError{Says: Says{SaysNoSource, []any{"<i>x</i>"}}}
	}
	c := w.owner(t)
	r := c.post("/sources/stripe", url.Values{"type": {"invoice.paid"}, "deliver": {"1"}})
	to := r.Header().Get("Location")
	if r.Code != http.StatusSeeOther || !strings.HasPrefix(to, "/sources/stripe?test=") {
		t.Fatalf("%d %s", r.Code, to)
	}
	if asked.Source != "stripe" || asked.Type != "invoice.paid" || !asked.Deliver {
		t.Errorf("asked for %+v", asked)
	}
	to, _, _ = strings.Cut(to, "#")
	body := c.get(to).Body.String()
	for _, want := range []string{"<strong>signed</strong> with secret 1 of 2", "by &lt;b&gt;http&lt;/b&gt;", "<strong>failed</strong> to app, attempt 1: Connection refused", "There is no source &lt;i&gt;x&lt;/i&gt;.",
		`<option value="invoice.paid" selected>`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	c.cookies["acuse_language"] = &http.Cookie{Name: "acuse_language", Value: "es"}
	if body := c.get(to).Body.String(); !strings.Contains(body, "<strong>falló</strong> a app, intento 1: Conexión rechazada") || !strings.Contains(body, "No hay fuente") {
		t.Errorf("in Spanish:\n%s", body)
	}
	if body := c.get(strings.Replace(to, "stripe", "bot", 1)).Body.String(); strings.Contains(body, "intento 1") {
		t.Error("another source shows the test")
	}
	if r := c.post("/sources/none", url.Values{}); r.Code != http.StatusNotFound {
		t.Errorf("an unknown source: %d", r.Code)
	}
}

func TestDocsOfAUsersOwnFileLeadOnlyToTheWeb(t *testing.T) {
	t.Parallel()
	v := &sourcePage{sourceView: sourceView{Source: Source{About: &About{Docs: []string{"javascript:alert(1)", "https://docs.example.org/hooks", "data:text/html,x"}}}}}
	en, _ := locales(t)
	v.about(en)
	if len(v.Docs) != 1 || v.Docs[0] != "https://docs.example.org/hooks" {
		t.Errorf("%q", v.Docs)
	}
}

func TestATestThatGoesOnIsShownAsFarAsItCame(t *testing.T) {
	t.Parallel()
	w := seeded(t, 1)
	run := &testRun{Source: "stripe", Steps: []TestStep{{"accepted", Says{SaysAnswered, []any{"#7", "200"}}, 4, true}}}
	id := w.admin.tests.add(run)
	body := w.owner(t).get("/sources/stripe?test=" + id).Body.String()
	if !strings.Contains(body, "#7, answered 200") || !strings.Contains(body, "Still under way.") {
		t.Errorf("%s", body)
	}
	for range maxRuns {
		w.admin.tests.add(&testRun{Source: "stripe"})
	}
	if w.admin.tests.get("stripe", id) != nil || len(w.admin.tests.byID) != maxRuns {
		t.Error("tests are kept without end")
	}
}

func TestOnlyAnOwnerSendsTestEvents(t *testing.T) {
	t.Parallel()
	w := seeded(t, 1)
	w.admin.opt.Test = func(context.Context, TestRequest, func(TestStep)) error {
		t.Error("a test was sent")
		return nil
	}
	c := w.person(t, "eva", access.RoleViewer)
	if body := c.get("/sources/stripe").Body.String(); !strings.Contains(body, "acuse test stripe") || strings.Contains(body, `name="deliver"`) {
		t.Errorf("%s", body)
	}
	if r := c.post("/sources/stripe", url.Values{}); r.Code != http.StatusForbidden {
		t.Errorf("answered %d", r.Code)
	}
}
