package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/provider"
	"acuse/store"
	"acuse/store/sqlite"
)

// compiled makes a checker of the catalogue.
func compiled(t testing.TB, name string, s provider.Settings) *provider.Checker {
	t.Helper()
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	p, ok := cat.Get(name)
	if !ok {
		t.Fatalf("no provider %s", name)
	}
	c, err := p.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func openStore(t testing.TB) store.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{MinFree: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// stripeRequest signs a body as Stripe does.
func stripeRequest(t testing.TB, c *provider.Checker, id string, now time.Time) (body string, header http.Header) {
	t.Helper()
	body = `{"id":"` + id + `","object":"event","type":"invoice.paid","created":` + itoa(int(now.Unix())) + `,"livemode":true,"data":{"object":{"id":"in_1"}}}`
	r := &provider.Request{Method: "POST", Target: "/in/stripe", Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
	if err := c.Sign(r, 0, now); err != nil {
		t.Fatal(err)
	}
	return body, r.Header
}

func postStripe(e *Edge, body string, h http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/in/stripe", strings.NewReader(body))
	r.Header = h.Clone()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// Every recorded request of every provider gets the status that its vector asks for,
// through the whole edge: the framing, the limits, the early refusal and the answer.
func TestEveryVectorThroughTheEdge(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../provider/testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		p, ok := cat.Get(name)
		if !ok {
			continue // a scheme that this version does not know
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		vectors, err := provider.ReadVectors(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vectors {
			ran++
			checkVector(t, p, v)
		}
	}
	if ran != 1343 {
		t.Errorf("only %d vectors ran", ran)
	}
}

func checkVector(t *testing.T, p *provider.Provider, v provider.Vector) {
	t.Helper()
	c, err := p.Compile(v.Settings(p))
	if err != nil {
		t.Errorf("%s: %v", v.Name, err)
		return
	}
	want, err := v.Request()
	if err != nil {
		t.Fatal(err)
	}
	public, query, _ := strings.Cut(want.URL, "?")
	if _, q, _ := strings.Cut(v.Path, "?"); q != query {
		return // the edge always puts the query it received into the address
	}
	in := &inbox{}
	now := time.Unix(v.Now, 0)
	e := newEdge(t, EdgeOptions{Inbox: in, Now: func() time.Time { return now }, Captures: settings{}}, Source{
		Name: "x", Provider: p.Name, Checker: c, PublicURL: public, Unsigned: true, RejectStatus: p.RejectStatus(),
	})
	r := httptest.NewRequest(v.Method, "http://hooks.example.test/in/x", strings.NewReader(string(want.Body)))
	target := "/in/x" // the path is no part of any scheme but through the public address
	if _, q, ok := strings.Cut(v.Path, "?"); ok {
		target += "?" + q
	}
	if strings.HasPrefix(v.Path, "/in/") {
		target = v.Path
		e.SetSources(rename(e, v.Path))
	}
	r.RequestURI = target
	r.Header = want.Header
	if v.RemoteAddr != "" {
		r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(v.RemoteAddr), 1234).String()
	}
	if len(v.Secrets) == 0 && p.Captures() {
		if _, err := e.OpenCapture(t.Context(), (*e.sources.Load())[nameOf(target)].Name); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	switch {
	case v.Expect.Verdict == "ok" && v.Expect.Reason != "handshake" && v.Method != "POST":
		if w.Code != 405 || len(in.all()) != 0 { // events come by POST only
			t.Errorf("%s: %d for %s, stored %d", v.Name, w.Code, v.Method, len(in.all()))
		}
	case v.Expect.Response != nil && v.Expect.Reason == "handshake":
		checkHandshake(t, &v, w)
	case strings.Contains(w.Body.String(), `"accepted":0,"duplicates":0`): // an empty batch
	case v.Expect.Verdict == "ok" && w.Code >= 300:
		t.Errorf("%s: %d %s", v.Name, w.Code, w.Body)
	case v.Expect.Verdict == "ok" && v.Expect.Reason == "handshake" && len(in.all()) != 0:
		t.Errorf("%s: a handshake was stored", v.Name)
	case v.Expect.Verdict == "ok" && v.Expect.Reason != "handshake" && (len(in.all()) != 1 || string(in.all()[0].Body) != string(want.Body)):
		t.Errorf("%s: %d stored", v.Name, len(in.all()))
	case v.Expect.Verdict == "reject" && (w.Code < 400 || len(in.all()) != 0):
		t.Errorf("%s: %d, stored %d", v.Name, w.Code, len(in.all()))
	}
	if strings.Contains(w.Body.String(), `"method"`) {
		t.Errorf("%s: an answer with a method, which Telegram would call", v.Name)
	}
}

// checkHandshake holds the whole answer against the vector's: status, headers, body.
func checkHandshake(t *testing.T, v *provider.Vector, w *httptest.ResponseRecorder) {
	t.Helper()
	want := v.Expect.Response
	if w.Code != want.Status {
		t.Errorf("%s: %d, want %d", v.Name, w.Code, want.Status)
	}
	if want.Body != nil && v.Method != http.MethodHead && w.Body.String() != *want.Body {
		t.Errorf("%s: body %q, want %q", v.Name, w.Body, *want.Body)
	}
	for name, value := range want.Headers {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s: %s is %q, want %q", v.Name, name, got, value)
		}
	}
}

func nameOf(target string) string {
	_, name, _ := route(pathOf(target))
	return name
}

// rename gives the edge's one source the name in a vector's path.
func rename(e *Edge, path string) []Source {
	_, name, _ := route(pathOf(path))
	s := (*e.sources.Load())["x"].Source
	s.Name = name
	return []Source{s}
}

// P2: fifty copies at once make one delivery and one job a destination.
func TestP2FiftyCopiesAtOnce(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	c := compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_test"}})
	source := func(name string) Source {
		return Source{Name: name, Provider: "stripe", Checker: c, Destinations: []Destination{{Name: "app"}, {Name: "agent"}}}
	}
	e := newEdge(t, EdgeOptions{Inbox: db}, source("stripe"), source("second"))
	addr := serve(t, e, 0)
	body, h := stripeRequest(t, c, "evt_1", time.Now())
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	answers := make([]string, 50)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			r, err := http.NewRequest("POST", "http://"+addr+"/in/stripe", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header = h.Clone()
			res, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			var got struct{ Status string }
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != 200 {
				t.Errorf("%d %v", res.StatusCode, err)
			}
			answers[i] = got.Status
		})
	}
	wg.Wait()
	slices.Sort(answers)
	if answers[0] != "accepted" || answers[1] != "duplicate" || answers[49] != "duplicate" {
		t.Errorf("%q", answers)
	}
	list, _, err := db.Deliveries(t.Context(), store.DeliveryFilter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d deliveries, %v", len(list), err)
	}
	d, err := db.Delivery(t.Context(), list[0].ID)
	if err != nil || len(d.Jobs) != 2 || d.Duplicates != 49 || d.EventID != "evt_1" || d.Type != "invoice.paid" || d.Slot != 1 {
		t.Errorf("%+v %v", d, err)
	}
	// The same id at another source is another event.
	r := httptest.NewRequest("POST", "/in/second", strings.NewReader(body))
	r.Header = h.Clone()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), `"accepted"`) {
		t.Errorf("another source: %s", w.Body)
	}
}

