package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"acuse/provider"
)

// sick is a source that refuses what its provider sends, and why.
type sick struct {
	name     string // of the source
	provider string // as configured
	secret   string // as configured, in YAML
	signer   string // the provider that sends; empty: the same
	right    string // the secret that it signs with
	late     time.Duration
	body     string
	header   []string // besides the signature
	change   func(body []byte) []byte
	lost     string // header that does not arrive

	cause  string   // of the diagnosis
	en, es string   // part of its words
	cure   []string // arguments of a recheck that lets it in; nil: there is none
}

const shopBody = `{"id":"evt_%s","object":"event","type":"invoice.paid","livemode":true,"amount":10.50,"data":{"object":{"id":"in_1","name":"café / <ok>"}}}`

// secretFile in a cure stands for the file that holds the right secret.
const secretFile = "right.txt"

var withRight = []string{"--secret-file", secretFile}

func sickSources() []sick {
	swap := func(pairs ...string) func([]byte) []byte {
		return func(b []byte) []byte { return []byte(strings.NewReplacer(pairs...).Replace(string(b))) }
	}
	latin1 := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\xe9"), []byte("é")) }
	packed := func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(b) // to memory
		_ = w.Close()
		return out.Bytes()
	}
	const wrong, changed = "written differently", "cause=body_changed;how="
	return []sick{
		{name: "whose", secret: `"whsec_mine"`, right: "whsec_of_shop", cause: "cause=other_secret;source=shop", en: "signed with another secret. It is that of the source shop.", es: "se firmó con otro secreto", cure: withRight},
		{name: "nobodys", secret: `"whsec_mine"`, right: "whsec_unheard_of", cause: "cause=cannot_tell", en: "cannot be told apart", es: "No se puede distinguir", cure: withRight},
		{name: "testing", secret: `"whsec_test_mine"`, right: "whsec_of_shop", cause: "cause=test_secret;how=test;source=shop;event=live", en: "A live event, and this source has the test secret.", es: "Un evento real", cure: withRight},
		{name: "newline", secret: `"whsec_n1\n"`, right: "whsec_n1", cause: "cause=secret_text;how=newline", en: wrong + " here. It ends with a newline.", es: "Termina con un salto de línea.", cure: withRight},
		{name: "spaces", secret: `" whsec_n2 "`, right: "whsec_n2", cause: "cause=secret_text;how=space", en: "There are spaces", es: "espacios", cure: withRight},
		{name: "quotes", secret: `"'whsec_n3'"`, right: "whsec_n3", cause: "cause=secret_text;how=quotes", en: "There are quotes", es: "comillas", cure: withRight},
		{name: "prefix", secret: `"n4n4n4n4"`, right: "whsec_n4n4n4n4", cause: "cause=secret_text;how=prefix_missing", en: "Its prefix is missing.", es: "Le falta el prefijo.", cure: withRight},
		{name: "layout", secret: `"whsec_b1"`, right: "whsec_b1", change: swap(`":"`, `": "`, `":{`, `": {`, `":t`, `": t`, `":1`, `": 1`, `,"`, `, "`), cause: changed + "json_layout", en: "another layout", es: "otra disposición"},
		{name: "escapes", secret: `"whsec_b2"`, right: "whsec_b2", change: swap("é", `\u00e9`), cause: changed + "json_escapes", en: "escaped in another way", es: "escritos de otra manera"},
		{name: "trimmed", secret: `"whsec_b3"`, right: "whsec_b3", body: shopBody + "\n", change: bytes.TrimSpace, cause: changed + "newline_lost", en: "with a newline at its end", es: "con un salto de línea al final"},
		{name: "added", secret: `"whsec_b4"`, right: "whsec_b4", change: func(b []byte) []byte { return append(b, '\n') }, cause: changed + "newline_added", en: "without the newline", es: "sin el salto de línea"},
		{name: "crlf", secret: `"whsec_b5"`, right: "whsec_b5", body: "{\n\"id\": \"evt_%s\"\n,\"n\":1}", change: swap("\n", "\r\n"), cause: changed + "line_ends", en: "other line ends", es: "otros finales de línea"},
		{name: "charset", secret: `"whsec_b6"`, right: "whsec_b6", body: "{\"id\":\"evt_%s\",\"name\":\"caf\xe9\"}", change: latin1, cause: changed + "charset", en: "another character set", es: "otro juego de caracteres"},
		{name: "packed", provider: "github", secret: `"b7"`, right: "b7", body: `{"ref":"%s"}`, header: []string{"X-GitHub-Event", "push", "X-GitHub-Delivery", "d7", "Content-Encoding", "gzip"}, change: packed, cause: changed + "packed", en: "It fits unpacked", es: "Corresponde descomprimido"},
		{name: "form", provider: "slack", secret: `"b8"`, right: "b8", body: "command=%%2Fgo&text=a+b~c&trigger_id=%s", header: []string{"Content-Type", "application/x-www-form-urlencoded"}, change: swap("a+b", "a%20b"), cause: changed + "form",
			en: "form fields encoded in another way", es: "codificados de otra manera"},
		{name: "old-a", secret: `"whsec_c1"`, right: "whsec_c1", late: 14 * time.Minute, cause: "cause=too_old;skew=N;allowed=300s", en: " ago; this source allows 5 min. Check this machine's clock.", es: "; esta fuente admite 5 min. Revisar el reloj", cure: []string{"--tolerance", "30m"}},
		{name: "old-b", provider: "slack", secret: `"c2"`, right: "c2", body: `{"type":"event_callback","event_id":"evt_%s","event":{"type":"message"}}`, late: 14 * time.Minute, cause: "cause=too_old;skew=N;allowed=300s;agree=2",
			en: "2 sources show the same gap, which points at this machine's clock.", es: "2 fuentes muestran la misma diferencia", cure: []string{"--tolerance", "1800"}},
		{name: "old-c", provider: "standard-webhooks", secret: `"whsec_c2VjcmV0LW9mLW9sZC1jLXNlY3JldA=="`, right: "whsec_c2VjcmV0LW9mLW9sZC1jLXNlY3JldA==", header: []string{"Webhook-Id", "evt_old-c"}, late: 14 * time.Minute,
			cause: "cause=too_old;skew=N;allowed=300s;agree=3", en: "3 sources show the same gap", es: "3 fuentes muestran la misma diferencia", cure: []string{"--tolerance", "30m"}},
		{name: "future", secret: `"whsec_c4"`, right: "whsec_c4", late: -2 * time.Hour, cause: "cause=too_new;skew=N;allowed=300s", en: " in the future; this source allows 5 min.", es: " en el futuro; esta fuente admite 5 min.", cure: []string{"--tolerance", "3h"}},
		{name: "lost", provider: "github", secret: `"d1"`, right: "d1", body: `{"ref":"%s"}`, header: []string{"X-GitHub-Event", "push", "X-GitHub-Delivery", "d1"}, lost: "X-Hub-Signature-256",
			cause: "cause=header_missing;missing=header:X-Hub-Signature-256;present=X-Github-Delivery,X-Github-Event", en: "No X-Hub-Signature-256 header, while X-Github-Delivery, X-Github-Event is there.", es: "Falta la cabecera X-Hub-Signature-256"},
		{name: "chosen", provider: "polar", secret: `"whsec_c2VjcmV0LW9mLWNob3Nlbi1zZWNyZXQ="`, signer: "standard-webhooks", right: "whsec_c2VjcmV0LW9mLWNob3Nlbi1zZWNyZXQ=", header: []string{"Webhook-Id", "evt_chosen"},
			cause: "cause=other_provider;provider=", en: "another provider is chosen for this source", es: "se eligió otro proveedor"},
		{name: "stranger", provider: "github", secret: `"d3"`, signer: "stripe", right: "whsec_d3", cause: "cause=other_provider;provider=stripe;shown=headers", en: "It has the headers of stripe", es: "Tiene las cabeceras de stripe"},
	}
}

