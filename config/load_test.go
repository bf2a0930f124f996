package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// full is the example of the design, effects and exec left out.
const full = `data_dir: ./data
store: sqlite
listen: ":8080"
public_url: https://hooks.example.org/
admin:
  listen: "127.0.0.1:8081"
sources:
  stripe:
    provider: stripe
    secrets: ["${STRIPE_WHSEC}"]
    deliver_to: [app, agent]
  bot:
    provider: telegram
    secrets:
      - "${TELEGRAM_SECRET_TOKEN}"
    deliver_to: [agent]
    public_url: https://bot.example.org/in/bot
destinations:
  app:
    url: http://127.0.0.1:3000/webhooks
    timeout: 45s
    concurrency: 2
  agent:
    pull: { lease: 90s }
alerts:
  - url: "ntfy://ntfy.sh/my-topic"
`

var fullEnv = map[string]string{"STRIPE_WHSEC": "whsec_1", "TELEGRAM_SECRET_TOKEN": "tok"}

func read(t *testing.T, text string, env map[string]string) *Config {
	t.Helper()
	c, _, err := load("acuse.yaml", []byte(text), env, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLoadReadsTheWholeFile(t *testing.T) {
	t.Parallel()
	c := read(t, full, fullEnv)
	s := c.Sources["stripe"]
	if s.Provider != "stripe" || !reflect.DeepEqual(s.Secrets.Strings(), []string{"whsec_1"}) ||
		!reflect.DeepEqual(s.DeliverTo, []string{"app", "agent"}) || s.KeyName != "stripe" {
		t.Errorf("stripe: %+v", s)
	}
	app, agent := c.Destinations["app"], c.Destinations["agent"]
	if app.URL != "http://127.0.0.1:3000/webhooks" || app.Timeout != 45*time.Second || app.Concurrency != 2 {
		t.Errorf("app: %+v", app)
	}
	if agent.Pull == nil || agent.Pull.Lease != 90*time.Second || agent.HardLimit != 0 {
		t.Errorf("agent: %+v", agent)
	}
	if len(c.Alerts) != 1 || c.Alerts[0].URL != "ntfy://ntfy.sh/my-topic" {
		t.Errorf("alerts: %d", len(c.Alerts))
	}
	if got := c.SourceURL("stripe"); got != "https://hooks.example.org/in/stripe" {
		t.Errorf("public address %q", got)
	}
	if got := c.SourceURL("bot"); got != "https://bot.example.org/in/bot" {
		t.Errorf("own public address %q", got)
	}
	if got := c.Hosts(); !reflect.DeepEqual(got, []string{"hooks.example.org", "127.0.0.1"}) {
		t.Errorf("hosts %q", got)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := read(t, "sources: {a: {unsigned: true, deliver_to: [b]}}\ndestinations: {b: {url: \"http://127.0.0.1:1\"}}\n", nil)
	if c.DataDir != "data" || c.Store != "sqlite" || c.Listen != ":8080" || c.Admin.Listen != "127.0.0.1:8081" ||
		c.Retention.Age != 30*24*time.Hour || c.Retention.Size != 2<<30 || c.DeadRetention != 90*24*time.Hour || c.MinFree != 0 {
		t.Errorf("general: %+v", c)
	}
	want := []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour}
	b := c.Destinations["b"]
	if !reflect.DeepEqual(b.Retry.Schedule, want) || b.Retry.Jitter != 0.1 || b.HardLimit != 15*time.Minute ||
		b.Timeout != 30*time.Second || b.Concurrency != 4 || b.Signature != "fresh" || b.IdempotencyHeader != "Idempotency-Key" || b.MaxAge != 0 {
		t.Errorf("destination: %+v", b)
	}
	if a := c.Sources["a"]; a.Batch != "split" || a.TestEvents != "deliver" || a.DuplicatesOfDead != "revive" || a.RejectStatus != 0 {
		t.Errorf("source: %+v", a)
	}
}

func TestEveryFormOfAValue(t *testing.T) {
	t.Parallel()
	c := read(t, `
trusted_proxies: [127.0.0.1, "10.1.2.3/8", "2001:db8::/32"]
min_free: 512MiB
sources:
  a:
    auth: {kind: hmac, alg: sha256, of: [1, 2.5, true, null, "${X}"], nested: {a: file}}
    id: {first: ["{json:id}", "{json:key}"]}
    type: "{json:type}"
    resource: ["{json:a}", "{json:b}"]
    secrets: capture
    max_body: 2MB
    dedup_window: 7d12h
    response: {status: 202, headers: {X-A: b}, body: ""}
    params: {webhook_id: 0123}
    deliver_to: [b]
  c:
    provider: x
    id: {join: ["{header:A}", "{header:B}"]}
    secrets: [123456, "a: b", "$${X}", 'it''s']
    deliver_to: [b]
destinations:
  b: {pull: {}}
`, map[string]string{"X": "from env"})
	a := c.Sources["a"]
	if got := string(a.Auth); got != `{"alg":"sha256","kind":"hmac","nested":{"a":"file"},"of":[1,2.5,true,null,"from env"]}` {
		t.Errorf("auth %s", got)
	}
	if !reflect.DeepEqual(a.ID.First, []string{"{json:id}", "{json:key}"}) || !reflect.DeepEqual(a.Type, Templates{"{json:type}"}) ||
		!reflect.DeepEqual(a.Resource, Templates{"{json:a}", "{json:b}"}) || !a.Secrets.Capture {
		t.Errorf("identity %+v %q %q", a.ID, a.Type, a.Resource)
	}
	if a.MaxBody != 2_000_000 || a.DedupWindow != 180*time.Hour || a.Params["webhook_id"] != "0123" {
		t.Errorf("%d %v %q", a.MaxBody, a.DedupWindow, string(a.Params["webhook_id"]))
	}
	if a.Response == nil || a.Response.Status != 202 || a.Response.Headers["X-A"] != "b" {
		t.Errorf("response %+v", a.Response)
	}
	if got := c.Sources["c"].Secrets.Strings(); !reflect.DeepEqual(got, []string{"123456", "a: b", "${X}", "it's"}) {
		t.Errorf("secrets %q", got)
	}
	if got := c.TrustedProxies; len(got) != 3 || got[0].String() != "127.0.0.1/32" || got[1].String() != "10.0.0.0/8" {
		t.Errorf("proxies %v", got)
	}
	if c.Destinations["b"].Pull.Lease != time.Minute {
		t.Errorf("lease %v", c.Destinations["b"].Pull.Lease)
	}
}

func TestTheEnvironmentWins(t *testing.T) {
	t.Parallel()
	c := read(t, full, map[string]string{
		"STRIPE_WHSEC": "a", "TELEGRAM_SECRET_TOKEN": "b", "ACUSE_LISTEN": "127.0.0.1:9000", "ACUSE_DATA_DIR": "elsewhere",
		"ACUSE_STORE": "sqlite", "ACUSE_ADMIN_LISTEN": "127.0.0.1:9001", "ACUSE_LANG": "es_AR.UTF-8",
		"ACUSE_ADMIN_TOKEN": "0123456789abcdef", "ACUSE_ADMIN_PASSWORD_FILE": "/run/secrets/pw",
	})
	if c.Listen != "127.0.0.1:9000" || c.DataDir != "elsewhere" || c.Admin.Listen != "127.0.0.1:9001" || c.Language != "es" ||
		c.AdminToken != "0123456789abcdef" || c.AdminPasswordFile != "/run/secrets/pw" {
		t.Errorf("%+v", c)
	}
	_, w, err := load("acuse.yaml", nil, map[string]string{"ACUSE_LISEN": "x", "ACUSE_STORE": "redis", "ACUSE_ADMIN_TOKEN": "short"}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "ACUSE_STORE: store: one of sqlite, bbolt") {
		t.Errorf("a bad store: %v", err)
	}
	if text := warned(w); !strings.Contains(text, "did you mean ACUSE_LISTEN?") || !strings.Contains(text, "ACUSE_ADMIN_TOKEN: shorter") {
		t.Errorf("warnings: %s", text)
	}
}

func warned(ws []Warning) string {
	var b strings.Builder
	for _, w := range ws {
		b.WriteString(w.String() + "\n")
	}
	return b.String()
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	_, w, err := load("acuse.yaml", []byte(`
admin: {listen: ":8081"}
sources:
  a: {unsigned: true, deliver_to: [b]}
destinations:
  b: {pull: {}, timeout: 5s}
  idle: {url: "http://127.0.0.1:1", secret: x}
`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"acuse.yaml:2: admin.listen: the dashboard is reached from other machines",
		"acuse.yaml:4: sources.a.unsigned: takes events from anyone",
		"acuse.yaml:6: destinations.b.timeout: means nothing for pull",
		"acuse.yaml:7: destinations.idle: no source delivers to it",
		"acuse.yaml:7: destinations.idle.secret: means nothing without signature: standard",
	} {
		if !strings.Contains(warned(w), want) {
			t.Errorf("no warning %q in\n%s", want, warned(w))
		}
	}
}

func write(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func TestLoadFromDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "acuse.yaml")
	if _, _, err := Load(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	write(t, path, `
data_dir: ./state
sources:
  stripe: {provider: stripe, secrets: ["file:keys/stripe", "file:${KEYS}/two"], deliver_to: [app]}
destinations:
  app: {url: "http://127.0.0.1:1"}
`, 0o644)
	write(t, filepath.Join(dir, "keys/stripe"), "whsec_file\n", 0o600)
	write(t, filepath.Join(dir, "abs/two"), "whsec_two", 0o600)
	write(t, filepath.Join(dir, "state/conf.d/20-gitea.yaml"),
		"sources:\n  gitea: {provider: gitea, secrets: [s], deliver_to: [app, pull]}\ndestinations:\n  pull: {pull: {}}\n", 0o600)
	write(t, filepath.Join(dir, "state/conf.d/10-stripe.yaml"), "sources:\n  stripe:\n    more_secrets: [whsec_more]\n", 0o600)
	write(t, filepath.Join(dir, "state/conf.d/.half-written.yaml"), "{{{", 0o600)
	write(t, filepath.Join(dir, "state/conf.d/README"), "not read", 0o644)
	c, _, err := Load(path, []string{"KEYS=" + filepath.Join(dir, "abs")})
	if err != nil {
		t.Fatal(err)
	}
	if c.DataDir != filepath.Join(dir, "state") {
		t.Errorf("data folder %s", c.DataDir)
	}
	if got := c.Sources["stripe"].Secrets.Strings(); !reflect.DeepEqual(got, []string{"whsec_file", "whsec_two", "whsec_more"}) {
		t.Errorf("secrets %q", got)
	}
	if c.Sources["gitea"] == nil || c.Destinations["pull"] == nil {
		t.Error("conf.d is not read")
	}
	if p := c.Problem("sources.gitea.provider", "unknown"); filepath.Base(p.File) != "20-gitea.yaml" || p.Line != 2 {
		t.Errorf("the place of a conf.d key: %v", p)
	}
}

func TestConfDIsHeldToItsRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		mode fs.FileMode
		want string
	}{
		"a name that is taken": {"sources:\n  a: {provider: y, deliver_to: [b]}\n", 0o600,
			"conf.d/x.yaml:2: sources.a: the name is taken in "},
		"secrets of a taken name": {"sources:\n  a: {secrets: [x]}\n", 0o600, "sources.a: the name is taken"},
		"a taken destination":     {"destinations:\n  b: {pull: {}}\n", 0o600, "destinations.b: the name is taken"},
		"others may read it":      {"sources: {}\n", 0o644, "mode 0644 lets others read its secrets: chmod 600"},
		"a general key":           {"listen: \":1\"\n", 0o600, "x.yaml:1: listen: unknown key"},
		"more secrets of nobody":  {"sources:\n  z: {more_secrets: [x]}\n", 0o600, "x.yaml:2: sources.z: there is no such source"},
		"no YAML":                 {"a: \"SECRET", 0o600, "x.yaml:1: this is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "acuse.yaml")
			write(t, path, "sources:\n  a: {provider: x, deliver_to: [b]}\ndestinations:\n  b: {pull: {}}\n", 0o600)
			write(t, filepath.Join(dir, "data/conf.d/x.yaml"), c.text, c.mode)
			_, _, err := Load(path, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestExamplesAreValidAsWritten(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{"en", "es", "de"} {
		c := read(t, string(Example(lang)), nil)
		if c.Listen != ":8080" || len(c.Sources) != 0 {
			t.Errorf("%s: %+v", lang, c)
		}
		// With the marks before its lines taken off, what it shows is valid too.
		var b strings.Builder
		for l := range strings.Lines(string(Example(lang))) {
			if rest, ok := strings.CutPrefix(l, "  # "); ok {
				l = "  " + rest
			}
			b.WriteString(l)
		}
		shown := read(t, b.String(), map[string]string{"STRIPE_WHSEC": "x"})
		if len(shown.Sources) != 1 || len(shown.Destinations) != 2 || len(shown.Alerts) != 1 {
			t.Errorf("%s, unfolded: %+v", lang, shown)
		}
	}
	if reflect.DeepEqual(Example("es"), Example("en")) {
		t.Error("both languages are one")
	}
}

func TestDataDirNeedsNothingElseOfTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "acuse.yaml")
	if got := DataDir(path, nil); got != filepath.Join(dir, "data") {
		t.Errorf("no file: %s", got)
	}
	write(t, path, "data_dir: ./state\nsources:\n  a: {secrets: [\"${NOT_IN_THIS_SHELL}\"]}\ncolour: red\n", 0o600)
	if got := DataDir(path, nil); got != filepath.Join(dir, "state") {
		t.Errorf("a file with problems: %s", got)
	}
	write(t, path, "data_dir: \"${STATE}/acuse\"\n", 0o600)
	if got := DataDir(path, []string{"STATE=/var/lib"}); got != "/var/lib/acuse" {
		t.Errorf("a variable: %s", got)
	}
	if got := DataDir(path, []string{"ACUSE_DATA_DIR=here"}); got != "here" {
		t.Errorf("the environment: %s", got)
	}
	c, _, err := Defaults(path, []string{"ACUSE_LISTEN=127.0.0.1:9000"})
	if err != nil || c.Listen != "127.0.0.1:9000" || c.DataDir != filepath.Join(dir, "data") {
		t.Errorf("without a file: %+v, %v", c, err)
	}
}