// From the wire to the archive and into a worker's hands, bit for bit; late and
// repeated acks are refused.
func TestFromTheWireToAWorker(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	c := compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_test"}})
	p := newPull(db, nil)
	e := newEdge(t, EdgeOptions{Inbox: db, Rejections: db, Wake: func(list []string) {
		for _, d := range list {
			p.Wake(d)
		}
	}}, Source{Name: "stripe", Provider: "stripe", Checker: c, Destinations: []Destination{{Name: "agent"}}})

	got := make(chan map[string]any, 1)
	go func() {
		_, answer := call(p, "lease", `{"destination":"agent","wait_seconds":30}`)
		got <- answer
	}()
	body, h := stripeRequest(t, c, "evt_1", time.Now())
	if w := postStripe(e, body, h); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	answer := <-got
	list, _ := answer["jobs"].([]any)
	if len(list) != 1 {
		t.Fatalf("%v", answer)
	}
	job := list[0].(map[string]any)
	raw, err := json.Marshal([]byte(body))
	if err != nil || fmt.Sprintf("%q", job["body_base64"]) != string(raw) || job["idempotency_key"] != "stripe:evt_1:agent" {
		t.Errorf("%v", job)
	}
	if sig := job["headers"].(map[string]any)["Stripe-Signature"]; fmt.Sprint(sig) != fmt.Sprint(h["Stripe-Signature"]) {
		t.Errorf("signature %v", sig)
	}
	path, lease := fmt.Sprintf("%v/", job["job"]), fmt.Sprintf(`{"lease":%q}`, job["lease"])
	if code, x := call(p, path+"renew", lease); code != 200 {
		t.Errorf("renew: %d %v", code, x)
	}
	if code, x := call(p, path+"ack", lease); code != 200 {
		t.Errorf("ack: %d %v", code, x)
	}
	if code, _ := call(p, path+"ack", lease); code != 409 {
		t.Errorf("ack again: %d", code)
	}
	d, err := db.Delivery(t.Context(), int64(job["delivery"].(float64)))
	if err != nil || d.State != store.StateDelivered {
		t.Errorf("%v %v", d.State, err)
	}
}