// send is one request of the sick source, as it arrives.
func (s *sick) send(t *testing.T, p *place, at time.Time) {
	t.Helper()
	catalogue, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	sender, ok := catalogue.Get(s.signer)
	if !ok {
		t.Fatalf("no provider %s", s.signer)
	}
	c, err := sender.Compile(provider.Settings{Secrets: []string{s.right}})
	if err != nil {
		t.Fatal(err)
	}
	r := &provider.Request{Method: "POST", Target: "/in/" + s.name, Header: http.Header{"Content-Type": {"application/json"}}, Body: fmt.Appendf(nil, s.body, s.name)}
	for i := 0; i < len(s.header); i += 2 {
		r.Header.Set(s.header[i], s.header[i+1])
	}
	if err := c.Sign(r, 1, at.Add(-s.late)); err != nil {
		t.Fatal(err)
	}
	if s.change != nil {
		r.Body = s.change(r.Body)
	}
	r.Header.Del(s.lost)
	var header []string
	for name, values := range r.Header {
		header = append(header, name, values[0])
	}
	if got := p.must("POST", p.in(s.name), r.Body, header...); got.Status/100 != 4 {
		t.Fatalf("%s: answered %d %s", s.name, got.Status, got.Body)
	}
}

// refusal is a rejection as the API shows it.
type refusal struct {
	ID        int64  `json:"id"`
	Detail    string `json:"detail"`
	Diagnosis string `json:"diagnosis"`
	Count     int    `json:"count"`
}

