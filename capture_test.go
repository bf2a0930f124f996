package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestP5ACapturedSecretVerifiesNothingUntilItIsConfirmed walks a handshake that brings
// the secret: taken once, only while a person waits for it, and then one more secret of
// the source, a restart in between.
func TestP5ACapturedSecretVerifiesNothingUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	const token = "secret_${HOME}_planted" // written down so that it is not read as a variable
	p := begin(t, "sources:\n  notion:\n    provider: notion\n    secrets: capture\n    deliver_to: [work]\ndestinations:\n  work:\n    pull: {}\n")
	hello := []byte(`{"verification_token":"` + token + `"}`)
	event := []byte(`{"id":"e1","type":"page.created","entity":{"id":"p1"}}`)
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write(event)
	send := func() reply {
		t.Helper()
		return p.must("POST", p.in("notion"), event, "Content-Type", "application/json", "X-Notion-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	handshake := func(body []byte) reply {
		t.Helper()
		return p.must("POST", p.in("notion"), body, "Content-Type", "application/json")
	}
	capture := func(act string, status int, words ...string) {
		t.Helper()
		p.api("POST", "/api/v1/sources/notion/capture", map[string]string{"action": act}).is(t, status, words...)
	}
	handshake(hello).is(t, 401) // nobody waits for it
	capture("confirm", 409, "nothing-captured")
	capture("open", 200, `"open_until":"2`, `"value":null`)
	send().is(t, 401)
	waited := make(chan reply, 1)
	go func() { waited <- p.api("GET", "/api/v1/sources/notion/capture?wait_seconds=60", nil) }()
	handshake(hello).is(t, 200)
	came := <-waited // at once, or a minute later
	came.is(t, 200, token, `"from":"127.0.0.1"`, `"open_until":null`)
	handshake([]byte(`{"verification_token":"a-stranger-later"}`)).is(t, 401) // the first one counts
	send().is(t, 401)                                                         // it verifies nothing yet

	p.Kill()
	p.start()
	capture("confirm", 200, `"value":null`, `"snippet":null`)
	send().is(t, 200, "accepted")
	capture("confirm", 409)
	file := filepath.Join(p.Dir, "data", "conf.d", "notion.yaml")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	p.Kill()
	p.start()
	send().is(t, 200, "duplicate")
	if log := p.log(); strings.Contains(log, "planted") {
		t.Error("the log names the secret")
	}

	capture("open", 200)
	handshake([]byte(`{"verification_token":"not-wanted"}`)).is(t, 200)
	capture("discard", 200, `"value":null`, `"open_until":null`)
	handshake(hello).is(t, 401)
	p.api("POST", "/api/v1/sources/other/capture", map[string]string{"action": "open"}).is(t, 404)
	p.api("POST", "/api/v1/sources/notion/capture", map[string]string{"action": "look"}).is(t, 400)
}