// A source whose signature covers the decoded body: what cannot be decoded is 415, what
// unpacks too large is 413, and the archive keeps the bytes of the wire.
func TestSignedOverTheDecodedBody(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	c := compiled(t, "hmac-generic", provider.Settings{Secrets: []string{"case-gs"}, Auth: []byte(
		`{"kind":"hmac","alg":"sha256","signed_over":"decoded","message":"{body}","signature":{"from":"header:X-Signature","format":"plain","encoding":"hex"}}`)})
	e := newEdge(t, EdgeOptions{Inbox: in}, Source{Name: "gs", Provider: "hmac-generic", Checker: c})
	plain := []byte(`{"type":"message.new","id":"gz-1"}`)
	sig := sign("case-gs", plain)
	wire := packed(t, plain)
	for _, x := range []struct {
		name, encoding string
		body           []byte
		want           int
	}{
		{"gzip", "gzip", wire, 200},
		{"an encoding that is not known", "zstd", plain, 415},
		{"20 KiB that unpack to 20 MiB", "gzip", packed(t, make([]byte, 20<<20)), 413},
	} {
		w := post(e, "/in/gs", string(x.body), "Content-Encoding", x.encoding, "X-Signature", sig)
		if w.Code != x.want {
			t.Errorf("%s: %d %s", x.name, w.Code, w.Body)
		}
	}
	if all := in.all(); len(all) != 1 || string(all[0].Body) != string(wire) || !strings.Contains(string(all[0].Header), `"Content-Encoding":["gzip"]`) {
		t.Errorf("%d stored", len(all))
	}
}

func packed(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A rejection can be read where a person looks, and a full disk is 503.
func TestRejectionsAndAFullDiskOverTheStore(t *testing.T) {
	t.Parallel()
	full, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{MinFree: 1 << 60})
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	c := compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_test"}})
	e := NewEdge(EdgeOptions{Inbox: full, Rejections: full, Log: slog.New(slog.DiscardHandler)})
	e.SetSources([]Source{{Name: "stripe", Provider: "stripe", Checker: c}})
	body, h := stripeRequest(t, c, "evt_1", time.Now())
	if w := postStripe(e, body, h); w.Code != 503 || w.Header().Get("Retry-After") != "10" {
		t.Errorf("a full disk: %d", w.Code)
	}
	h.Set("Stripe-Signature", strings.Replace(h.Get("Stripe-Signature"), "v1=", "v1=00", 1))
	if w := postStripe(e, body, h); w.Code != 401 {
		t.Errorf("forged: %d", w.Code)
	}
	e.Close()
	list, err := full.RejectionList(t.Context(), "stripe", 0, 10)
	if err != nil || len(list) != 1 || list[0].Reason != "signature_mismatch" || list[0].Status != 401 {
		t.Errorf("%+v %v", list, err)
	}
}

