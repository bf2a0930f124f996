package alert

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"acuse/store"
)

// words are a language. In the texts {count}, {subject}, {cause}, {since}, {text} and
// {after} are filled in.
type words struct {
	start   map[string][2]string // by rule: of one, of many
	still   string
	over    map[string]string // by rule
	class   map[string]string // of a failed attempt
	tooOld  string
	unknown string
	test    string
	at      string // {since}, today
	day     [2]string
}

func wordsOf(language string) *words {
	if strings.HasPrefix(language, "es") {
		return &spanish
	}
	return &english
}

var english = words{
	start: map[string][2]string{
		Dead:       {"{count} dead letter for {subject} — {cause} since {since}", "{count} dead letters for {subject} — {cause} since {since}"},
		Quarantine: {"{count} delivery in quarantine since {since}", "{count} deliveries in quarantine since {since}"},
		Storage:    {"storage cannot be written since {since}: acuse answers 503, providers try again later"},
		Disk:       {"the volume is {subject} % full since {since}: lower the retention or free space"},
		Clock:      {"the clock of this machine is wrong since {since}: requests with a signed time are answered 503 until it is set"},
		Backup:     {"the planned backup is overdue since {since}; the log says why"},
		Order:      {"an event for {subject} has held up others of its order since {since}", "{count} events for {subject} hold up others of their order, the first since {since}"},
		Removed:    {"{count} job waits for {subject}, which is not configured, since {since}", "{count} jobs wait for {subject}, which is not configured, since {since}"},
	},
	still: "{text} — still so after {after}",
	over: map[string]string{
		Dead:       "no dead letters for {subject} any more, after {after}",
		Quarantine: "nothing in quarantine any more, after {after}",
		Storage:    "storage can be written again, after {after}",
		Disk:       "the volume is under {subject} % again, after {after}",
		Clock:      "the clock is right again, after {after}",
		Backup:     "the planned backup was made, after {after}",
		Order:      "no order of {subject} is held up any more, after {after}",
		Removed:    "no jobs wait for {subject} any more, after {after}",
	},
	class: map[string]string{
		"timeout": "timeout", "refused": "connection refused", "reset": "connection reset", "empty_reply": "empty reply", "tls": "TLS failure",
		"dns_failed": "DNS failure", "dns_not_found": "unknown host", "dns_timeout": "DNS timeout", "unreachable": "host unreachable", "rule": "its rule failed",
	},
	tooOld:  "too old",
	unknown: "no answer",
	test:    "test message: alerts arrive here",
	at:      "{since}",
	day:     [2]string{"{count} day", "{count} days"},
}

var spanish = words{
	start: map[string][2]string{
		Dead:       {"{count} fallido para {subject} — {cause} desde {since}", "{count} fallidos para {subject} — {cause} desde {since}"},
		Quarantine: {"{count} entrega en cuarentena desde {since}", "{count} entregas en cuarentena desde {since}"},
		Storage:    {"no se puede escribir en el almacenamiento desde {since}: acuse responde 503 y los proveedores reintentan más tarde"},
		Disk:       {"el volumen está al {subject} % desde {since}: bajar la retención o liberar espacio"},
		Clock:      {"el reloj de este equipo está mal desde {since}: las peticiones con hora firmada reciben 503 hasta que se ajuste"},
		Backup:     {"la copia de seguridad prevista falta desde {since}; el registro dice por qué"},
		Order:      {"un evento para {subject} retiene a otros de su orden desde {since}", "{count} eventos para {subject} retienen a otros de su orden, el primero desde {since}"},
		Removed:    {"{count} envío espera a {subject}, que no está configurado, desde {since}", "{count} envíos esperan a {subject}, que no está configurado, desde {since}"},
	},
	still: "{text} — sigue así tras {after}",
	over: map[string]string{
		Dead:       "ya no hay fallidos para {subject}, tras {after}",
		Quarantine: "ya no hay nada en cuarentena, tras {after}",
		Storage:    "ya se puede escribir en el almacenamiento, tras {after}",
		Disk:       "el volumen vuelve a estar por debajo del {subject} %, tras {after}",
		Clock:      "el reloj vuelve a estar bien, tras {after}",
		Backup:     "la copia de seguridad prevista está hecha, tras {after}",
		Order:      "ya no se retiene ningún orden de {subject}, tras {after}",
		Removed:    "ya no esperan envíos a {subject}, tras {after}",
	},
	class: map[string]string{
		"timeout": "tiempo agotado", "refused": "conexión rechazada", "reset": "conexión cortada", "empty_reply": "respuesta vacía", "tls": "fallo de TLS",
		"dns_failed": "fallo de DNS", "dns_not_found": "nombre desconocido", "dns_timeout": "DNS sin respuesta", "unreachable": "sin ruta al servidor", "rule": "falló su regla",
	},
	tooOld:  "demasiado antiguo",
	unknown: "sin respuesta",
	test:    "mensaje de prueba: los avisos llegan aquí",
	at:      "las {since}",
	day:     [2]string{"{count} día", "{count} días"},
}

