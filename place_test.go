package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/queue/command"
	"acuse/scripts/tools/load"
)

// part names the role that this test binary plays when a test starts it again.
const part = "ACUSE_TEST_PART"

func TestMain(m *testing.M) {
	if command.Guarding() {
		os.Exit(command.Guard())
	}
	switch os.Getenv(part) {
	case "consumer":
		os.Exit(consume(os.Args[1], os.Args[2]))
	case "short leases":
		os.Exit(serveShortLeases(os.Args[1:]))
	}
	code := m.Run()
	if buildDir != "" {
		os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

var buildDir string // what built made; empty: no test needed it

// built is the product as users get it, built once.
var built = sync.OnceValues(func() (bin string, err error) {
	if buildDir, err = os.MkdirTemp("", "acuse-test-"); err != nil {
		return "", err
	}
	return load.Build(buildDir, "")
})

// place is an acuse of a test's own: a folder, ports, a configuration, a process.
type place struct {
	*load.Acuse
	t      *testing.T
	client *http.Client // keeps no connection: the other side may have been killed
}

// newPlace prepares acuse with a configuration, less folder and addresses.
func newPlace(t *testing.T, yaml string) *place {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{Acuse: &load.Acuse{Bin: bin, Dir: t.TempDir()}, t: t}
	p.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p.configure(yaml)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			log := p.log()
			t.Logf("%s:\n%s", p.Log(), log[max(0, len(log)-8000):])
		}
	})
	return p
}

// begin prepares acuse and starts it.
func begin(t *testing.T, yaml string) *place {
	t.Helper()
	p := newPlace(t, yaml)
	p.start()
	return p
}

func (p *place) configure(yaml string) {
	p.t.Helper()
	if err := p.Configure(yaml); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) start(env ...string) {
	p.t.Helper()
	if err := p.Start(env...); err != nil {
		p.t.Fatalf("%v\n%s", err, p.log())
	}
}

// log is all that the process has printed.
func (p *place) log() string {
	b, err := os.ReadFile(p.Log())
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(b)
}

// reply is an answer, read whole.
type reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// is fails the test unless the answer has the status and its body every word.
func (r reply) is(t *testing.T, status int, words ...string) {
	t.Helper()
	if r.Status != status {
		t.Fatalf("answered %d, want %d: %.2000s", r.Status, status, r.Body)
	}
	for _, w := range words {
		if !strings.Contains(string(r.Body), w) {
			t.Fatalf("answered %.2000s, want %q in it", r.Body, w)
		}
	}
}

// read decodes the body.
func (r reply) read(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(r.Body, into); err != nil {
		t.Fatalf("%v in %s", err, r.Body)
	}
}

// ask sends a request; headers come in pairs.
func (p *place) ask(method, url string, body []byte, headers ...string) (reply, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := p.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, b}, err
}

// must is ask for requests that get an answer.
func (p *place) must(method, url string, body []byte, headers ...string) reply {
	p.t.Helper()
	r, err := p.ask(method, url, body, headers...)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// post sends a body that Stripe signed now to a source.
func (p *place) post(source string, body []byte) reply {
	p.t.Helper()
	return p.must("POST", p.in(source), body, "Content-Type", "application/json; charset=utf-8", "Stripe-Signature", load.Sign(body, time.Now()))
}

// event is a Stripe event with the id, sent now; it must be accepted.
func (p *place) event(id string) (delivery int64) {
	p.t.Helper()
	r := p.post("stripe", load.Body(id, time.Now()))
	r.is(p.t, 200, `"status":"accepted"`)
	var a answer
	r.read(p.t, &a)
	return a.Delivery
}

// answer is what a sender reads.
type answer struct {
	Status   string `json:"status"`
	Delivery int64  `json:"delivery"`
}

func (p *place) in(source string) string { return "http://" + p.Public + "/in/" + source }

// api calls the API under the token; a nil body sends none.
func (p *place) api(method, path string, in any) reply {
	p.t.Helper()
	return p.apiAs(p.Token, method, path, in)
}

func (p *place) apiAs(token, method, path string, in any) reply {
	p.t.Helper()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			p.t.Fatal(err)
		}
	}
	return p.must(method, "http://"+p.Admin+path, body, "Authorization", "Bearer "+token, "Content-Type", "application/json")
}

// delivery is one delivery as the API shows it.
type delivery struct {
	load.Delivery
	BodyDiffers int                 `json:"body_differs"`
	Headers     map[string][]string `json:"headers"`
	Attempts    []struct {
		Outcome string `json:"outcome"`
		Status  int    `json:"status"`
	} `json:"attempts"`
}

func (p *place) delivery(id int64) (d delivery) {
	p.t.Helper()
	r := p.api("GET", "/api/v1/deliveries/"+strconv.FormatInt(id, 10), nil)
	r.is(p.t, 200)
	r.read(p.t, &d)
	return d
}

// deliveries are all of them, newest first.
func (p *place) deliveries() (list []load.Delivery) {
	p.t.Helper()
	if err := p.Deliveries(func(d load.Delivery) { list = append(list, d) }); err != nil {
		p.t.Fatal(err)
	}
	return list
}

// outcomes are those of a delivery's attempts, in order: "failed succeeded".
func (d delivery) outcomes() string {
	var out []string
	for _, a := range d.Attempts {
		out = append(out, a.Outcome)
	}
	return strings.Join(out, " ")
}

// until waits for a condition.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after 30 s: %s", what)
		}
	}
}

// destination is the configuration of an app that is tried again after a second.
func destination(name, url string, more ...string) string {
	return fmt.Sprintf("  %s:\n    url: %q\n    retry: {schedule: [%s], jitter: 0}\n    %s\n", name, url,
		strings.TrimSuffix(strings.Repeat("1s, ", 30), ", "), strings.Join(more, "\n    "))
}

// stripe is the configuration of a source that Stripe sends to.
func stripe(to ...string) string {
	return fmt.Sprintf("sources:\n  stripe:\n    provider: stripe\n    secrets: [%q]\n    deliver_to: [%s]\n", load.Secret, strings.Join(to, ", "))
}
