package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"acuse/scripts/tools/load"
)

// What is planted in a whole run. The bodies are the owner's to see on a delivery's
// page and nobody's in a log; the rest is nobody's anywhere.
var (
	plantedSecrets = map[string]string{
		"telegram's token":         "plant-telegram-token",
		"a wrong token":            "plant-wrong-token",
		"the token in the address": "plant-query-token",
		"a wrong one there":        "plant-wrong-query-token",
		"the app's password":       "plant-app-password",
		"the app's key":            "plant-app-key",
		"the app's header":         "plant-app-header",
		"the app's cookie":         "plant-app-cookie",
		"standard's secret":        "whsec_" + base64.StdEncoding.EncodeToString([]byte("plant-standard-secret-24")),
		"the alert's token":        "plant-alert-token",
		"the sender's bearer":      "plant-sender-bearer",
		"the sender's cookie":      "plant-sender-cookie",
		"a signature that is none": "plant-no-signature",
		"a forged signature":       "f00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeed",
		"the admin token":          "plant-admin-token-0123456789",
		"a wrong API token":        "plant-wrong-api-token",
		"a wrong password":         "plant-wrong-password",
		"a password as name":       "plant-password-as-name",
		"the password":             password,
		"Stripe's secret":          load.Secret,
	}
	plantedTexts = map[string]string{
		"a body":              "plant-body-accepted",
		"a forged body":       "plant-body-forged",
		"an oversized body":   "plant-body-oversized",
		"a cut body":          "plant-body-cut",
		"a body that is none": "plant-body-garbage",
		"garbage":             "plant-garbage",
		"a path":              "plant-path",
		"a source's name":     "plant-name",
		"an app's answer":     "plant-answer",
		"a worker's words":    "plant-nack",
		"an API body":         "plant-api-body",
		"a host":              "plant-host",
	}
)

// TestP9WholeRunSilentLogs is case adm-04, and more: everything secret goes in by
// every way in, and comes out nowhere.
func TestP9WholeRunSilentLogs(t *testing.T) {
	t.Parallel()
	app := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "s="+plantedSecrets["the app's cookie"])
		w.WriteHeader(http.StatusGone)
		io.WriteString(w, plantedTexts["an app's answer"])
	})
	alerts := newApp(t, nil)
	alertHost := strings.TrimPrefix(strings.TrimSuffix(alerts.URL, "/hook"), "http://")
	s := plantedSecrets
	p := newPlace(t, "log: {level: debug}\n"+
		fmt.Sprintf("alerts:\n  - url: \"generic+http://%s/%s?@Authorization=%s\"\n  - url: \"generic+http://127.0.0.1:1/%s\"\n", alertHost, s["the alert's token"], s["the alert's token"], s["the alert's token"])+
		stripe("app", "dead", "std", "agent")+
		fmt.Sprintf("  tg: {provider: telegram, secrets: [%s], deliver_to: [app]}\n", s["telegram's token"])+
		fmt.Sprintf("  q: {provider: query-token, secrets: [%s], deliver_to: [app]}\n", s["the token in the address"])+
		fmt.Sprintf("destinations:\n  app:\n    url: http://user:%s@127.0.0.1:1/hook?key=%s\n    headers: {Authorization: Bearer %s}\n", s["the app's password"], s["the app's key"], s["the app's header"])+
		destination("dead", app.URL)+
		destination("std", app.URL, "signature: standard", "secret: "+s["standard's secret"])+"  agent: {pull: {}}\n")
	p.Token = s["the admin token"]
	p.start()
	w := &whole{place: p, signatures: map[string]string{}}
	w.events()
	w.machines()
	b := w.person()
	until(t, "alerts are sent", func() bool { return alerts.times("") > 0 })
	until(t, "an alert that fails is logged", func() bool {
		return strings.Contains(p.log(), "level=WARN msg=alert") || strings.Contains(p.log(), "alert")
	})

	for _, c := range alerts.given("") {
		w.silent("an alert", string(c.Body), plantedSecrets, w.signatures, plantedTexts)
	}
	for _, r := range w.refusals {
		w.silent("an error answer", fmt.Sprint(r.Header)+string(r.Body), plantedSecrets, w.signatures, plantedTexts)
	}
	w.silent("the metrics", string(p.must("GET", "http://"+p.Admin+"/metrics", nil).Body), plantedSecrets, w.signatures, plantedTexts)
	w.shown(b)
	if err := p.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, "it was reloaded", func() bool { return strings.Contains(p.log(), "configuration reloaded") })
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"level=DEBUG", "reason=signature_mismatch", "reason=too_large", "dead letter", "login refused", "class=refused"} {
		if !strings.Contains(p.log(), word) {
			t.Errorf("the log has no %q: this run shows less than it should", word)
		}
	}
	w.silent("the log", p.log(), plantedSecrets, w.signatures, plantedTexts)
	for _, c := range []string{"check", "config show", "config show --json"} {
		said := p.cli(strings.Fields(c)...)
		said.is(t, 0)
		w.silent("acuse "+c, said.out+said.err, plantedSecrets)
	}
}

