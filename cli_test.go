package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to look into a backup with other code than the store's

	"acuse/scripts/tools/load"
)

// TestCLIAgainstServer runs each command as its owner does, against a server with
// one delivered event, one dead one and one that waits.
func TestCLIAgainstServer(t *testing.T) {
	t.Parallel()
	app := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Acuse-Event-Id") == "evt_gone" && r.Header.Get("Acuse-Resend") == "" {
			w.WriteHeader(http.StatusGone)
		}
	})
	p := newPlace(t, stripe("app")+
		fmt.Sprintf("  jobs:\n    provider: stripe\n    secrets: [%q]\n    deliver_to: [agent]\n", load.Secret)+
		"destinations:\n"+destination("app", app.URL)+"  agent: {pull: {}}\n")
	p.notRunning()
	p.start()
	body := append(load.Body("evt_good", time.Now()), "\r\n\t "...)
	p.post("stripe", body).is(t, 200)
	p.event("evt_gone")
	p.post("jobs", load.Body("evt_wait", time.Now())).is(t, 200)
	until(t, "two are settled", func() bool { return p.delivery(1).State == "delivered" && p.delivery(2).State == "dead" })

	p.looks(body)
	p.acts(app)
	p.tests(app)
	p.tokens()
	p.people()
	p.backup()
	if err := p.Stop(); err != nil {
		t.Errorf("a clean end: %v", err)
	}
	p.notRunning()
}

// notRunning holds every command that needs a server to the sentence of its refusal.
func (p *place) notRunning() {
	t := p.t
	t.Helper()
	want := "acuse: acuse is not running (no socket in " + filepath.Join(p.Dir, "data") + "). Start it with: acuse serve\n"
	for _, c := range []string{"status", "list", "show 1", "body 1", "tail", "resend 1", "cancel 1", "dead", "rejections", "release 1",
		"test stripe", "token list", "user list", "setup-link", "backup never.db", "health"} {
		if s := p.cli(strings.Fields(c)...); s.code != 4 || s.out != "" || s.err != want {
			t.Errorf("%s: exit %d, %q %q, want %q", c, s.code, s.out, s.err, want)
		}
	}
	for _, c := range []string{"check", "config show", "version", "provider list", "provider show stripe"} {
		p.cli(strings.Fields(c)...).is(t, 0)
	}
}

// looks are the commands that change nothing.
func (p *place) looks(body []byte) {
	t := p.t
	t.Helper()
	p.cli("health").is(t, 0)
	s := p.cli("status")
	if s.is(t, 0, "3 deliveries", "1 queued", "1: acuse dead"); strings.Count(s.out, "\n") != 5 {
		t.Errorf("status has not five lines:\n%s", s.out)
	}
	p.cli("list").is(t, 0, "#1", "#2", "#3", "delivered", "dead", "410", "3 deliveries.")
	p.cli("list", "--state", "dead").is(t, 0, "#2", "1 delivery. Resend them: acuse resend --state dead")
	s = p.cli("list", "--json")
	s.is(t, 0)
	lines := strings.Split(strings.TrimSpace(s.out), "\n")
	var d load.Delivery
	if err := json.Unmarshal([]byte(lines[0]), &d); err != nil || len(lines) != 3 || d.ID != 3 || d.EventID != "evt_wait" {
		t.Errorf("list --json: %d lines, first %+v, %v", len(lines), d, err)
	}
	p.cli("show", "1").is(t, 0, "evt_good", "stripe:evt_good:app", "Stripe-Signature: [hidden]", "good, by secret 1", "1 of 31")
	p.cli("show", "#2", "--json").is(t, 0, `"state":"dead"`)
	if s := p.cli("body", "1"); s.code != 0 || s.out != string(body) {
		t.Errorf("body: exit %d, %q", s.code, s.out)
	}
	p.cli("dead").is(t, 0, "app", "refused for good", "410", "1 job")
	p.post("stripe", append(body, ' ')).is(t, 200) // a repeat with another body is one, too
	p.cli("show", "1").is(t, 0, "+1 duplicate", "1 with another body")
	for args, code := range map[string]int{"show 999": 3, "body 999": 3, "resend 999": 3, "test nobody": 3, "show x": 2, "lst": 2, "list --nope": 2, "show": 2} {
		if s := p.cli(strings.Fields(args)...); s.code != code || s.out != "" || !strings.HasPrefix(s.err, "acuse: ") {
			t.Errorf("%s: exit %d, want %d: %q %q", args, s.code, code, s.out, s.err)
		}
	}
	p.must("POST", p.in("stripe"), body, "Stripe-Signature", "t=1,v1=00").is(t, 401)
	until(t, "the rejection is shown", func() bool { return strings.Contains(p.cli("rejections").out, "stripe") })
	es := p.command(t.Context(), "dead")
	es.Env = append(es.Env, "ACUSE_LANG=es")
	runs(t, es, "").is(t, 0, "1 envío")
}

// acts are resend and cancel.
func (p *place) acts(app *app) {
	t := p.t
	t.Helper()
	p.cli("resend", "1", "2").is(t, 2, "--yes") // nobody can be asked
	p.cli("resend", "--state", "dead", "--dry-run").is(t, 0, "would resend 1 delivery")
	if n := app.times("evt_gone"); n != 1 {
		t.Errorf("sent %d times though nobody agreed", n)
	}
	p.cli("resend", "1").is(t, 0, "#1 queued again for app")
	until(t, "it is sent again", func() bool { return app.times("evt_good") == 2 })
	p.cli("resend", "--state", "dead", "--yes", "--reason", "the app is mended").is(t, 0, "#2 queued again for app")
	until(t, "the dead letter is delivered", func() bool { return p.delivery(2).State == "delivered" })
	p.cli("resend", "1", "999", "--yes").is(t, 5, "1 done, 1 failed")
	p.cli("cancel", "3").is(t, 0, "#3: 1 job cancelled")
	if s := p.delivery(3).State; s != "cancelled" {
		t.Errorf("#3 is %s", s)
	}
	p.cli("cancel", "1").is(t, 1, "#1: not possible in the state it is in")
	p.cli("dead").is(t, 0, "No dead letters.")
}

