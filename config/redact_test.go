package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const planted = `
name: home
sources:
  s:
    provider: x
    secrets: [SECRET-A]
    params: {verify_token: SECRET-B}
    auth: {kind: token, from: "header:SECRET-C"}
    deliver_to: [app, p]
destinations:
  app:
    url: "http://user:SECRET-D@127.0.0.1:1/hook?key=SECRET-E"
    headers: {Authorization: "Bearer SECRET-F"}
    signature: standard
    secret: SECRET-G
  p: {pull: {}}
alerts: [{url: "ntfy://SECRET-H@ntfy.sh/x"}]
`

func TestP9NoFormOfTheConfigShowsASecret(t *testing.T) {
	t.Parallel()
	c := read(t, planted, map[string]string{"ACUSE_ADMIN_TOKEN": "SECRET-I-0123456789"})
	yaml, err := c.Redacted()
	if err != nil {
		t.Fatal(err)
	}
	line, err := c.RedactedJSON()
	if err != nil || !json.Valid(line) {
		t.Fatalf("%v: %s", err, line)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("config", "c", *c, "s", c.Sources["s"], "token", c.AdminToken, "url", c.Destinations["app"].URL, "auth", c.Sources["s"].Auth)
	std, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for form, text := range map[string]string{
		"config show": string(yaml), "config show --json": string(line), "the log": log.String(), "encoding/json": string(std),
		"%v":  fmt.Sprintf("%v %v %v", c, c.Sources["s"], c.Destinations["app"]),
		"%+v": fmt.Sprintf("%+v %+v %+v", *c, *c.Sources["s"], *c.Destinations["app"]),
		"%#v": fmt.Sprintf("%#v %#v %#v", *c, *c.Sources["s"], *c.Destinations["app"]),
	} {
		if i := strings.Index(text, "SECRET"); i >= 0 {
			t.Errorf("%s shows %s", form, text[max(0, i-40):min(len(text), i+20)])
		}
	}
	for _, want := range []string{"name: home", "http://[hidden]@127.0.0.1:1/hook?[hidden]", "lease: 1m", "signature: standard"} {
		if !strings.Contains(string(yaml), want) {
			t.Errorf("no %q in\n%s", want, yaml)
		}
	}
}

func TestP9AProblemNeverHoldsAValue(t *testing.T) {
	t.Parallel()
	for _, text := range []string{planted + "extra: 1\n", strings.ReplaceAll(planted, "[SECRET-A]", "SECRET-A"), planted + "\tx"} {
		_, w, err := load("acuse.yaml", []byte(text), nil, nil)
		if err == nil || strings.Contains(err.Error()+warned(w), "SECRET") {
			t.Errorf("got %v", err)
		}
	}
}