// whole is a run in which everything is planted.
type whole struct {
	*place
	signatures map[string]string
	refusals   []reply
}

// silent finds what was planted in a text.
func (w *whole) silent(where, text string, planted ...map[string]string) {
	w.t.Helper()
	for _, m := range planted {
		for what, plant := range m {
			if i := strings.Index(text, plant); i >= 0 {
				w.t.Errorf("%s holds %s: …%.200q", where, what, text[max(0, i-100):])
			}
		}
	}
}

// refused sends what must be refused, and keeps the answer.
func (w *whole) refused(status int, method, url string, body []byte, headers ...string) {
	w.t.Helper()
	r := w.must(method, url, body, headers...)
	r.is(w.t, status)
	w.refusals = append(w.refusals, r)
}

// events sends webhooks, good and bad.
func (w *whole) events() {
	t, s, x := w.t, plantedSecrets, plantedTexts
	t.Helper()
	from := []string{"Content-Type", "application/json", "Authorization", "Bearer " + s["the sender's bearer"], "Cookie", "s=" + s["the sender's cookie"]}
	with := func(more ...string) []string { return append(slices.Clone(from), more...) }
	sign := func(body string) string {
		h := load.Sign([]byte(body), time.Now())
		_, v1, _ := strings.Cut(h, "v1=")
		w.signatures["signature "+strconv.Itoa(len(w.signatures)+1)] = v1
		return h
	}
	good := fmt.Sprintf(`{"id":"evt_1","type":"invoice.paid","data":{"object":{"id":"in_1","note":%q}}}`, x["a body"])
	for _, status := range []string{"accepted", "duplicate"} {
		w.must("POST", w.in("stripe"), []byte(good), with("Stripe-Signature", sign(good))...).is(t, 200, status)
	}
	forged := []byte(x["a forged body"])
	w.refused(401, "POST", w.in("stripe"), forged, with("Stripe-Signature", fmt.Sprintf("t=%d,v1=%s", time.Now().Unix(), s["a forged signature"]))...)
	w.refused(401, "POST", w.in("stripe"), forged, with("Stripe-Signature", s["a signature that is none"])...)
	w.refused(401, "POST", w.in("stripe"), forged, with()...)
	large := x["an oversized body"] + strings.Repeat(" ", 2<<20)
	w.refused(413, "POST", w.in("stripe"), []byte(large), with("Stripe-Signature", sign(large))...)

	w.must("POST", w.in("tg"), []byte(`{"update_id":1}`), with("X-Telegram-Bot-Api-Secret-Token", s["telegram's token"])...).is(t, 200)
	w.refused(401, "POST", w.in("tg"), []byte(`{"update_id":2}`), with("X-Telegram-Bot-Api-Secret-Token", s["a wrong token"])...)
	w.must("POST", w.in("q")+"/"+x["a path"]+"?token="+s["the token in the address"], []byte("{}"), with()...).is(t, 200)
	w.refused(401, "POST", w.in("q")+"?token="+s["a wrong one there"], []byte("{}"), with()...)
	w.refused(404, "POST", w.in(x["a source's name"])+"?token="+s["the token in the address"], []byte("{}"), with()...)
	w.refused(405, "GET", w.in("q")+"?token="+s["the token in the address"], nil)

	// Bodies that are cut or nothing, and requests that are no HTTP.
	cut := x["a cut body"]
	status, text := w.raw(fmt.Sprintf("POST /in/stripe HTTP/1.1\r\nHost: x\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n%s", sign(cut), len(cut)+9, cut))
	w.refusals = append(w.refusals, reply{Status: status, Body: []byte(text)})
	garbage := x["a body that is none"] + "\x00\xff"
	w.must("POST", w.in("stripe"), []byte(garbage), with("Stripe-Signature", sign(garbage))...).is(t, 200)
	for _, line := range []string{x["garbage"] + "\r\n\r\n", "POST /in/stripe HTTP/1.1\r\n" + x["garbage"] + "\r\n\r\n",
		"POST /in/stripe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " + x["garbage"] + "\r\n\r\n",
		"POST /in/stripe HTTP/1.1\r\nHost: x\r\nStripe-Signature: t=1,v1=00\r\nTransfer-Encoding: chunked\r\n\r\n" + x["garbage"] + "\r\n"} {
		w.garbage(w.Public, line)
		w.garbage(w.Admin, line)
	}
}

// garbage sends what is no request and keeps whatever comes back.
func (w *whole) garbage(addr, text string) {
	w.t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(c, text)
	c.(*net.TCPConn).CloseWrite()
	b, _ := io.ReadAll(c) // however it ends
	w.refusals = append(w.refusals, reply{Body: b})
}

