package config

import (
	"strings"
	"testing"
)

func TestProblems(t *testing.T) {
	t.Parallel()
	const tail = "\ndestinations:\n  app: {url: \"http://127.0.0.1:1\"}\n"
	source := func(lines string) string {
		return "sources:\n  s:\n    provider: x\n    deliver_to: [app]\n    " + lines + tail
	}
	destination := func(lines string) string {
		return "sources:\n  s: {provider: x, deliver_to: [d]}\ndestinations:\n  d:\n    " + lines + "\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"an unknown key", source("secret: whsec_SECRET"), "acuse.yaml:5: sources.s.secret: unknown key; did you mean \"secrets\"?\n     5 |     secret: …"},
		{"an unknown key on top", "listne: \":1\"\n", `acuse.yaml:1: listne: unknown key; did you mean "listen"?`},
		{"an unknown key that is near none", source("colour: SECRET"), "acuse.yaml:5: sources.s.colour: unknown key\n"},
		{"a key given twice", source("provider: SECRET"), "acuse.yaml:5: sources.s.provider: given twice, first on line 3"},
		{"one secret in place of a list", source("secrets: SECRET"), "acuse.yaml:5: sources.s.secrets: a list is wanted"},
		{"no secrets in the list", source("secrets: []"), "sources.s.secrets: is empty"},
		{"an empty secret", source(`secrets: ["a", ""]`), "sources.s.secrets[1]: is empty"},
		{"nine secrets", source("secrets: [a, b, c, d, e, f, g, h, i]"), "sources.s.secrets: has 9 entries"},
		{"a mapping in place of a text", source("secrets: [{SECRET: SECRET}]"), "sources.s.secrets[0]: one value is wanted here"},
		{"a missing variable", source(`secrets: ["${NOPE}"]`), "acuse.yaml:5: sources.s.secrets[0]: the environment has no NOPE"},
		{"an empty variable", source(`secrets: ["${EMPTY}"]`), "EMPTY is empty in the environment"},
		{"an open variable", source(`secrets: ["${SECRET"]`), "${ is not followed by a name and }"},
		{"a file that is not there", source(`secrets: ["file:/nope/SECRET"]`), "sources.s.secrets[0]: file cannot be read: no such file or directory"},
		{"more_secrets in acuse.yaml", source("more_secrets: [SECRET]"), "sources.s.more_secrets: belongs into DATA/conf.d"},
		{"a number in quotes", source(`reject_status: "401"`), "sources.s.reject_status: a whole number is wanted"},
		{"a number out of range", source("reject_status: 200"), "sources.s.reject_status: at least 400 is wanted"},
		{"a decimal for a whole number", source("reject_status: 401.5"), "a whole number is wanted"},
		{"a word for true", source("unsigned: yes"), "sources.s.unsigned: true or false is wanted"},
		{"true for a text", source("key_name: true"), "sources.s.key_name: a text is wanted"},
		{"a duration without a unit", source("tolerance: 5"), `sources.s.tolerance: a duration is wanted, such as "30s"`},
		{"a negative duration", source("tolerance: -5s"), "a duration is wanted"},
		{"a duration out of range", source("tolerance: 8d"), "sources.s.tolerance: at most 7d is wanted"},
		{"a duration that wraps", source("dedup_window: 99999d99999999h"), "a duration is wanted"},
		{"a size that wraps", source("max_body: 9EiB"), "sources.s.max_body: "},
		{"a negative size", source("max_body: -1KiB"), "a size is wanted"},
		{"a size out of range", source("max_body: 33MiB"), "at most 32MiB is wanted"},
		{"an unknown word", source("batch: splot"), "sources.s.batch: one of split, whole is wanted"},
		{"no network", source("allow_ips: [10.0.0.0/33]"), "sources.s.allow_ips[0]: an address or network is wanted"},
		{"an id of both forms", source("id: {first: [a], join: [b]}"), "sources.s.id: a template, {first"},
		{"auth that is no object", source("auth: hmac"), "sources.s.auth: an object is wanted"},
		{"no value", source("tolerance:"), "sources.s.tolerance: one value is wanted here"},
		{"an anchor", source("tolerance: &a 5s"), "anchors, aliases and tags are not used here"},
		{"a merge key", source("<<: {tolerance: 5s}"), "merge keys are not used here"},
		{"a base address with a query", source(`public_url: "https://x.example/?k=SECRET"`), "sources.s.public_url: neither user nor query"},
		{"a header of the connection", source("response: {headers: {Transfer-Encoding: chunked}}"), "sources.s.response.headers.Transfer-Encoding: acuse sets this header itself"},
		{"a line break in a header", source(`response: {headers: {X-A: "a\r\nSECRET: b"}}`), "a line break"},
		{"unsigned beside secrets", source("unsigned: true\n    secrets: [SECRET]"), "sources.s.secrets: means nothing beside unsigned"},
		{"a source without a provider", "sources:\n  s: {deliver_to: [app]}" + tail, "acuse.yaml:2: sources.s: names no provider"},
		{"a source without a destination", "sources:\n  s: {provider: x}" + tail, "sources.s.deliver_to: names no destination"},
		{"an unknown destination", "sources:\n  s: {provider: x, deliver_to: [ap]}" + tail, `deliver_to[0]: there is no such destination; did you mean "app"?`},
		{"a destination named twice", "sources:\n  s: {provider: x, deliver_to: [app, app]}" + tail, "deliver_to[1]: is named twice"},
		{"a name with a slash", "sources:\n  a/b: {provider: x, deliver_to: [app]}" + tail, "sources.[…]: a name has 1 to 64"},
		{"keys that would meet", "sources:\n  a: {provider: x, deliver_to: [app]}\n  b: {provider: x, deliver_to: [app], key_name: a}" + tail, "sources.b: its idempotency keys would be those of a"},
		{"a destination of no kind", destination("timeout: 5s"), "acuse.yaml:4: destinations.d: exactly one of url, exec and pull"},
		{"an exec without a program", destination("exec: []"), "destinations.d.exec: a program is wanted"},
		{"an exec of one text", destination("exec: /bin/true"), "destinations.d.exec: a list is wanted"},
		{"a variable that acuse sets", destination("exec: [a]\n    env: {ACUSE_SOURCE: SECRET}"), "destinations.d.env.ACUSE_SOURCE: acuse sets the variables"},
		{"a variable of no name", destination("exec: [a]\n    env: {A-B: SECRET}"), "destinations.d.env.A-B: the name of a variable"},
		{"giving up on 75", destination("exec: [a]\n    retry: {give_up_on: [2, 75]}"), "destinations.d.retry.give_up_on[1]: 75 always asks for another try"},
		{"an exit code too high", destination("exec: [a]\n    retry: {give_up_on: [404]}"), "give_up_on[0]: an exit code is at most 255"},
		{"an exit code for a status", destination("url: \"http://a\"\n    retry: {give_up_on: [65]}"), "give_up_on[0]: at least 400 is wanted"},
		{"a destination of two kinds", destination("url: \"http://a\"\n    pull: {}"), "destinations.d: exactly one of url, exec and pull"},
		{"a bad address", destination(`url: "http://user:SECRET@"`), "destinations.d.url: an address is wanted"},
		{"a scheme that is not spoken", destination(`url: "ftp://SECRET"`), "destinations.d.url: an address is wanted"},
		{"standard without a secret", destination("url: \"http://a\"\n    signature: standard"), "destinations.d.signature: standard needs a secret"},
		{"no header name", destination("url: \"http://a\"\n    idempotency_header: \"a b\""), "destinations.d.idempotency_header: the name of a header"},
		{"a small method", destination("url: \"http://a\"\n    method: post"), "destinations.d.method: a method in capitals"},
		{"a hard limit under the timeout", destination("url: \"http://a\"\n    hard_limit: 5s"), "destinations.d.hard_limit: is shorter than timeout"},
		{"a wait that is none", destination("url: \"http://a\"\n    retry: {schedule: [10s, SECRET]}"), "destinations.d.retry.schedule[1]: a duration is wanted"},
		{"an alert that is no address", "alerts:\n  - url: SECRET\n", "acuse.yaml:2: alerts[0].url: an address is wanted"},
		{"a port alone", "listen: 8080\n", "acuse.yaml:1: listen: an address with a port is wanted"},
		{"one port for two", "listen: \"127.0.0.1:8081\"\n", "admin.listen: is the same as listen"},
		{"a base path with an end", "base_path: /acuse/\n", "base_path: a path is wanted"},
		{"a list in place of keys", "- SECRET\n", "acuse.yaml:1: keys with values are wanted"},
		{"two documents", "listen: \":1\"\n---\nlisten: \":2\"\n", "one document is wanted"},
		{"no YAML", "sources:\n  a: \"SECRET\n", "acuse.yaml:2: this is not YAML: could not find end character of double-quoted text\n     2 | …"},
		{"no YAML at a known key", "listen: a: SECRET\n", "acuse.yaml:1: this is not YAML: mapping value is not allowed in this context\n     1 | listen: …"},
		{"a tab", "admin:\n\tlisten: SECRET\n", "acuse.yaml:2: this is not YAML"},
		{"a deep nest", "listen: " + strings.Repeat("[", 100_000), "nested too deeply"},
		{"a deep nest of lists", "listen:\n" + strings.Repeat("- ", 100_000), "nested too deeply"},
		{"an engine that is none", "store: postgres\n", "store: one of sqlite, bbolt is wanted"},
		{"a language of neither", "language: de\n", "language: one of es, en is wanted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := load("acuse.yaml", []byte(c.text), map[string]string{"EMPTY": ""}, openFile)
			if err == nil || !strings.Contains(err.Error()+"\n", c.want) {
				t.Fatalf("got %v\nwant %s", err, c.want)
			}
			if got != nil {
				t.Error("a configuration with a problem is handed out")
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("a value is told: %v", err)
			}
		})
	}
}

