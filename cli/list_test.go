package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestListPrintsTheColumnsOfTheGuide(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/destinations", 200, destinations)
	github := strings.NewReplacer(`"source":"stripe"`, `"source":"github"`, "invoice.paid", "push", "14:02:11", "13:58:40").
		Replace(one(10471, "dead", jobOf("dead", 12, `"last_status":null,"last_error":"connection refused"`)))
	s.answer("GET /api/v1/deliveries", 200, pageOf("",
		one(10482, "dead", jobOf("dead", 12, `"last_status":503,"last_error":"status 503","last_duration_us":1200000`)), github))
	s.run(t, "list", "--state", "dead").want(t, 0,
		"#10482  2026-11-30 14:02:11  stripe  invoice.paid  dead  12 of 12  app  503 after 1.2 s\n"+
			"#10471  2026-11-30 13:58:40  github  push          dead  12 of 12  app  connection refused\n",
		"2 deliveries. Resend them: acuse resend --state dead")
	s.runIn(t, "es_ES.UTF-8", "list", "--state", "dead").want(t, 0,
		"#10482  2026-11-30 14:02:11  stripe  invoice.paid  fallido  12 de 12  app  503 tras 1,2 s\n"+
			"#10471  2026-11-30 13:58:40  github  push          fallido  12 de 12  app  connection refused\n",
		"2 entregas. Para reenviar: acuse resend --state dead")
	if r := s.run(t, "list", "-q", "--state", "dead"); r.err != "" {
		t.Errorf("-q prints %q on standard error", r.err)
	}
}

func TestListTellsWhatElseARowHas(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/destinations", 404, problemOf("not-found", "Not Found", ""))
	waiting := strings.Replace(one(3, "queued", strings.Replace(jobOf("queued", 2, `"last_status":503,"last_error":null`), `"due_at":null`, `"due_at":"2026-11-30T14:05:00.000Z"`, 1)+
		","+jobOf("delivered", 1, `"last_status":200,"last_error":null`)), `"duplicates":0`, `"duplicates":3`, 1)
	s.answer("GET /api/v1/deliveries", 200, pageOf("", waiting, strings.Replace(one(2, "quarantined", ""), `"test":false`, `"test":true`, 1)))
	s.run(t, "list").want(t, 0,
		"#3  2026-11-30 14:02:11  stripe  invoice.paid  queued       2  app +1  503  next 2026-11-30 14:05:00  +3 duplicates\n"+
			"#2  2026-11-30 14:02:11  stripe  invoice.paid  quarantined  –  –       test\n", "2 deliveries.")
}

func TestListGoesThroughPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/destinations", 200, destinations)
	s.mux.HandleFunc("GET /api/v1/deliveries", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("source") != "stripe" || q.Get("since") != "2026-11-30T12:02:31.000Z" {
			t.Errorf("asked %s", r.URL.RawQuery)
		}
		switch q.Get("before") {
		case "":
			_, _ = io.WriteString(w, pageOf("8", one(9, "delivered", ""), one(8, "delivered", "")))
		case "8":
			_, _ = io.WriteString(w, pageOf("7", one(7, "delivered", "")))
		default:
			_, _ = io.WriteString(w, pageOf("", one(6, "delivered", "")))
		}
	})
	r := s.run(t, "list", "--source", "stripe", "--since", "2h", "--json")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(lines) != 4 || r.code != 0 {
		t.Fatalf("%d lines, exit %d: %s", len(lines), r.code, r.err)
	}
	for i, l := range lines {
		var d map[string]any
		if err := json.Unmarshal([]byte(l), &d); err != nil || d["id"] != float64(9-i) || d["received_at"] != "2026-11-30T14:02:11.000Z" {
			t.Errorf("line %d: %s", i, l)
		}
	}
	if r := s.run(t, "list", "--source", "stripe", "--since", "2h", "--json", "--limit", "3"); strings.Count(r.out, "\n") != 3 {
		t.Errorf("--limit 3 prints\n%s", r.out)
	}
}

func TestListIsEmpty(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/destinations", 200, destinations)
	s.answer("GET /api/v1/deliveries", 200, pageOf(""))
	s.run(t, "list").want(t, 0, "", "Nothing has arrived yet.")
	s.run(t, "list", "--state", "dead").want(t, 0, "", "No delivery matches.")
	s.runIn(t, "es", "list").want(t, 0, "", "Aún no ha llegado nada.")
}

