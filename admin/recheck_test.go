package admin

import (
	"html"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"acuse/access"
	"acuse/store"
)

// Every cause has words in both languages, and they claim what was shown and no more.
func TestCausesInWords(t *testing.T) {
	t.Parallel()
	en, es := locales(t)
	for _, c := range []struct{ reason, detail, en, es string }{
		{"signature_mismatch", "at=header:X;cause=other_secret;source=shop", "The body is intact and the clock is fine: it was signed with another secret. It is that of the source shop.",
			"El cuerpo llegó intacto y la hora es correcta: se firmó con otro secreto. Es el de la fuente shop."},
		{"signature_mismatch", "cause=other_secret;source=shop;skew=900s;allowed=300s", "The body is intact: it was signed with another secret. The signed time is off too. It is that of the source shop.",
			"El cuerpo llegó intacto: se firmó con otro secreto. La hora firmada tampoco vale. Es el de la fuente shop."},
		{"signature_mismatch", "cause=test_secret;how=test;source=shop;event=live", "A live event, and this source has the test secret. It was signed with the secret of the source shop.",
			"Un evento real, y esta fuente tiene el secreto de prueba. Se firmó con el secreto de la fuente shop."},
		{"signature_mismatch", "cause=test_secret;how=live;source=shop;event=test", "A test event, and this source has the live secret. It was signed with the secret of the source shop.",
			"Un evento de prueba, y esta fuente tiene el secreto real. Se firmó con el secreto de la fuente shop."},
		{"token_mismatch", "cause=secret_text;how=quotes", "The secret is the right one, but it is written differently here. There are quotes around it.",
			"El secreto es el correcto, pero aquí está escrito de otra manera. Tiene comillas alrededor."},
		{"signature_mismatch", "cause=body_changed;how=json_layout", "The signature does not fit this body. A proxy may have changed it. It fits with the JSON written in another layout: something parsed it and wrote it anew.",
			"La firma no corresponde a este cuerpo. Un proxy puede haberlo modificado. Corresponde con el JSON en otra disposición: algo lo leyó y lo escribió de nuevo."},
		{"signature_mismatch", "cause=body_changed;how=unheard_of", "The signature does not fit this body. A proxy may have changed it.", "La firma no corresponde a este cuerpo. Un proxy puede haberlo modificado."},
		{"timestamp_expired", "at=sig:t;cause=too_old;skew=840s;allowed=300s;agree=3", "Signed 14 min ago; this source allows 5 min. 3 sources show the same gap, which points at this machine's clock.",
			"Firmado hace 14 min; esta fuente admite 5 min. 3 fuentes muestran la misma diferencia, lo que apunta al reloj de esta máquina."},
		{"missing_header", "at=header:X-Sig;cause=header_missing;missing=header:X-Sig", "No X-Sig header. Not from the provider, or the secret is not set there.", "Sin cabecera X-Sig. No viene del proveedor, o allí falta el secreto."},
		{"missing_header", "at=header:X-Sig;cause=header_missing;missing=header:X-Sig;present=X-Id,X-Type", "No X-Sig header, while X-Id, X-Type is there. A proxy may have taken it away.",
			"Falta la cabecera X-Sig, aunque X-Id, X-Type está. Un proxy puede haberla quitado."},
		{"signature_mismatch", "cause=other_provider;provider=clerk,svix;shown=verified", "It passes as clerk, svix: another provider is chosen for this source.", "Pasa como clerk, svix: en esta fuente se eligió otro proveedor."},
		{"missing_header", "cause=other_provider;provider=stripe;shown=headers", "It has the headers of stripe and none of the provider chosen for this source.", "Tiene las cabeceras de stripe y ninguna del proveedor elegido para esta fuente."},
		{"signature_mismatch", "cause=other_url;how=scheme;url=http://h/in/x%20y", "It was signed for http://h/in/x y, which is not the public URL of this source.", "Se firmó para http://h/in/x y, que no es la URL pública de esta fuente."},
		{"signature_mismatch", "cause=other_url;how=rewritten;url=https://h/in/x", "It was signed for https://h/in/x. A proxy has rewritten the path or the host.", "Se firmó para https://h/in/x. Un proxy ha cambiado la ruta o el host."},
		{"signature_mismatch", "at=header:X;cause=cannot_tell", "The signature does not fit: another secret, or a body changed on the way. These cannot be told apart.",
			"La firma no corresponde: otro secreto, o un cuerpo modificado por el camino. No se puede distinguir."},
		{"missing_header", "header:X-Sig", "No X-Sig header. Not from the provider, or the secret is not set there.", "Sin cabecera X-Sig. No viene del proveedor, o allí falta el secreto."}, // as it was written once
	} {
		r := &store.Rejection{Reason: c.reason, Detail: c.detail}
		plain := func(s string) string { return strings.ReplaceAll(s, "\u00a0", " ") }
		if got := plain(en.why(r, Source{})); got != c.en {
			t.Errorf("%s: %s", c.detail, got)
		}
		if got := plain(es.why(r, Source{})); got != c.es {
			t.Errorf("%s: %s", c.detail, got)
		}
	}
	for _, how := range []string{"space", "newline", "quotes", "name", "escaped", "prefix_extra", "prefix_missing", "newline_added", "newline_lost", "space_added", "line_ends",
		"json_layout", "json_escapes", "charset", "byte_order_mark", "form", "packed"} {
		if en.how(how) == "" || es.how(how) == "" {
			t.Errorf("no words for %s", how)
		}
	}
}