// tests sends test events, and follows all with tail meanwhile.
func (p *place) tests(app *app) {
	t := p.t
	t.Helper()
	tail := p.command(t.Context(), "tail", "--json")
	out, err := tail.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := tail.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tail.Process.Kill() })
	if s, err := bufio.NewReader(errs).ReadString('\n'); err != nil || !strings.HasPrefix(s, "Following") {
		t.Fatalf("tail: %q, %v", s, err)
	}
	id := p.event("evt_tail")
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var d load.Delivery
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatalf("tail --json: %v in %s", err, lines.Bytes())
		}
		if d.ID == id && d.State == "delivered" {
			break
		}
	}
	if err := tail.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := tail.Wait(); err != nil {
		t.Errorf("tail ends with %v", err)
	}

	p.cli("test", "stripe").is(t, 0, "signed     with secret 1 of 1", "accepted", "answered 200", "delivered  to echo, 200")
	if n := app.tests(); n != 0 {
		t.Errorf("a test without --deliver was sent to the app %d times", n)
	}
	p.cli("test", "stripe", "--deliver", "--type", "invoice.paid").is(t, 0, "delivered  to app, 200")
	if n := app.tests(); n != 1 {
		t.Errorf("a test with --deliver was sent to the app %d times", n)
	}
	p.cli("test", "jobs", "--deliver").is(t, 0, "waits for a worker")
	p.cli("list", "--json", "--limit", "1").is(t, 0, `"test":true`, `"event_id":"evt_acuse_test_`)
}

// tokens makes one, uses it, and takes it back.
func (p *place) tokens() {
	t := p.t
	t.Helper()
	s := p.cli("token", "create", "monitor", "--scope", "read")
	s.is(t, 0, "This is shown once")
	secret := strings.TrimSpace(s.out)
	p.apiAs(secret, "GET", "/api/v1/deliveries", nil).is(t, 200, "evt_good")
	p.apiAs(secret, "GET", "/api/v1/deliveries/1/body", nil).is(t, 403, "urn:acuse:problem:scope")
	p.apiAs(secret, "POST", "/api/v1/deliveries/1/resend", nil).is(t, 403)
	p.must("GET", "http://"+p.Admin+"/api/v1/deliveries?token="+secret, nil).is(t, 401) // never in an address
	var info struct{ ID, Name string }
	s = p.cli("token", "list", "--json")
	if s.is(t, 0); json.Unmarshal([]byte(s.out), &info) != nil || info.Name != "monitor" || strings.Contains(s.out, secret) {
		t.Fatalf("token list: %s", s.out)
	}
	p.cli("token", "revoke", info.ID).is(t, 0)
	p.apiAs(secret, "GET", "/api/v1/deliveries", nil).is(t, 401)
	p.cli("token", "revoke", info.ID).is(t, 3)
	p.cli("token", "create", "x", "--scope", "nonsense").is(t, 1)
	p.cli("token", "create", "x").is(t, 2)
}

// people adds an owner at the command line and lets one in by a link.
func (p *place) people() {
	t := p.t
	t.Helper()
	p.cliWith(password+"\n", "user", "add", "berta").is(t, 0, "berta can log in now")
	p.cliWith("short\n", "user", "add", "carla").is(t, 1)
	p.cliWith("", "user", "add", "carla").is(t, 2)
	b := p.browser()
	b.submit("/login", "name", "berta", "password", password, "next", "/deliveries").is(t, 200, "evt_good")
	s := p.cli("setup-link")
	s.is(t, 0, "http://"+p.Admin+"/setup?t=", "Open this once, before ")
	p.browser().open(strings.TrimSpace(s.out)).is(t, 200, "Log out")
	p.cliWith("another "+password+"\n", "user", "password", "berta").is(t, 0)
	b.open("/deliveries").is(t, 200, `action="/login"`) // the session ended with the password
	p.cli("user", "remove", "berta").is(t, 1)           // nobody would be left
}

// backup makes a copy while the server runs, reads it, and serves it.
func (p *place) backup() {
	t := p.t
	t.Helper()
	file := filepath.Join(p.Dir, "copy.db")
	p.cli("backup", "copy.db").is(t, 0, file)
	p.cli("backup", "copy.db").is(t, 2, "is there already")
	p.cli("status").is(t, 0, "backup ")
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&immutable=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	var state string
	if err := db.QueryRow("SELECT count(*) FROM deliveries").Scan(&n); err != nil || n != len(p.deliveries()) {
		t.Errorf("the backup holds %d of %d deliveries, %v", n, len(p.deliveries()), err)
	}
	if err := db.QueryRow("SELECT state FROM archive WHERE event_id = 'evt_gone'").Scan(&state); err != nil || state != "delivered" {
		t.Errorf("the view says %q, %v", state, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}

	other := newPlace(t, stripe("app")+"destinations:\n  app: {pull: {}}\n")
	data := filepath.Join(other.Dir, "data")
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.Mkdir(data, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(data, "acuse.db"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	other.start()
	if len(other.deliveries()) != n || !bytes.Equal([]byte(other.cli("body", "1").out), []byte(p.cli("body", "1").out)) {
		t.Errorf("a server on the copy shows %d deliveries of %d", len(other.deliveries()), n)
	}
	other.post("stripe", load.Body("evt_good", time.Now())).is(t, 200, "duplicate") // it remembers
}