func (p *place) refusals(source string) []refusal {
	p.t.Helper()
	r := p.api("GET", "/api/v1/rejections?limit=500&source="+source, nil)
	r.is(p.t, 200)
	var got struct{ Rejections []refusal }
	r.read(p.t, &got)
	return got.Rejections
}

// TestTheDoctorThroughTheProduct: each fault of a way in makes requests that are refused;
// acuse says which fault it is, in both languages, and what a corrected secret or tolerance
// lets in is delivered, once. Nothing else gets in.
func TestTheDoctorThroughTheProduct(t *testing.T) {
	t.Parallel()
	app := newApp(t, nil)
	list := sickSources()
	var yaml strings.Builder
	yaml.WriteString("sources:\n  shop: {provider: stripe, secrets: [\"whsec_of_shop\"], deliver_to: [app]}\n")
	for i := range list {
		s := &list[i]
		if s.provider == "" {
			s.provider = "stripe"
		}
		if s.signer == "" {
			s.signer = s.provider
		}
		if s.body == "" {
			s.body = shopBody
		}
		fmt.Fprintf(&yaml, "  %s: {provider: %s, secrets: [%s], deliver_to: [app]}\n", s.name, s.provider, s.secret)
	}
	yaml.WriteString("destinations:\n" + destination("app", app.URL))
	p := begin(t, yaml.String())
	sent := time.Now()
	for i := range list {
		s := &list[i]
		s.send(t, p, sent)
		p.diagnosed(s, sent)
	}
	if n := len(p.deliveries()); n != 0 {
		t.Fatalf("%d got in", n)
	}
	for i := range list {
		p.cured(&list[i], app)
	}

	// The wrong provider is mended in the file; what was refused comes in with it.
	p.configure(strings.Replace(yaml.String(), "chosen: {provider: polar", "chosen: {provider: standard-webhooks", 1))
	p.Kill()
	p.start()
	p.cli("rejections", "recheck", "chosen", "--deliver").is(t, 0, "1 kept request checked, 1 would verify\n1 delivery accepted, 0 duplicates")
	until(t, "it is delivered", func() bool { return app.times("evt_chosen") == 1 })
}

var skewed = regexp.MustCompile(`skew=(-?[0-9]+s)`)

// diagnosed waits for the cause and reads it at the command line. A cause is looked for
// ten times a second in all: who comes too fast is looked at when they come again.
func (p *place) diagnosed(s *sick, sent time.Time) {
	t := p.t
	t.Helper()
	var got refusal
	asked := time.Now()
	until(t, s.name+": its cause", func() bool {
		if list := p.refusals(s.name); len(list) == 1 {
			got = list[0]
		}
		if got.ID != 0 && !strings.Contains(got.Detail, "cause=") && time.Since(asked) > time.Second {
			asked = time.Now()
			s.send(t, p, sent)
		}
		return strings.Contains(got.Detail, "cause=")
	})
	if m := skewed.FindStringSubmatch(got.Detail); m != nil {
		if skew, err := time.ParseDuration(m[1]); err != nil || (skew-s.late).Abs() > time.Since(sent)+2*time.Second {
			t.Errorf("%s: a gap of %s, want %v", s.name, m[1], s.late)
		}
		got.Detail = skewed.ReplaceAllString(got.Detail, "skew=N")
	}
	if !strings.Contains(got.Detail, s.cause) {
		t.Errorf("%s: %s, want %s", s.name, got.Detail, s.cause)
	}
	plain := func(text string) string { return strings.ReplaceAll(text, "\u00a0", " ") }
	if !strings.Contains(plain(got.Diagnosis), s.en) {
		t.Errorf("%s: %q, want %q", s.name, got.Diagnosis, s.en)
	}
	for _, args := range [][]string{{"rejections", "--source", s.name}, {"rejections", "show", fmt.Sprint(got.ID)}} {
		for lang, want := range map[string]string{"en": s.en, "es": s.es} {
			cmd := p.command(t.Context(), args...)
			cmd.Env = append(cmd.Env, "ACUSE_LANG="+lang)
			if out := runs(t, cmd, ""); out.code != 0 || !strings.Contains(plain(out.out), want) {
				t.Errorf("%s: %v in %s: exit %d, %q %q", s.name, args, lang, out.code, out.out, out.err)
			}
		}
	}
}