var lookWord = regexp.MustCompile(`name="look" value="([A-Z0-9]+)"`)

// A person pastes a secret, hears how many would verify, and delivers those: without a
// script, and without the secret ever standing in an address or a page.
func TestCheckWithAnotherSecretThenDeliver(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	if page := c.get("/rejections?source=stripe").Body.String(); !strings.Contains(page, "/rejections/recheck?source=stripe") || !strings.Contains(page, "Check with another secret") {
		t.Error("no way there from the list")
	}
	if page := c.get("/rejections/1").Body.String(); !strings.Contains(page, "/rejections/recheck?source=") {
		t.Error("no way there from one")
	}
	form := url.Values{"source": {"stripe"}, "secret": {"case-SECRET-G\r\n"}, "tolerance": {"1h"}}
	r := c.post("/rejections/recheck", form)
	to := r.Header().Get("Location")
	if r.Code != http.StatusSeeOther || !strings.HasPrefix(to, "/rejections/recheck?look=") || strings.Contains(to, "SECRET") {
		t.Fatalf("%d %s", r.Code, to)
	}
	page := html.UnescapeString(c.get(to).Body.String())
	for _, want := range []string{"5 kept requests were checked. 3 would verify.", "Deliver 3", "The secret is not kept."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	word := lookWord.FindStringSubmatch(page)
	if word == nil || strings.Contains(page, "SECRET-G") {
		t.Fatalf("%v: no word, or the secret, stands on the page", word)
	}
	stranger := w.person(t, "otto", access.RoleOwner)
	if r := stranger.post("/rejections/recheck", url.Values{"look": word[1:]}); r.Code != http.StatusConflict {
		t.Errorf("another person's look: %d", r.Code)
	}
	if r := c.post("/rejections/recheck", url.Values{"look": word[1:]}); r.Code != http.StatusSeeOther || r.Header().Get("Location") != "/rejections?source=stripe" {
		t.Fatalf("%d %s", r.Code, r.Header().Get("Location"))
	}
	if page := c.get("/rejections?source=stripe").Body.String(); !strings.Contains(page, "2 deliveries were accepted. 1 was known already.") {
		t.Error("the outcome is not told")
	}
	if r := c.post("/rejections/recheck", url.Values{"look": word[1:]}); r.Code != http.StatusConflict || !strings.Contains(r.Body.String(), "Check again") {
		t.Errorf("a second time: %d", r.Code)
	}
	by := store.Actor{Name: w.rechecks[0].By.Name, From: w.rechecks[0].By.From}
	q := RecheckRequest{Source: "stripe", Secret: "case-SECRET-G", Tolerance: time.Hour, By: by}
	delivered := q
	delivered.Deliver = true
	if !reflect.DeepEqual(w.rechecks, []RecheckRequest{q, delivered}) || by.Name == "" {
		t.Errorf("%+v", w.rechecks)
	}
	if strings.Contains(w.log.String(), "SECRET-G") {
		t.Error("the secret is in the log")
	}
}

func TestRecheckMistakes(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	for _, one := range []struct {
		form url.Values
		code int
		text string
	}{
		{url.Values{"source": {"stripe"}, "secret": {"case-SECRET-*"}}, 422, "This cannot be a secret of the source"},
		{url.Values{"source": {"stripe"}, "tolerance": {"soon"}}, 422, "Not a duration"},
		{url.Values{"source": {"nowhere"}}, 404, ""},
		{url.Values{"look": {"NOTHING"}}, 409, "too long ago"},
	} {
		r := c.post("/rejections/recheck", one.form)
		if r.Code != one.code || !strings.Contains(r.Body.String(), one.text) || strings.Contains(r.Body.String(), "SECRET-*") {
			t.Errorf("%v: %d", one.form, r.Code)
		}
	}
	to := c.post("/rejections/recheck", url.Values{"source": {"stripe"}}).Header().Get("Location")
	if page := c.get(to).Body.String(); !strings.Contains(page, "0 would verify") || strings.Contains(page, `name="look"`) || !strings.Contains(page, "Try another one") {
		t.Error("nothing to deliver is offered")
	}
}

// Whoever chooses the secret chooses what passes: that takes an owner, or the scope admin.
func TestAnotherSecretTakesAnOwner(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	operator := w.person(t, "omar", access.RoleOperator)
	if page := operator.get("/rejections/recheck").Body.String(); strings.Contains(page, `name="secret"`) || strings.Contains(page, `name="tolerance"`) {
		t.Error("an operator may type a secret")
	}
	for _, form := range []url.Values{{"source": {"stripe"}, "secret": {"x"}}, {"source": {"stripe"}, "tolerance": {"1h"}}} {
		if r := operator.post("/rejections/recheck", form); r.Code != http.StatusForbidden {
			t.Errorf("%v: %d", form, r.Code)
		}
	}
	if r := operator.post("/rejections/recheck", url.Values{"source": {"stripe"}}); r.Code != http.StatusSeeOther {
		t.Errorf("with the configured ones: %d", r.Code)
	}
	viewer := w.person(t, "vera", access.RoleViewer)
	if r := viewer.get("/rejections/recheck"); r.Code != http.StatusForbidden {
		t.Errorf("a viewer: %d", r.Code)
	}
	secret, _, err := w.tokens.Create(t.Context(), "ci", "", []string{access.Resend}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for body, code := range map[string]int{`{"source":"stripe"}`: 200, `{"source":"stripe","secret":"x"}`: 403, `{"source":"stripe","tolerance":60}`: 403} {
		if r := w.call(t, "POST", "/api/v1/rejections/recheck", secret, body); r.Code != code {
			t.Errorf("%s: %d %s", body, r.Code, r.Body)
		}
	}
	if r := w.call(t, "POST", "/api/v1/rejections/recheck", adminToken, `{"source":"stripe","tolerance":60}`); r.Code != 200 || w.rechecks[len(w.rechecks)-1].Tolerance != time.Minute {
		t.Errorf("seconds as a number: %d", r.Code)
	}
}

// An ended session keeps the form in an address, and no secret in it.
func TestAnEndedSessionKeepsNoSecret(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	delete(c.cookies, "acuse")
	r := c.post("/rejections/recheck", url.Values{"source": {"stripe"}, "secret": {"case-SECRET-G"}})
	if r.Code != http.StatusForbidden || !strings.Contains(r.Body.String(), "source%3dstripe") && !strings.Contains(r.Body.String(), "source=stripe") || strings.Contains(r.Body.String(), "SECRET-G") {
		t.Errorf("%d %s", r.Code, r.Body)
	}
}