// machines uses the API, well and badly.
func (w *whole) machines() {
	t, s, x := w.t, plantedSecrets, plantedTexts
	t.Helper()
	api := "http://" + w.Admin + "/api/v1/"
	wrong := []string{"Authorization", "Bearer " + s["a wrong API token"]}
	right := []string{"Authorization", "Bearer " + w.Token, "Content-Type", "application/json"}
	w.refused(401, "GET", api+"deliveries", nil, wrong...)
	w.refused(401, "GET", api+"deliveries?token="+w.Token, nil)
	w.refused(403, "POST", api+"jobs/lease", []byte(`{"destination":"agent"}`), wrong...)
	w.refused(404, "GET", api+x["a path"], nil, right...)
	w.refused(400, "GET", api+"deliveries?since="+x["a path"], nil, right...)
	w.refused(400, "POST", api+"deliveries/1/resend", []byte(`{"reason":5,"x":"`+x["an API body"]+`"}`), right...)
	w.refused(400, "POST", api+"jobs/lease", []byte(x["an API body"]), right...)
	w.refused(404, "POST", api+"jobs/lease", []byte(`{"destination":"`+x["a path"]+`"}`), right...)
	w.refused(409, "POST", api+"jobs/4/ack", []byte(`{"lease":"`+x["an API body"]+`"}`), right...)
	l := w.lease("agent", 60)
	w.api("POST", fmt.Sprintf("/api/v1/jobs/%d/nack", l.Job), map[string]any{"lease": l.Lease, "error": x["a worker's words"], "dead": true}).is(t, 200)
	w.api("POST", "/api/v1/deliveries/1/resend", map[string]any{"destination": "agent", "reason": "again"}).is(t, 202)
	req, err := http.NewRequest("GET", api+"deliveries", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = x["a host"] + ".example"
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusMisdirectedRequest {
		t.Fatal(err, res.Status)
	}
	w.refusals = append(w.refusals, reply{res.StatusCode, res.Header, b})
}

// person logs in, at the third try.
func (w *whole) person() *browser {
	t, s := w.t, plantedSecrets
	t.Helper()
	w.login()
	b := w.browser()
	for _, name := range []string{"ana", s["a password as name"]} {
		r := b.submit("/login", "name", name, "password", s["a wrong password"], "next", "/")
		if r.Status != 401 || strings.Contains(string(r.Body), s["a wrong password"]) {
			t.Errorf("login as %s: %d %s", name, r.Status, r.Body)
		}
	}
	b.submit("/login", "name", "ana", "password", password, "next", "/").is(t, 200, "Log out")
	return b
}

// shown holds every page and every answer of the API to the secrets, and what says
// where something was hidden.
func (w *whole) shown(b *browser) {
	t := w.t
	t.Helper()
	pages := []string{"/", "/deliveries", "/dead", "/rejections", "/sources", "/destinations", "/settings/account", "/settings/tokens", "/settings/about"}
	calls := []string{"deliveries", "dead", "rejections", "sources", "destinations", "status", "tokens", "users"}
	for _, d := range w.deliveries() {
		pages = append(pages, fmt.Sprintf("/deliveries/%d", d.ID), fmt.Sprintf("/deliveries/%d?body=raw", d.ID), fmt.Sprintf("/deliveries/%d/resend", d.ID))
		calls = append(calls, fmt.Sprintf("deliveries/%d", d.ID))
	}
	var list struct{ Rejections []struct{ ID int64 } }
	until(t, "the rejections are kept", func() bool {
		w.api("GET", "/api/v1/rejections", nil).read(t, &list)
		return len(list.Rejections) >= 6
	})
	for _, r := range list.Rejections {
		pages = append(pages, fmt.Sprintf("/rejections/%d", r.ID))
		calls = append(calls, fmt.Sprintf("rejections/%d", r.ID))
	}
	for _, page := range pages {
		r := b.open(page)
		r.is(t, 200)
		w.silent("page "+page, string(r.Body), plantedSecrets, w.signatures)
	}
	for _, c := range calls {
		r := w.api("GET", "/api/v1/"+c, nil)
		r.is(t, 200)
		w.silent("the answer to "+c, string(r.Body), plantedSecrets, w.signatures)
	}
	for name, values := range w.delivery(1).Headers {
		if slices.Contains([]string{"Stripe-Signature", "Authorization", "Cookie"}, name) && !slices.Equal(values, []string{"[hidden]"}) {
			t.Errorf("%s: %q", name, values)
		}
	}
	if h := w.delivery(1).Headers; len(h["Stripe-Signature"])+len(h["Authorization"])+len(h["Cookie"]) != 3 {
		t.Errorf("headers are missing: %v", h)
	}
	if v := w.delivery(2).Headers["X-Telegram-Bot-Api-Secret-Token"]; !slices.Equal(v, []string{"[hidden]"}) {
		t.Errorf("telegram's token: %q", v)
	}
	b.open("/deliveries/3").is(t, 200, "?token=[hidden]")
	b.open("/destinations").is(t, 200, "http://[hidden]@127.0.0.1:1/hook?key=[hidden]")
}
