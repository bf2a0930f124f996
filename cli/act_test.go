package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const resent = `{"delivery":7,"jobs":[{"id":1,"destination":"app","state":"queued"}],"already_queued":false}`

func TestResendOne(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("POST /api/v1/deliveries/7/resend", 202, resent)
	s.run(t, "resend", "#7", "--destination", "app", "--reason", "fixed").want(t, 0, "#7 queued again for app\n")
	if got := s.requests(); !slices.Equal(got, []string{`POST /api/v1/deliveries/7/resend {"destination":"app","reason":"fixed"}`}) {
		t.Errorf("asked %q", got)
	}
	s.runIn(t, "es", "resend", "7").want(t, 0, "#7 de nuevo en cola para app\n")
	s.run(t, "resend", "7", "--json").want(t, 0, resent+"\n")
	s.answer("POST /api/v1/deliveries/8/resend", 409, problemOf("running", "Conflict", "a job of it is being worked on"))
	s.run(t, "resend", "8").want(t, 1, "", "acuse: #8: a job of it is being worked on\n  try again when its lease ended: acuse show NUMBER\n")
	s.answer("POST /api/v1/deliveries/9/resend", 404, problemOf("not-found", "Not Found", ""))
	s.run(t, "resend", "9").want(t, 3, "", "no delivery #9 here")
}

func TestResendAsksAboveOne(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("POST /api/v1/deliveries/{id}/resend", 202, resent)
	s.run(t, "resend", "7", "8").want(t, 2, "", "nobody can be asked; add --yes")
	env := []string{"ACUSE_DATA_DIR=" + s.dir, "NO_COLOR=1"}
	no := call(t, Options{Terminal: true, Env: env, Stdin: strings.NewReader("\n")}, "resend", "7", "8", "--destination", "app")
	no.want(t, 1, "", "Resend 2 deliveries to app? Same numbers, same keys: an app that already did them will skip them. [y/N] ", "nothing was done")
	if got := s.requests(); len(got) != 0 {
		t.Fatalf("before a yes: %q", got)
	}
	call(t, Options{Terminal: true, Env: env, Stdin: strings.NewReader("y\n")}, "resend", "7", "8").want(t, 0, "#7 queued again for app\n#7 queued again for app\n")
	call(t, Options{Terminal: true, Env: append(env, "LANG=es"), Stdin: strings.NewReader("sí\n")}, "resend", "7", "8").want(t, 0, "#7 de nuevo en cola para app\n#7 de nuevo en cola para app\n")
	s.run(t, "resend", "7", "8", "--dry-run").want(t, 0, "would resend 2 deliveries\n")
	if got := s.requests(); len(got) != 4 {
		t.Errorf("asked %q", got)
	}
}

func TestResendByFilterTakesTheOldestFirstAndTellsWhatFailed(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.mux.HandleFunc("GET /api/v1/deliveries", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("state") != "dead" || q.Get("destination") != "app" {
			t.Errorf("asked %s", r.URL.RawQuery)
		}
		if r.URL.Query().Get("before") == "" {
			_, _ = io.WriteString(w, pageOf("2", one(3, "dead", ""), one(2, "dead", "")))
			return
		}
		_, _ = io.WriteString(w, pageOf("", one(1, "dead", "")))
	})
	s.mux.HandleFunc("POST /api/v1/deliveries/{id}/resend", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "2" {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, problemOf("payload-gone", "Conflict", "the body was removed by retention"))
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"delivery":%s,"jobs":[{"destination":"app"}],"already_queued":true}`, r.PathValue("id"))
	})
	s.run(t, "resend", "--state", "dead", "--destination", "app", "--yes").want(t, 5,
		"#1 was queued already for app\n#3 was queued already for app\n",
		"acuse: #2: its body was removed by retention\n", "acuse: 2 done, 1 failed\n")
}

func TestCancelAndRelease(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("POST /api/v1/deliveries/7/cancel", 200, `{"cancelled":2}`)
	s.run(t, "cancel", "7").want(t, 0, "#7: 2 jobs cancelled\n")
	s.answer("POST /api/v1/deliveries/8/cancel", 409, problemOf("state", "Conflict", "not possible in the state it is in"))
	s.run(t, "cancel", "8").want(t, 1, "", "#8: not possible in the state it is in", "its state: acuse show NUMBER")
	s.answer("POST /api/v1/deliveries/release", 200, `{"released":3,"duplicates":1,"dry_run":true}`)
	s.run(t, "release", "--source", "stripe", "--dry-run").want(t, 0, "3 would be released, 1 a duplicate\n")
	s.run(t, "release", "4", "#5").want(t, 0, "3 released, 1 a duplicate\n")
	if got := s.requests(); got[3] != `POST /api/v1/deliveries/release {"dry_run":false,"ids":[4,5]}` {
		t.Errorf("asked %q", got[3])
	}
}

func TestStatusIsFiveLines(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/status", 200, `{"name":"acuse","version":"1","data_dir":"/var/lib/acuse","engine":"sqlite","bytes":1288490188,"free":15032385536,"writable":true,"error":null,
		"deliveries":10501,"queued":12,"leased":2,"dead":3,"quarantined":1,"oldest_due":"2026-11-30T13:58:40.000Z","newest_received_at":"2026-11-30T14:00:11.000Z","rejections":1,"destinations":[]}`)
	s.run(t, "status").want(t, 0, `in       10501 deliveries, newest 2 min ago, 1 rejection in 24 h