func TestWhatSendersWroteCannotReachTheTerminal(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/destinations", 200, destinations)
	nasty := strings.Replace(one(1, "dead", jobOf("dead", 1, `"last_status":null,"last_error":"\u001b[2J\u009bboo"`)), "invoice.paid", `\u001b]0;pwned\u0007in\u202evoice\n#2`, 1)
	s.answer("GET /api/v1/deliveries", 200, pageOf("", nasty))
	s.answer("GET /api/v1/deliveries/1", 200, strings.Replace(nasty, `"jobs"`, `"headers":{"X-\u001b[A":["\u001b[B\r"]},"attempts":[],"jobs"`, 1))
	s.mux.HandleFunc("GET /api/v1/deliveries/1/body", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a\x1b[31m\xff\nb\r\nc") })
	for _, args := range [][]string{{"list"}, {"show", "1"}} {
		r := s.run(t, args...)
		if r.code != 0 || strings.ContainsAny(r.out, "\x1b\u009b\u202e\a\r") {
			t.Errorf("%v: exit %d, %q", args, r.code, r.out)
		}
		if args[0] == "list" && strings.Count(r.out, "\n") != 1 {
			t.Errorf("a type makes lines of its own: %q", r.out)
		}
	}
	term := call(t, Options{Terminal: true, Env: []string{"ACUSE_DATA_DIR=" + s.dir, "NO_COLOR=1"}}, "body", "1")
	term.want(t, 0, "a·[31m·\nb\nc\n")
	s.run(t, "body", "#1").want(t, 0, "a\x1b[31m\xff\nb\r\nc")
}

func TestColourOnlyOnATerminal(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/destinations", 200, destinations)
	s.answer("GET /api/v1/deliveries", 200, pageOf("", one(1, "dead", "")))
	for name, c := range map[string]struct {
		terminal bool
		env      string
		want     bool
	}{"a terminal": {true, "A=b", true}, "NO_COLOR": {true, "NO_COLOR=1", false}, "a pipe": {false, "A=b", false}} {
		r := call(t, Options{Terminal: c.terminal, Env: []string{"ACUSE_DATA_DIR=" + s.dir, c.env}}, "list")
		if got := strings.Contains(r.out, "\x1b["); got != c.want {
			t.Errorf("%s: colour %v", name, got)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/destinations", 200, destinations)
	d := one(10482, "queued", strings.Replace(jobOf("queued", 1, `"last_status":503,"last_error":"status 503"`), `"due_at":null`, `"due_at":"2026-11-30T14:05:00.000Z"`, 1))
	d = strings.Replace(d, `"jobs"`, `"quarantine":null,"payload_gone":false,"headers":{"Content-Type":["application/json"],"Stripe-Signature":["[hidden]"]},`+
		`"attempts":[{"id":1,"job":7,"attempt":1,"started_at":"2026-11-30T14:02:12.000Z","outcome":"failed","status":503,"error":"Service Unavailable","duration_us":84000}],"effects":[],"jobs"`, 1)
	s.answer("GET /api/v1/deliveries/10482", 200, d)
	s.answer("GET /api/v1/deliveries/9", 404, problemOf("not-found", "Not Found", ""))
	s.run(t, "show", "10482").want(t, 0, `#10482     queued
source     stripe
event id   evt_10482
type       invoice.paid
resource   in_1
received   2026-11-30 14:02:11, 612 B
signature  good, by secret 1

app  queued  1 of 12  next 2026-11-30 14:05:00
  key  stripe:evt_1:app
  1  2026-11-30 14:02:12  84 ms  503, Service Unavailable

Content-Type: application/json
Stripe-Signature: [hidden]
`)
	if r := s.run(t, "show", "10482", "--json"); r.out != d+"\n" {
		t.Errorf("--json is not the API's own: %s", r.out)
	}
	s.run(t, "show", "9").want(t, 3, "", "acuse: no delivery #9 here; it may have been removed by retention\n")
	s.runIn(t, "es", "show", "9").want(t, 3, "", "aquí no hay entrega #9")
	s.run(t, "show", "nine").want(t, 2, "", `"nine" is no delivery number`, "help: acuse show -h")
}

func TestSizesAndSpans(t *testing.T) {
	t.Parallel()
	en, es := newApp(Options{Env: []string{}}), newApp(Options{Env: []string{"LANG=es"}})
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 369634: "361 KiB", 1288490188: "1.2 GiB", 2 << 30: "2 GiB", 1<<63 - 1: "8 EiB"} {
		if got := en.size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := es.size(1288490188); got != "1,2 GiB" {
		t.Errorf("in Spanish: %s", got)
	}
	for us, want := range map[int64]string{0: "0 ms", 84_000: "84 ms", 1_200_000: "1.2 s", 90_000_000: "1 min"} {
		if got := en.lasted(us); got != want {
			t.Errorf("%d: %s, want %s", us, got, want)
		}
	}
}