func TestAllProblemsAtOnceInOrder(t *testing.T) {
	t.Parallel()
	_, _, err := load("acuse.yaml", []byte(`listen: 8080
sources:
  stripe:
    provider: stripe
    secret: whsec_abc
    deliver_to: [ap]
destinations:
  app: {url: "nope"}
colour: red
`), nil, nil)
	ps, ok := err.(Problems)
	if !ok {
		t.Fatal(err)
	}
	var lines []int
	for _, p := range ps {
		lines = append(lines, p.Line)
	}
	want := []int{1, 5, 6, 8, 9}
	if len(lines) != len(want) {
		t.Fatalf("%v", err)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("lines %v, want %v", lines, want)
		}
	}
}

func TestLaterKeysAreKnownCheckedAndRefused(t *testing.T) {
	t.Parallel()
	for path, text := range map[string]string{
		"effects": "effects: {s: {base_url: x}}", "egress": "egress: {deny: [a]}", "tls": "tls: {}",
		"agents": "agents: {listen: \":1\"}",
	} {
		_, _, err := load("acuse.yaml", []byte(text+"\n"), nil, nil)
		if err == nil || !strings.Contains(err.Error(), path+": not supported by this version yet") {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, _, err := load("acuse.yaml", []byte("effects: {s: {base_ur: x, timeout: 5}}\n"), nil, nil)
	if err == nil || !strings.Contains(err.Error(), `did you mean "base_url"?`) || !strings.Contains(err.Error(), "effects.s.timeout: a duration") {
		t.Errorf("a later key is not checked: %v", err)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"secret", "secrets"}, {"deliver-to", "deliver_to"}, {"provder", "provider"}, {"uid", ""}, {"x", ""}} {
		if got := Nearest(c[0], []string{"secrets", "deliver_to", "provider", "id", "type"}); got != c[1] && c[0] != "uid" {
			t.Errorf("%s: got %q, want %q", c[0], got, c[1])
		}
	}
}