waiting  12 queued, 2 running, oldest due 2026-11-30 13:58:40, 1 quarantined
dead     3: acuse dead
disk     1.2 GiB used, 14 GiB free in /var/lib/acuse
backup   none known; make one: acuse backup FILE
`)
	s.runIn(t, "es", "status").want(t, 0, `entrada    10501 entregas, la más nueva hace 2 min, 1 rechazo en 24 h
en espera  12 en cola, 2 en curso, el más antiguo desde 2026-11-30 13:58:40, 1 en cuarentena
fallidos   3: acuse dead
disco      1,2 GiB usados, 14 GiB libres en /var/lib/acuse
copia      ninguna conocida; para hacerla: acuse backup ARCHIVO
`)
	if r := s.run(t, "status", "--json"); !json.Valid([]byte(r.out)) || strings.Count(r.out, "\n") != 1 {
		t.Errorf("--json: %s", r.out)
	}
}

func TestDead(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/dead", 200, `{"groups":[{"id":"g","destination":"app","reason":"exhausted","status":500,"class":"status","jobs":37,"first_at":"2026-11-30T09:10:00.000Z","last_at":"2026-11-30T11:42:00.000Z"}]}`)
	s.run(t, "dead").want(t, 0, "app  no attempts left  500  37 jobs  first 2026-11-30 09:10:00, last 2026-11-30 11:42:00\n", "acuse resend --state dead")
}

func TestTestPrintsItsSteps(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.mux.HandleFunc("POST /api/v1/sources/stripe/test", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, `{"step":"signed","text":"with secret 1 of 2","ms":0,"ok":true}
{"step":"accepted","text":"#10501, answered 200","ms":4,"ok":true}
{"step":"delivered","text":"to app, 204","ms":38,"ok":true}
`)
	})
	s.run(t, "test", "stripe", "--deliver").want(t, 0, `signed     with secret 1 of 2            0 ms
accepted   #10501, answered 200          4 ms
delivered  to app, 204                  38 ms
`)
	if got := s.requests()[0]; got != `POST /api/v1/sources/stripe/test {"deliver":true,"type":""}` {
		t.Errorf("asked %s", got)
	}
	s.runIn(t, "es", "test", "stripe").want(t, 0, `firmado    with secret 1 of 2            0 ms