// fill puts values into a text: pairs of name and value.
func fill(text string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		text = strings.Replace(text, "{"+pairs[i]+"}", pairs[i+1], 1)
	}
	return text
}

// number picks the form of one or of many.
func number(forms [2]string, n int64) string {
	if n == 1 || forms[1] == "" {
		return forms[0]
	}
	return forms[1]
}

// prefix opens every message: "[acuse home-pi] ".
func (a *Alerter) prefix() string {
	return strings.TrimSpace("[acuse "+a.opt.Name) + "] "
}

// message is the whole of what is sent about m at the instant now.
func (a *Alerter) message(m *matter, now time.Time) string {
	text := m.Text
	switch {
	case !m.Ended.IsZero():
		text = fill(a.words.over[m.Rule], "after", a.span(m.Ended.Sub(m.Since)), "subject", m.Subject)
	case !m.SentAt.IsZero():
		text = fill(a.words.still, "after", a.span(now.Sub(m.Since)), "text", m.Text)
	}
	text = a.prefix() + text
	if a.opt.Link != "" {
		text += "\n" + strings.TrimSuffix(a.opt.Link, "/") + page(m.Notice)
	}
	return text
}

// page is where a person sees to it.
func page(n store.Notice) string {
	switch n.Rule {
	case Dead:
		return "/dead?destination=" + url.QueryEscape(n.Subject)
	case Quarantine:
		return "/deliveries?state=quarantined"
	case Order:
		return "/destinations"
	case Removed:
		return "/deliveries?state=queued&destination=" + url.QueryEscape(n.Subject)
	}
	return "/settings/storage"
}

// text says what is the matter, without prefix and link.
func (a *Alerter) text(m *matter) string {
	f := m.finding
	return fill(number(a.words.start[m.Rule], f.count),
		"count", strconv.FormatInt(f.count, 10), "cause", a.cause(f), "since", a.clock(m.Since), "subject", m.Subject)
}

// cause is why the job's last attempt failed.
func (a *Alerter) cause(f finding) string {
	switch {
	case f.reason == store.TooOld:
		return a.words.tooOld
	case f.status != 0:
		return strconv.Itoa(f.status)
	case a.words.class[f.class] != "":
		return a.words.class[f.class]
	case f.class != "":
		return f.class
	}
	return a.words.unknown
}

// clock is a time of day, with its date when it is not today's.
func (a *Alerter) clock(t time.Time) string {
	t = t.In(a.opt.Location)
	now := a.opt.Now().In(a.opt.Location)
	if t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return t.Format("2006-01-02 15:04")
	}
	return fill(a.words.at, "since", t.Format("15:04"))
}

// span is a duration for people: "45 s", "12 min", "2 h 5 min", "3 days".
func (a *Alerter) span(d time.Duration) string {
	d = d.Round(time.Second)
	switch h, m := int(d.Hours()), int(d.Minutes())%60; {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case h == 0:
		return fmt.Sprintf("%d min", m)
	case h < 24 && m == 0:
		return fmt.Sprintf("%d h", h)
	case h < 24:
		return fmt.Sprintf("%d h %d min", h, m)
	default:
		days := int64(h / 24)
		return fill(number(a.words.day, days), "count", strconv.FormatInt(days, 10))
	}
}
