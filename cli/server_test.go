package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var t0 = time.Date(2026, 11, 30, 14, 2, 31, 0, time.UTC)

// server is a running acuse as far as the command line sees it: the calls of the API
// with the shapes of the contract, and a record of what was asked.
type server struct {
	dir string
	mux *http.ServeMux

	mu    sync.Mutex
	asked []string // "POST /api/v1/deliveries/7/resend {...}"
}

// start listens on DATA/acuse.sock of a folder with a short path.
func start(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "acuse")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{dir: dir, mux: http.NewServeMux()}
	s.listen(t, filepath.Join(dir, "acuse.sock"))
	return s
}

func (s *server) listen(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(b)))
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(b))
		s.mux.ServeHTTP(w, r)
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
}

// answer registers a fixed answer.
func (s *server) answer(pattern string, status int, body string) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status >= 400 {
			w.Header().Set("Content-Type", "application/problem+json")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.asked...)
}

// result is what a run printed and how it ended.
type result struct {
	code     int
	out, err string
}

// run calls the command line as main does, in a folder without a config file.
func (s *server) run(t *testing.T, args ...string) result {
	t.Helper()
	return call(t, Options{Env: []string{"ACUSE_DATA_DIR=" + s.dir}}, args...)
}

func (s *server) runIn(t *testing.T, lang string, args ...string) result {
	t.Helper()
	return call(t, Options{Env: []string{"ACUSE_DATA_DIR=" + s.dir, "LANG=" + lang}}, args...)
}

func call(t *testing.T, o Options, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	o.Stdout, o.Stderr, o.Zone = &out, &errs, time.UTC
	o.Now = func() time.Time { return t0 }
	if o.Stdin == nil {
		o.Stdin = strings.NewReader("")
	}
	if o.Env == nil {
		o.Env = []string{}
	}
	code := Run(t.Context(), o, args)
	return result{code, out.String(), errs.String()}
}

// want compares one run with what it must print.
func (r result) want(t *testing.T, code int, out string, errs ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit %d, want %d; %s", r.code, code, r.err)
	}
	if r.out != out {
		t.Errorf("printed\n%q\nwant\n%q", r.out, out)
	}
	for _, e := range errs {
		if !strings.Contains(r.err, e) {
			t.Errorf("no %q on standard error:\n%s", e, r.err)
		}
	}
}

// one is a delivery in the API's shape.
func one(id int, state, job string) string {
	return fmt.Sprintf(`{"id":%d,"source":"stripe","provider":"stripe","event_id":"evt_%d","type":"invoice.paid","resource":"in_1","state":%q,`+
		`"received_at":"2026-11-30T14:02:11.000Z","duplicates":0,"last_duplicate_at":null,"body_differs":0,"test":false,"size":612,"secret_slot":1,"jobs":[%s]}`,
		id, id, state, job)
}

func jobOf(state string, attempts int, rest string) string {
	return fmt.Sprintf(`{"id":7,"destination":"app","state":%q,"attempts":%d,"due_at":null,"settled_at":null,%s,"idempotency_key":"stripe:evt_1:app"}`, state, attempts, rest)
}

func pageOf(next string, list ...string) string {
	return fmt.Sprintf(`{"deliveries":[%s],"next":%q}`, strings.Join(list, ","), next)
}

const destinations = `{"destinations":[{"name":"app","attempts":12}]}`

func problemOf(slug, title, detail string) string {
	b, _ := json.Marshal(map[string]string{"type": "urn:acuse:problem:" + slug, "title": title, "detail": detail})
	return string(b)
}
