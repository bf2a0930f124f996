package admin

import (
	"fmt"
	"strings"
	"testing"

	"acuse/provider"
)

func TestWhatATestSaysInBothLanguages(t *testing.T) {
	t.Parallel()
	en, es := locales(t)
	for _, c := range []struct {
		says   Says
		en, es string
	}{
		{Says{SaysSecret, []any{1, 2}}, "with secret 1 of 2", "con el secreto 1 de 2"},
		{Says{Key: SaysTestKey}, "with a test key of this process, in place of the provider's own", "con una clave de prueba de este proceso, en lugar de la del proveedor"},
		{Says{Key: SaysUnsigned}, "nothing: the source takes unsigned events", "nada: la fuente admite eventos sin firma"},
		{Says{SaysAnswered, []any{"#7, #8", "200"}}, "#7, #8, answered 200", "#7, #8, respuesta 200"},
		{Says{SaysLeased, []any{"http"}}, "by http", "por http"},
		{Says{SaysDelivered, []any{"app", Outcome{Status: 204}}}, "to app, 204", "a app, 204"},
		{Says{SaysDelivered, []any{"app", Outcome{}}}, "to app, –", "a app, –"},
		{Says{SaysFailed, []any{"app", 3, Outcome{Class: "timeout"}}}, "to app, attempt 3: No answer in time", "a app, intento 3: Sin respuesta a tiempo"},
		{Says{SaysFailed, []any{"app", 3, Outcome{Status: 503, Class: "status"}}}, "to app, attempt 3: 503", "a app, intento 3: 503"},
		{Says{Key: SaysWaits}, "waits for a worker to lease it", "espera a que alguien lo reserve"},
		{Says{Key: SaysNowhere}, "the source delivers nowhere", "la fuente no entrega a ningún sitio"},
		{Says{SaysRefused, []any{provider.TokenMismatch}}, "The source would refuse its own test event. The token or password is another than configured.",
			"La fuente rechazaría su propio evento de prueba. El token o la contraseña no es el configurado."},
		{Says{SaysGoesOn, []any{"#7", 60}}, "#7 is not done after 60 s. It goes on by itself; its page shows how.", "#7 no ha terminado tras 60 s. Sigue por sí mismo; su página lo muestra."},
		{saysOf(fmt.Errorf("disk %w", errAbsent)), "The test could not be made. The log says why.", "No se pudo hacer la prueba. El registro dice por qué."},
		{saysOf(fmt.Errorf("test: %w", &TestError{Says: Says{Key: SaysLost}})), "It was accepted, and it is not in the archive.", "Se aceptó, y no está en el archivo."},
	} {
		if got := en.says(c.says); got != c.en {
			t.Errorf("%s", got)
		}
		if got := es.says(c.says); got != c.es {
			t.Errorf("%s", got)
		}
	}
	for _, step := range []string{"signed", "accepted", "leased", "delivered", "failed", "queued", "kept"} {
		if en.known("test.step.", step) != step || es.known("test.step.", step) == "" {
			t.Errorf("no words for the step %s", step)
		}
	}
}

// Every class that the sending rooms give an attempt has words; a page never shows the
// machine's.
func TestClassesHaveWords(t *testing.T) {
	t.Parallel()
	en, es := locales(t)
	for _, class := range []string{"cancelled", "compose", "connection", "dns_failed", "dns_not_found", "dns_timeout", "empty_reply", "exec_dir", "exec_lost", "exec_not_executable", "exec_not_found", "exec_start", "exec_user", "exhausted", "exit", "forbidden_address",
		"hard_limit", "nack", "not_http", "panic", "refused", "reset", "signal", "timeout", "tls", "unreachable"} {
		if en.class(0, class) == class || es.class(0, class) == class {
			t.Errorf("no words for %s", class)
		}
	}
}

// The API speaks English unless it is asked for Spanish.
func TestTheAPISaysItInTheLanguageAskedFor(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	for path, want := range map[string][]string{
		"/api/v1/sources/stripe/test":         {`"text":"with secret 1 of 2"`, `"step":"signed"`},
		"/api/v1/sources/stripe/test?lang=es": {`"text":"con el secreto 1 de 2"`, `"step":"signed"`},
		"/api/v1/sources/stripe/test?lang=fr": {`"text":"with secret 1 of 2"`},
	} {
		r := w.call(t, "POST", path, adminToken, `{"type":"no.such"}`)
		for _, text := range append(want, `"step":"failed"`) {
			if !strings.Contains(r.Body.String(), text) {
				t.Errorf("%s lacks %s:\n%s", path, text, r.Body)
			}
		}
	}
	if r := w.call(t, "POST", "/api/v1/sources/stripe/test?lang=es", adminToken, `{"type":"no.such"}`); !strings.Contains(r.Body.String(), "No hay evento de prueba del tipo no.such.") {
		t.Errorf("%s", r.Body)
	}
	if r := w.call(t, "POST", "/api/v1/sources/stripe/test", adminToken, `{"type":"broken"}`); strings.Contains(r.Body.String(), "disk") || !strings.Contains(w.log.String(), "the disk is gone") {
		t.Errorf("%s", r.Body)
	}
	for path, want := range map[string]string{"/api/v1/rejections": "this source allows", "/api/v1/rejections?lang=es": "esta fuente admite"} {
		if r := w.call(t, "GET", path, adminToken, ""); !strings.Contains(r.Body.String(), want) {
			t.Errorf("%s lacks %q", path, want)
		}
	}
	if r := w.call(t, "GET", "/api/v1/rejections/33?lang=es", adminToken, ""); !strings.Contains(r.Body.String(), "esta fuente admite") {
		t.Errorf("%s", r.Body)
	}
}
