package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const refused = `{"id":4,"source":"stripe","reason":"timestamp_expired","detail":"at=sig:t;cause=too_old;skew=840s","remote":"203.0.113.7","first_at":"2026-11-30T11:00:00.000Z",` +
	`"last_at":"2026-11-30T11:42:00.000Z","count":14,"status":401,"signed":true,"size":18,"diagnosis":"Signed 14 min ago; this source allows 5.","method":"POST","target":"/in/stripe"`

func TestRejectionsAreListedWithTheirCause(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/rejections", 200, `{"rejections":[`+refused+`}],"next":""}`)
	s.run(t, "rejections").want(t, 0, "4  2026-11-30 11:42:00  stripe  203.0.113.7  ×14  Signed 14 min ago; this source allows 5.\n", "acuse rejections show ID")
	s.runIn(t, "es", "rejections", "--source", "stripe", "--limit", "3").want(t, 0,
		"4  2026-11-30 11:42:00  stripe  203.0.113.7  ×14  Signed 14 min ago; this source allows 5.\n", "Más sobre una: acuse rejections show ID")
	s.runIn(t, "es", "rejections", "--json").want(t, 0, refused+"}\n")
	want := []string{"GET /api/v1/rejections?limit=100", "GET /api/v1/rejections?lang=es&limit=3&source=stripe", "GET /api/v1/rejections?limit=100"}
	if got := s.requests(); strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("asked %q", got)
	}
	for args, code := range map[string]int{"rejections 4": 2, "rejections --limit 0": 2, "rejections show": 2, "rejections show x": 2, "rejections recheck": 2} {
		if r := s.run(t, strings.Fields(args)...); r.code != code || r.out != "" {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

func TestOneRejectionIsShownAsItCame(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/rejections/4", 200, refused+`,"headers":{"Stripe-Signature":["[hidden]"],"User-Agent":["\u001b[2Jx"]},"body_base64":"eyJpZCI6ImV2dF8bIn0K"}`)
	s.answer("GET /api/v1/rejections/5", 200, strings.Replace(refused, `"count":14`, `"count":1`, 1)+`,"headers":{}}`)
	s.answer("GET /api/v1/rejections/9", 404, problemOf("not-found", "Not Found", ""))
	s.run(t, "rejections", "show", "4").want(t, 0, `Signed 14 min ago; this source allows 5.

source    stripe
from      203.0.113.7
seen      ×14, first 2026-11-30 11:00:00, last 2026-11-30 11:42:00
answered  401
reason    timestamp_expired (at=sig:t;cause=too_old;skew=840s)
body      18 B

POST /in/stripe
Stripe-Signature: [hidden]
User-Agent: ·[2Jx

{"id":"evt_·"}
`)
	s.runIn(t, "es", "rejections", "show", "5").want(t, 0, `Signed 14 min ago; this source allows 5.

fuente     stripe
desde      203.0.113.7
visto      2026-11-30 11:42:00
respuesta  401
motivo     timestamp_expired (at=sig:t;cause=too_old;skew=840s)
cuerpo     18 B, no se guardó

POST /in/stripe
`)
	s.run(t, "rejections", "show", "9").want(t, 3, "", "no rejection 9 here")
	if got := s.requests()[1]; got != "GET /api/v1/rejections/5?lang=es" {
		t.Errorf("asked %q", got)
	}
}

// The secret comes from a file or standard input: an argument is read by every process of
// the machine.
func TestRecheckTakesASecretFromAFile(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("POST /api/v1/rejections/recheck", 200, `{"checked":4,"would_verify":2,"delivered":1,"duplicates":1,"quarantined":0}`)
	file := filepath.Join(s.dir, "new.txt")
	if err := os.WriteFile(file, []byte(" whsec_right\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(t, "rejections", "recheck", "stripe", "--secret-file", file).want(t, 0, "4 kept requests checked, 2 would verify\n", "Deliver them: the same command with --deliver")
	s.run(t, "rejections", "recheck", "stripe", "--secret-file", file, "--tolerance", "30m", "--deliver").want(t, 0,
		"4 kept requests checked, 2 would verify\n1 delivery accepted, 1 a duplicate\n", "The secret is not kept: add it to the source")
	s.runIn(t, "es", "rejections", "recheck", "stripe", "--deliver").want(t, 0, "4 peticiones guardadas comprobadas, 2 pasarían\n1 entrega aceptada, 1 duplicado\n")
	if r := s.run(t, "rejections", "recheck", "stripe", "--json"); !strings.HasPrefix(r.out, `{"checked":4,`) {
		t.Errorf("%+v", r)
	}
	typed := call(t, Options{Env: []string{"ACUSE_DATA_DIR=" + s.dir}, Stdin: strings.NewReader("whsec_typed\n")}, "rejections", "recheck", "stripe", "--secret-file", "-")
	typed.want(t, 0, "4 kept requests checked, 2 would verify\n")
	asked := s.requests()
	for i, want := range []string{`{"deliver":false,"secret":" whsec_right","source":"stripe"}`, `{"deliver":true,"secret":" whsec_right","source":"stripe","tolerance":"30m"}`,
		`{"deliver":true,"source":"stripe"}`, `{"deliver":false,"source":"stripe"}`, `{"deliver":false,"secret":"whsec_typed","source":"stripe"}`} {
		if got := asked[i]; got != "POST /api/v1/rejections/recheck "+want {
			t.Errorf("asked %s", got)
		}
	}
}

func TestRecheckMistakes(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("POST /api/v1/rejections/recheck", 404, problemOf("not-found", "Not Found", ""))
	s.run(t, "rejections", "recheck", "nowhere").want(t, 3, "", `no source "nowhere"`)
	empty, long := filepath.Join(s.dir, "empty"), filepath.Join(s.dir, "long")
	for name, text := range map[string]string{empty: "\n", long: strings.Repeat("x", maxSecret+1)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{empty: "no secret in " + empty, long: long + " is too long for a secret", s.dir + "/none": s.dir + "/none cannot be read: no such file"} {
		s.run(t, "rejections", "recheck", "stripe", "--secret-file", name).want(t, 2, "", want)
	}
	if got := s.requests(); len(got) != 1 {
		t.Errorf("asked %q", got)
	}
}