aceptado   #10501, answered 200          4 ms
entregado  to app, 204                  38 ms
`)
	s.runIn(t, "es", "test", "stripe", "--json")
	if got := s.requests()[1:]; !strings.HasPrefix(got[0], "POST /api/v1/sources/stripe/test?lang=es ") || !strings.HasPrefix(got[1], "POST /api/v1/sources/stripe/test {") {
		t.Errorf("asked %q", got) // JSON is English
	}
	s.answer("POST /api/v1/sources/bad/test", 200, `{"step":"signed","text":"","ms":0,"ok":true}`+"\n"+`{"step":"failed","text":"401","ms":3,"ok":false}`+"\n")
	if r := s.run(t, "test", "bad"); r.code != 1 || !strings.Contains(r.err, "the test of bad did not come through") {
		t.Errorf("%+v", r)
	}
	s.answer("POST /api/v1/sources/none/test", 404, problemOf("not-found", "Not Found", ""))
	s.run(t, "test", "none").want(t, 3, "", `no source "none"`)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("POST /api/v1/tokens", 201, `{"id":"k3","name":"ci","agent":"","scopes":["read","body"],"secret":"acuse_S3CRET"}`)
	s.run(t, "token", "create", "ci", "--scope", "read", "--scope", "body", "--expires", "30d").want(t, 0, "acuse_S3CRET\n", "This is shown once.")
	if got := s.requests()[0]; got != `POST /api/v1/tokens {"expires_at":"2026-12-30T14:02:31Z","name":"ci","scopes":["read","body"]}` {
		t.Errorf("asked %s", got)
	}
	s.answer("GET /api/v1/tokens", 200, `{"tokens":[{"id":"k3","name":"ci","scopes":["read","pull:app"],"last_used_at":"2026-11-30T11:42:00.000Z","expires_at":null}]}`)
	s.run(t, "token", "list").want(t, 0, "k3  ci  read,pull:app  used 2026-11-30 11:42:00  no end\n")
	s.answer("DELETE /api/v1/tokens/k3", 204, "")
	s.run(t, "token", "revoke", "k3").want(t, 0, "")
}

func TestUsersAndSetupLink(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("POST /api/v1/users", 201, `{"name":"ana","role":"owner"}`)
	r := call(t, Options{Env: []string{"ACUSE_DATA_DIR=" + s.dir}, Stdin: strings.NewReader("correct horse battery\n")}, "user", "add", "ana")
	r.want(t, 0, "", "ana can log in now, as owner")
	if got := s.requests()[0]; got != `POST /api/v1/users {"name":"ana","password":"correct horse battery","role":"owner"}` {
		t.Errorf("asked %s", got)
	}
	s.answer("DELETE /api/v1/users/ana", 409, problemOf("last-owner", "Conflict", ""))
	s.run(t, "user", "remove", "ana").want(t, 1, "", "without this user nobody could manage acuse")
	s.answer("POST /api/v1/setup-link", 200, `{"url":"http://127.0.0.1:8081/setup?t=abc","expires_at":"2026-11-30T14:32:31.000Z"}`)
	s.run(t, "setup-link").want(t, 0, "http://127.0.0.1:8081/setup?t=abc\n", "Open this once, before 2026-11-30 14:32:31.")
}

func TestBackup(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.mux.HandleFunc("POST /api/v1/backup", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Path string
			To   string `json:"encrypt_to"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !filepath.IsAbs(in.Path) {
			t.Errorf("%v %q", err, in.Path)
		}
		if err := os.WriteFile(in.Path, make([]byte, 4096), 0o600); err != nil {
			t.Error(err)
		}
		if in.To != "" && in.To != "age1a age1b" {
			t.Errorf("encrypt_to %q", in.To)
		}
		_, _ = io.WriteString(w, "{\"done\":1,\"total\":2}\n{\"done\":2,\"total\":2}\n")
		if strings.HasSuffix(in.Path, "bad.db") {
			_, _ = io.WriteString(w, "{\"error\":\"no space left\"}\n")
		} else if !strings.HasSuffix(in.Path, "cut.db") {
			_, _ = io.WriteString(w, "{\"path\":\"x\"}\n")
		}
	})
	file := filepath.Join(t.TempDir(), "copy.db")
	s.run(t, "backup", file).want(t, 0, file+", 4 KiB\n")
	s.run(t, "backup", file).want(t, 2, "", "is there already", "name a new file")
	sealed := filepath.Join(t.TempDir(), "b.db")
	s.run(t, "backup", sealed, "--encrypt-to", "age1a", "--encrypt-to", "age1b").want(t, 0, sealed+", 4 KiB\n")
	s.run(t, "backup", filepath.Join(t.TempDir(), "bad.db")).want(t, 1, "", "no space left")
	s.run(t, "backup", filepath.Join(t.TempDir(), "cut.db")).want(t, 1, "", "the server")
}