// cured checks what is kept of a source again: first as it is, then with the cure.
func (p *place) cured(s *sick, app *app) {
	t := p.t
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.Dir, secretFile), []byte(s.right+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	recheck := func(args ...string) said { return p.cli(append([]string{"rejections", "recheck", s.name}, args...)...) }
	recheck("--deliver").is(t, 0, "0 would verify\n0 deliveries accepted")
	if s.cure == nil { // what was changed on the way stays what it is, under whatever secret
		recheck(append(slices.Clone(withRight), "--tolerance", "24h", "--deliver")...).is(t, 0, "0 would verify\n0 deliveries accepted")
		return
	}
	recheck(s.cure...).is(t, 0, "1 kept request checked, 1 would verify\n", "the same command with --deliver")
	if n := app.times("evt_" + s.name); n != 0 {
		t.Errorf("%s: a look delivered it %d times", s.name, n)
	}
	recheck(append(slices.Clone(s.cure), "--deliver")...).is(t, 0, "1 would verify\n1 delivery accepted, 0 duplicates")
	until(t, s.name+": it is delivered", func() bool { return app.times("evt_"+s.name) == 1 })
	recheck(append(slices.Clone(s.cure), "--deliver")...).is(t, 0, "0 kept requests checked, 0 would verify\n0 deliveries accepted, 0 duplicates")
	if n := app.times("evt_" + s.name); n != 1 {
		t.Errorf("%s: delivered %d times", s.name, n)
	}
}

// TestP5WhoMayResendCannotForge: a token that may resend may have refused requests judged
// by the configuration, and by nothing of its own: it could sign a forgery, and let it in.
func TestP5WhoMayResendCannotForge(t *testing.T) {
	t.Parallel()
	p := begin(t, stripe("agent")+"destinations:\n  agent: {pull: {}}\n")
	forged := sick{name: "stripe", signer: "stripe", right: "whsec_forger", body: shopBody}
	old := sick{name: "stripe", signer: "stripe", right: "whsec_forger", body: shopBody + "\n", late: time.Hour}
	forged.send(t, p, time.Now())
	old.send(t, p, time.Now())
	until(t, "both are kept", func() bool { return len(p.refusals("stripe")) == 2 })
	token := strings.TrimSpace(p.cli("token", "create", "helper", "--scope", "resend", "--scope", "read", "--scope", "body").out)
	for _, in := range []map[string]any{
		{"source": "stripe", "secret": "whsec_forger", "deliver": true}, {"source": "stripe", "tolerance": "24h", "deliver": true},
		{"source": "stripe", "tolerance": 7200, "deliver": true}, {"source": "stripe", "secret": "whsec_forger", "tolerance": "24h"},
	} {
		p.apiAs(token, "POST", "/api/v1/rejections/recheck", in).is(t, 403, "scope")
	}
	p.apiAs(token, "POST", "/api/v1/rejections/recheck", map[string]any{"source": "stripe", "deliver": true}).is(t, 200, `"would_verify":0`, `"delivered":0`)
	reader := strings.TrimSpace(p.cli("token", "create", "reader", "--scope", "read").out)
	p.apiAs(reader, "POST", "/api/v1/rejections/recheck", map[string]any{"source": "stripe"}).is(t, 403, "scope")
	if n := len(p.deliveries()); n != 0 {
		t.Errorf("%d forgeries got in", n)
	}
	p.api("POST", "/api/v1/rejections/recheck", map[string]any{"source": "stripe", "secret": "whsec_forger"}).is(t, 200, `"would_verify":1`) // the owner's own decision
}

// TestP7AFloodOfForgeriesIsAnsweredAndNotExamined: the answers do not wait for causes,
// good events pass meanwhile, and few of the flood are looked at.
func TestP7AFloodOfForgeriesIsAnsweredAndNotExamined(t *testing.T) {
	t.Parallel()
	p := begin(t, stripe("agent")+"destinations:\n  agent: {pull: {}}\n")
	begun := time.Now()
	for i := range 200 {
		forged := sick{name: "stripe", signer: "stripe", right: "whsec_forger", body: fmt.Sprintf(`{"id":"evt_%%s_%d","pad":%q}`, i, strings.Repeat("é/<>", 5000))}
		forged.send(t, p, begun)
		if i%50 == 0 {
			p.event(fmt.Sprintf("evt_good_%d", i))
		}
	}
	var kept []refusal
	until(t, "some are kept", func() bool { kept = p.refusals("stripe"); return len(kept) > 2 })
	seconds := int(time.Since(begun)/time.Second) + 1
	examined := 0
	for _, r := range kept {
		if strings.Contains(r.Detail, "cause=") {
			examined++
		}
	}
	if most := 2 + 2*seconds; examined == 0 || examined > most {
		t.Errorf("%d of %d kept were examined in %d s, at most %d", examined, len(kept), seconds, most)
	}
	if n := len(p.deliveries()); n != 4 {
		t.Errorf("%d good events came in", n)
	}
}