// A request that cannot be identified waits until the config can, and is released.
func TestQuarantineAndRelease(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	source := func(rule *provider.IDRule) Source {
		return Source{Name: "stripe", Provider: "stripe", Destinations: []Destination{{Name: "app"}},
			Checker: compiled(t, "stripe", provider.Settings{Secrets: []string{"whsec_test"}, ID: rule})}
	}
	wrong := source(&provider.IDRule{Template: "{json:no.such.field}"})
	e := newEdge(t, EdgeOptions{Inbox: db}, wrong)
	body, h := stripeRequest(t, wrong.Checker.(*provider.Checker), "evt_9", time.Now())
	w := postStripe(e, body, h)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"status":"quarantined"`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r := NewReleaser(e, db)
	ana := store.Actor{Name: "ana"}
	if released, _, err := r.Release(t.Context(), "stripe", nil, false, ana); err != nil || released != 0 {
		t.Fatalf("with the same config: %d %v", released, err)
	}
	e.SetSources([]Source{source(nil)})
	if released, duplicates, err := r.Release(t.Context(), "stripe", nil, false, ana); err != nil || released != 1 || duplicates != 0 {
		t.Fatalf("%d %d %v", released, duplicates, err)
	}
	d, err := db.Delivery(t.Context(), 1)
	if err != nil || d.EventID != "evt_9" || d.State != store.StateQueued || d.Jobs[0].Key != "stripe:evt_9:app" {
		t.Errorf("%+v %v", d, err)
	}
	if w := postStripe(e, body, h); !strings.Contains(w.Body.String(), `"status":"duplicate"`) {
		t.Errorf("its repeat: %s", w.Body)
	}
}

// BenchmarkReceive is the edge without a store: a signed Stripe body of 1.5 KB over
// one kept connection, net/http included, the client's own work not.
func BenchmarkReceive(b *testing.B) {
	c := compiled(b, "stripe", provider.Settings{Secrets: []string{"whsec_test"}})
	e := newEdge(b, EdgeOptions{Inbox: null{}}, Source{Name: "stripe", Provider: "stripe", Checker: c, Destinations: []Destination{{Name: "app"}}})
	addr := serve(b, e, 0)
	body, h := stripeRequest(b, c, "evt_1", time.Now())
	body = strings.TrimSuffix(body, "}") + `,"pad":"` + strings.Repeat("x", 1500-len(body)-9) + `"}`
	r := &provider.Request{Method: "POST", Target: "/in/stripe", Header: h, Body: []byte(body)}
	if err := c.Sign(r, 0, time.Now()); err != nil {
		b.Fatal(err)
	}
	request := "POST /in/stripe HTTP/1.1\r\nHost: hooks.example.org\r\nUser-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\nAccept: */*; q=0.5, application/xml\r\n" +
		"Cache-Control: no-cache\r\nContent-Type: application/json; charset=utf-8\r\nStripe-Signature: " + r.Header.Get("Stripe-Signature") +
		"\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body
	d := dial(b, addr)
	_ = d.c.SetDeadline(time.Time{})
	buf := make([]byte, 4096)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		d.send(request)
		if n, err := d.c.Read(buf); err != nil || !strings.HasPrefix(string(buf[:min(n, 12)]), "HTTP/1.1 200") {
			b.Fatalf("%q %v", buf[:n], err)
		}
	}
}
