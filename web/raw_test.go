package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// dialog sends bytes on a fresh connection and reads answers until the server ends
// it or there are as many as wanted.
type dialog struct {
	t  testing.TB
	c  net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, addr string) *dialog {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &dialog{t, c, bufio.NewReader(c)}
}

func (d *dialog) send(s string) *dialog {
	d.t.Helper()
	if _, err := io.WriteString(d.c, s); err != nil {
		d.t.Fatalf("send: %v", err)
	}
	return d
}

// answer reads one answer; its body is read to the end.
func (d *dialog) answer() (*http.Response, string) {
	d.t.Helper()
	r, err := http.ReadResponse(d.in, nil)
	if err != nil {
		d.t.Fatalf("answer: %v", err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		d.t.Fatalf("answer's body: %v", err)
	}
	return r, string(b)
}

func (d *dialog) status(want int) *dialog {
	d.t.Helper()
	r, body := d.answer()
	if r.StatusCode != want {
		d.t.Fatalf("got %d %s, want %d", r.StatusCode, body, want)
	}
	return d
}

// ended fails unless the server closed the connection without another answer.
func (d *dialog) ended() {
	d.t.Helper()
	if n, err := io.Copy(io.Discard, d.in); n > 0 {
		d.t.Fatalf("%d more bytes on a connection that should have ended (%v)", n, err)
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		d.t.Fatal("the connection stays open")
	}
}

// docs/http.md H1 and H2: no redirects, the choice for doubled slashes and dots, and
// the methods.
func TestNoRedirects(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	s := signedSource("g")
	s.Unsigned, s.Checker = true, &checker{none: true}
	addr := serve(t, newEdge(t, EdgeOptions{Inbox: in}, s), 0)
	for i, c := range []struct {
		method, url string
		want        int
	}{
		{"POST", "/in/g", 200},
		{"POST", "//in/g", 200},
		{"POST", "/in/g/", 200},
		{"POST", "/./in/g", 200},
		{"POST", "/in/g?a=1&a=2", 200},
		{"POST", "http://other.example/in/g", 200},
		{"GET", "/in/g", 405},
		{"HEAD", "/in/g", 405},
		{"OPTIONS", "/in/g", 405},
		{"PUT", "/in/g", 405},
		{"DELETE", "/in/g", 405},
		{"BREW", "/in/g", 405},
		{"POST", "/IN/G", 404},
		{"POST", "/in/G", 404},
		{"POST", "/%69n/g", 404},
		{"POST", "/in/%67", 404},
		{"POST", "/in/", 404},
		{"POST", "/", 404},
		{"GET", "/index.html", 404},
		{"OPTIONS", "*", 404},
		{"CONNECT", "example.org:443", 404},
	} {
		d := dial(t, addr).send(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: h\r\nX-Id: %d\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", c.method, c.url, i))
		r, err := http.ReadResponse(d.in, &http.Request{Method: c.method})
		if err != nil {
			t.Fatalf("%s %s: %v", c.method, c.url, err)
		}
		if r.StatusCode != c.want {
			t.Errorf("%s %s: got %d, want %d", c.method, c.url, r.StatusCode, c.want)
		}
		if c.want == 405 && r.Header.Get("Allow") != "POST" {
			t.Errorf("%s %s: Allow %q", c.method, c.url, r.Header.Get("Allow"))
		}
	}
	var targets []string
	for _, a := range in.all() {
		targets = append(targets, a.Target)
	}
	want := []string{"/in/g", "//in/g", "/in/g/", "/./in/g", "/in/g?a=1&a=2", "/in/g"}
	if strings.Join(targets, " ") != strings.Join(want, " ") {
		t.Errorf("archived %q, want %q", targets, want)
	}
}

// docs/http.md H6: a body shorter than promised is 400 and stores nothing.
func TestShortBodyStoresNothing(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	addr := serve(t, newEdge(t, EdgeOptions{Inbox: in}, signedSource("g")), 0)
	for name, request := range map[string]string{
		"fewer bytes than Content-Length": "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Sig: " + sign("s3cret", []byte("{}")) + "\r\nContent-Length: 3\r\n\r\n{}",
		"no bytes at all":                 "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Sig: " + sign("s3cret", nil) + "\r\nContent-Length: 3\r\n\r\n",
		"chunks without an end":           "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Sig: " + sign("s3cret", []byte("{}")) + "\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
		"a chunk that is no chunk":        "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Sig: " + sign("s3cret", []byte("{}")) + "\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
	} {
		d := dial(t, addr).send(request)
		_ = d.c.(*net.TCPConn).CloseWrite()
		d.status(400)
		d.ended()
		if n := len(in.all()); n != 0 {
			t.Fatalf("%s: %d stored", name, n)
		}
	}
}

// Whoever frames the request, fewer bytes than Content-Length are no body.
func TestFewerBytesThanPromised(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	e := newEdge(t, EdgeOptions{Inbox: in}, signedSource("g"))
	r := httptest.NewRequest("POST", "/in/g", strings.NewReader("{}"))
	r.Header.Set("X-Sig", sign("s3cret", []byte("{}")))
	r.ContentLength = 3
	w := newRecorder()
	e.ServeHTTP(w, r)
	if w.Code != 400 || len(in.all()) != 0 {
		t.Errorf("%d, stored %d", w.Code, len(in.all()))
	}
}

// docs/http.md H7: with both lengths given, what follows cannot be told from a second
// request, so the answer to a chunked request closes the connection.
func TestFramingThatCanBeReadInTwoWays(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	addr := serve(t, newEdge(t, EdgeOptions{Inbox: in}, signedSource("g")), 0)
	sig := "X-Sig: " + sign("s3cret", []byte("{}")) + "\r\n"
	smuggled := "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Id: smuggled\r\n" + sig + "Content-Length: 2\r\n\r\n{}"
	for _, c := range []struct {
		name, request string
		want          int
	}{
		{"chunked", "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Id: a\r\n" + sig + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200},
		{"both lengths", "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Id: b\r\n" + sig + "Content-Length: 17\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200},
		{"two different lengths", "POST /in/g HTTP/1.1\r\nHost: h\r\nX-Id: c\r\n" + sig + "Content-Length: 2\r\nContent-Length: 9\r\n\r\n{}", 400},
		{"a length that is no number", "POST /in/g HTTP/1.1\r\nHost: h\r\n" + sig + "Content-Length: +2\r\n\r\n{}", 400},
		{"an unknown coding", "POST /in/g HTTP/1.1\r\nHost: h\r\n" + sig + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 501},
		{"HTTP/1.0", "POST /in/g HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\nX-Id: d\r\n" + sig + "Content-Length: 2\r\n\r\n{}", 200},
		{"no Host", "POST /in/g HTTP/1.1\r\n" + sig + "Content-Length: 2\r\n\r\n{}", 400},
	} {
		d := dial(t, addr).send(c.request + smuggled)
		if r, body := d.answer(); r.StatusCode != c.want {
			t.Errorf("%s: got %d %s, want %d", c.name, r.StatusCode, body, c.want)
		}
		d.ended()
	}
	for _, a := range in.all() {
		if a.Events[0].ID == "smuggled" {
			t.Error("bytes behind an ambiguous request became a request")
		}
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	addr := serve(t, newEdge(t, EdgeOptions{Inbox: &inbox{}}, signedSource("g")), 0)
	d := dial(t, addr).send(signedRequest("g", "1", "{}") + signedRequest("g", "2", `{"a":1}`) + signedRequest("nowhere", "3", "{}") + signedRequest("g", "1", "{}"))
	for _, want := range []string{`{"status":"accepted","delivery":1}`, `{"status":"accepted","delivery":2}`} {
		if _, body := d.answer(); strings.TrimSpace(body) != want {
			t.Errorf("got %s, want %s", body, want)
		}
	}
	d.status(404) // its body was not read: the connection ends
	d.ended()
}

// docs/http.md H12: headers over 32 KiB are 431.
func TestHeadersOver32KiB(t *testing.T) {
	t.Parallel()
	addr := serve(t, newEdge(t, EdgeOptions{Inbox: &inbox{}}, signedSource("g")), 0)
	pad := func(total int) string {
		plain := signedRequest("g", "1", "{}", "X-Pad: \r\n")
		head := strings.Index(plain, "\r\n\r\n") + 4
		return signedRequest("g", "1", "{}", "X-Pad: "+strings.Repeat("p", total-head)+"\r\n")
	}
	dial(t, addr).send(pad(maxHeader - 100)).status(200)
	d := dial(t, addr).send(pad(maxHeader + 100))
	d.status(431)
	many := "POST /in/g HTTP/1.1\r\nHost: h\r\n"
	for i := range 200 {
		many += fmt.Sprintf("X-%d: %s\r\n", i, strings.Repeat("p", 1000))
	}
	d = dial(t, addr)
	_, _ = io.WriteString(d.c, many+"\r\n") // the server may close before all of it is sent
	d.status(431)
}

// docs/http.md H8: 413 at once when Content-Length says so, else after the limit.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	in, kept := &inbox{}, &ring{}
	s := signedSource("g")
	s.MaxBody = 100_000
	e := newEdge(t, EdgeOptions{Inbox: in, Rejections: kept}, s)
	addr := serve(t, e, 0)
	sig := "X-Sig: " + sign("s3cret", []byte("{}")) + "\r\n"

	d := dial(t, addr).send("POST /in/g HTTP/1.1\r\nHost: h\r\n" + sig + "Content-Length: 104857600\r\n\r\n")
	d.status(413) // not a byte of the body was sent
	d.ended()

	d = dial(t, addr).send("POST /in/g HTTP/1.1\r\nHost: h\r\n" + sig + "Expect: 100-continue\r\nContent-Length: 100001\r\n\r\n")
	if r, _ := d.answer(); r.StatusCode != 413 {
		t.Errorf("expecting to go on: %d", r.StatusCode)
	}

	d = dial(t, addr).send("POST /in/g HTTP/1.1\r\nHost: h\r\n" + sig + "Transfer-Encoding: chunked\r\n\r\n")
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 10_000, strings.Repeat("x", 10_000))
	for range 11 {
		d.send(chunk)
	}
	d.status(413) // the end of the body was never sent

	body := strings.Repeat("x", 100_000)
	dial(t, addr).send(signedRequest("g", "just", body)).status(200)
	d = dial(t, addr).send("POST /in/g HTTP/1.1\r\nHost: h\r\nX-Id: chunked\r\nX-Sig: " + sign("s3cret", []byte(body)) + "\r\nTransfer-Encoding: chunked\r\n\r\n")
	for range 10 {
		d.send(chunk)
	}
	d.send("0\r\n\r\n").status(200)
	if n := len(in.all()); n != 2 {
		t.Errorf("%d stored, want 2", n)
	}
	if e.budget.inUse() != 0 {
		t.Errorf("%d bytes of the budget were not given back", e.budget.inUse())
	}
}

// docs/http.md H9: a request without its signature header is refused before its body is
// read, which is never asked for.
func TestUnsignedIsRefusedUnread(t *testing.T) {
	t.Parallel()
	addr := serve(t, newEdge(t, EdgeOptions{Inbox: &inbox{}}, signedSource("g")), 0)
	for name, framing := range map[string]string{
		"with a length":      "Content-Length: 500000\r\n",
		"in chunks":          "Transfer-Encoding: chunked\r\n",
		"expecting to go on": "Expect: 100-continue\r\nContent-Length: 500000\r\n",
	} {
		d := dial(t, addr).send("POST /in/g HTTP/1.1\r\nHost: h\r\n" + framing + "\r\n")
		if r, body := d.answer(); r.StatusCode != 401 || !r.Close {
			t.Errorf("%s: got %d %s, close %v", name, r.StatusCode, body, r.Close)
		}
		d.ended()
	}
}

// docs/http.md H10.
func TestBodiesComeBackBitForBit(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	addr := serve(t, newEdge(t, EdgeOptions{Inbox: in}, signedSource("g")), 0)
	utf8 := "{\"title\":\"m\u00e2nec\u0103 \u6f22\u5b57 \u2028 end\"}"
	bodies := []string{utf8, "\xef\xbb\xbf" + utf8, "\xff\xfe{bad", "", strings.Repeat("\x00\x01", 40_000)}
	for i, b := range bodies {
		dial(t, addr).send(signedRequest("g", itoa(i), b)).status(200)
		d := dial(t, addr).send("POST /in/g HTTP/1.1\r\nHost: h\r\nX-Id: c" + itoa(i) + "\r\nX-Sig: " + sign("s3cret", []byte(b)) + "\r\nTransfer-Encoding: chunked\r\n\r\n")
		for at := 0; at < len(b); at += 29 { // chunk borders fall inside characters
			part := b[at:min(at+29, len(b))]
			d.send(fmt.Sprintf("%x\r\n%s\r\n", len(part), part))
		}
		d.send("0\r\n\r\n").status(200)
	}
	all := in.all()
	if len(all) != 2*len(bodies) {
		t.Fatalf("%d stored", len(all))
	}
	for i, a := range all {
		if string(a.Body) != bodies[i/2] || a.Body == nil {
			t.Errorf("body %d: %d bytes, want %d", i, len(a.Body), len(bodies[i/2]))
		}
		if a.Events[0].Size != len(bodies[i/2]) {
			t.Errorf("size %d: %d", i, a.Events[0].Size)
		}
	}
}
