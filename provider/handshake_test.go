package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is reflected into a JSON answer stays one string of it.
func TestReflectedValuesAreEscapedInJSON(t *testing.T) {
	t.Parallel()
	c := checker(t, "zoom", Settings{Secrets: []string{"s"}})
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.String().Draw(t, "plain")
		body, _ := json.Marshal(map[string]any{"event": "endpoint.url_validation", "payload": map[string]string{"plainToken": plain}})
		stamp := fmt.Sprint(caseClock)
		r := post(body, "Content-Type", "application/json", "X-Zm-Request-Timestamp", stamp,
			"X-Zm-Signature", "v0="+hexHMAC("s", []byte("v0:"+stamp+":"+string(body))))
		res, err := c.Receive(r, caseNow)
		if err != nil || res.Handshake == nil {
			t.Fatalf("%v %+v", err, res)
		}
		var got map[string]string
		if err := json.Unmarshal(res.Handshake.Body, &got); err != nil {
			t.Fatalf("%v: %s", err, res.Handshake.Body)
		}
		if len(got) != 2 || got["plainToken"] != plain || got["encryptedToken"] != hexHMAC("s", []byte(plain)) {
			t.Fatalf("%q", got)
		}
	})
}

func TestAReflectedHeaderCannotBreakTheAnswer(t *testing.T) {
	t.Parallel()
	p := mustParse(t, strings.Replace(base, `"headers":{}`, `"headers":{"X-Back":"{query:q}","X-Gone":"{header:Nope}"}`, 1))
	c, err := p.Compile(Settings{Secrets: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]string{"fine": "fine", "a%0d%0aSet-Cookie:%20x": "", "%00": ""} {
		r := post(nil)
		r.Method, r.Target = "GET", "/in/x?q="+q
		res, err := c.Receive(r, caseNow)
		if err != nil || res.Handshake.Header.Get("X-Back") != want || len(res.Handshake.Header["X-Gone"]) != 0 {
			t.Errorf("%s: %v %+v", q, err, res.Handshake)
		}
	}
}

// Braintree's challenge is answered when it is one; nothing else is ever signed for a stranger.
func TestTheBraintreeChallengeIsNoOracle(t *testing.T) {
	t.Parallel()
	c := checker(t, "braintree", Settings{Secrets: []string{"key"}, Params: map[string]string{"public_key": "pub"}})
	for challenge, ok := range map[string]bool{
		strings.Repeat("a1", 10): true, strings.Repeat("a1", 16): true, strings.Repeat("a1", 17): false, "a1": false,
		"PG5vdGlmaWNhdGlvbj4KICAgIDx": false, strings.Repeat("A1", 10): false, "": false,
	} {
		r := post(nil)
		r.Method, r.Target = "GET", "/in/x?bt_challenge="+challenge
		res, err := c.Receive(r, caseNow)
		if (err == nil && res.Handshake != nil) != ok {
			t.Errorf("%q: %v %+v", challenge, err, res.Handshake)
		}
	}
}

// A verify token that is not configured lets nobody in.
func TestAnEmptyVerifyTokenMatchesNothing(t *testing.T) {
	t.Parallel()
	for _, params := range []map[string]string{nil, {"verify_token": ""}} {
		c := checker(t, "whatsapp", Settings{Secrets: []string{"s"}, Params: params})
		r := post(nil)
		r.Method, r.Target = "GET", "/in/x?hub.mode=subscribe&hub.challenge=1&hub.verify_token="
		if res, err := c.Receive(r, caseNow); reasonOf(err) != TokenMismatch {
			t.Errorf("%v: %v %+v", params, err, res)
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"stripe": "", "whatsapp": "GET", "trello": "HEAD", "cloudevents": "OPTIONS"} {
		if got := strings.Join(checker(t, name, Settings{Secrets: []string{"s"}}).Methods(), " "); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Reply speaks only where the provider listens.
func TestReply(t *testing.T) {
	t.Parallel()
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, tc := range []struct {
		name, provider, body string
		header               []string
		want                 string // "status body", "" is nil
	}{
		{"who does not care", "stripe", `{}`, nil, ""},
		{"slack events", "slack", `{"type":"event_callback"}`, []string{"Content-Type", "application/json"}, ""},
		{"slack interactivity", "slack", "payload=%7B%7D", form, "200 "},
		{"slack slash command", "slack", "command=%2Fx", form, "200 "},
		{"twilio", "twilio", "a=b", form, "200 "},
		{"xero", "xero", `{}`, nil, "200 "},
		{"an exact text", "dropbox-sign", "x", nil, "200 Hello API Event Received"},
		{"adyen", "adyen", "x", nil, "200 [accepted]"},
	} {
		secret := "s"
		if tc.provider == "adyen" {
			secret = "00ff"
		}
		got := checker(t, tc.provider, Settings{Secrets: []string{secret}}).Reply(post([]byte(tc.body), tc.header...))
		text := ""
		if got != nil {
			text = fmt.Sprint(got.Status, " ", string(got.Body))
		}
		if text != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, text, tc.want)
		}
	}
}

// The secret that is planted in an answer's place is refused when the file is loaded, and
// params that a handshake needs are known.
func TestParams(t *testing.T) {
	t.Parallel()
	cat := folder(t)
	for name, want := range map[string]string{"stripe": "", "whatsapp": "verify_token", "braintree": "public_key"} {
		p, _ := cat.Get(name)
		if got := strings.Join(p.Params(), " "); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
