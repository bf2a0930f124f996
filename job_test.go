package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"acuse/scripts/tools/load"
)

// TestMainJob is what README promises, by plain HTTP: taken once, kept, answered,
// handed over as it came.
func TestMainJob(t *testing.T) {
	t.Parallel()
	app := newApp(t, nil)
	p := begin(t, stripe("app")+"destinations:\n"+destination("app", app.URL))

	body := bytes.Replace(load.Body("evt_1", time.Now()), []byte(`"amount_due":2500`), // what a decoder would change
		[]byte("\"amount_due\" :\t2.500e+3, \"n\":12345678901234567890, \"n\":\"\\u00e9\xff\""), 1)
	body = append(body, " \r\n"...)
	r := p.post("stripe", body)
	r.is(t, 200, `"status":"accepted"`)
	var first, again answer
	r.read(t, &first)
	r = p.post("stripe", body)
	r.is(t, 200, `"status":"duplicate"`)
	if r.read(t, &again); again.Delivery != first.Delivery || first.Delivery == 0 {
		t.Errorf("the duplicate of %d was called %d", first.Delivery, again.Delivery)
	}
	until(t, "the app has the event", func() bool { return app.times("evt_1") > 0 })
	c := app.given("evt_1")[0]
	if sha256.Sum256(c.Body) != sha256.Sum256(body) {
		t.Errorf("the app got other bytes: %q", c.Body)
	}
	if err := c.signed(); err != nil {
		t.Errorf("the app's signature check: %v", err)
	}
	for name, want := range map[string]string{
		"Idempotency-Key": "stripe:evt_1:app", "Acuse-Delivery": fmt.Sprint(first.Delivery), "Acuse-Source": "stripe",
		"Acuse-Event-Type": "invoice.paid", "Acuse-Attempt": "1", "Content-Type": "application/json; charset=utf-8",
	} {
		if got := c.Header[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}

	t.Run("50 copies at once are one delivery and one call", func(t *testing.T) {
		body := load.Body("evt_50", time.Now())
		kinds := map[string]int{}
		numbers := map[int64]bool{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				r, err := p.ask("POST", p.in("stripe"), body, "Stripe-Signature", load.Sign(body, time.Now()))
				if err != nil || r.Status != 200 {
					t.Errorf("%v %d %s", err, r.Status, r.Body)
					return
				}
				var a answer
				r.read(t, &a)
				mu.Lock()
				defer mu.Unlock()
				kinds[a.Status]++
				numbers[a.Delivery] = true
			})
		}
		wg.Wait()
		if kinds["accepted"] != 1 || kinds["duplicate"] != 49 || len(numbers) != 1 {
			t.Fatalf("answers %v, deliveries %v", kinds, numbers)
		}
		for id := range numbers {
			until(t, "the delivery is delivered", func() bool { return p.delivery(id).State == "delivered" })
			if d := p.delivery(id); len(d.Attempts) != 1 || d.Duplicates != 49 {
				t.Errorf("%d attempts, %d duplicates", len(d.Attempts), d.Duplicates)
			}
		}
		if n := app.times("evt_50"); n != 1 {
			t.Errorf("the app was called %d times", n)
		}
	})

	t.Run("what is refused", func(t *testing.T) {
		before := len(p.deliveries())
		forged := load.Body("evt_forged", time.Now())
		sign := load.Sign(forged, time.Now())
		p.must("POST", p.in("stripe"), append(forged, ' '), "Stripe-Signature", sign).is(t, 401, "urn:acuse:problem:not-verified")
		p.must("POST", p.in("stripe"), forged).is(t, 401, "urn:acuse:problem:not-verified")
		p.must("POST", p.in("stripe"), forged, "Stripe-Signature", load.Sign(forged, time.Now().Add(-time.Hour))).is(t, 401)
		p.must("POST", p.in("nobody"), forged, "Stripe-Signature", sign).is(t, 404, "urn:acuse:problem:no-such-source")
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			r := p.must(method, p.in("stripe"), nil)
			if r.is(t, 405); r.Header.Get("Allow") != "POST" {
				t.Errorf("%s: Allow: %q", method, r.Header.Get("Allow"))
			}
		}
		large := bytes.Repeat([]byte("x"), 2<<20)
		p.post("stripe", large).is(t, 413, "urn:acuse:problem:too-large")

		status, text := p.raw("POST /in/stripe HTTP/1.1\r\nHost: x\r\nStripe-Signature: " + sign +
			fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n", len(forged)+100) + string(forged))
		if status != 400 || !strings.Contains(text, "urn:acuse:problem:cut-short") {
			t.Errorf("a cut body: %d %s", status, text)
		}
		if n := len(p.deliveries()); n != before {
			t.Errorf("%d deliveries were stored", n-before)
		}
	})
}

// raw sends bytes on a connection of their own, ends the sending, and reads the answer.
func (p *place) raw(request string) (status int, body string) {
	p.t.Helper()
	c, err := net.Dial("tcp", p.Public)
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		p.t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		p.t.Fatal(err)
	}
	req := &http.Request{Method: strings.Fields(request)[0]} // HEAD has no body
	res, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestHTTP01 is case http-01: no path near the right one is ever answered by a
// redirect, and what is taken is kept under the path as it was sent.
func TestHTTP01(t *testing.T) {
	t.Parallel()
	p := begin(t, "sources:\n  hook:\n    unsigned: true\n    id: \"{header:X-Id}\"\n    deliver_to: [agent]\ndestinations:\n  agent: {pull: {}}\n")
	for i, c := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/in/hook", 200},
		{"POST", "//in/hook", 200},
		{"POST", "/in/hook/", 200},
		{"POST", "/./in/hook", 200},
		{"POST", "/in/hook?a=1&a=2", 200},
		{"POST", "/in//hook", 200},
		{"POST", "/in/hook/../hook", 200},
		{"POST", "/in/../in/hook", 404},
		{"POST", "/IN/HOOK", 404},
		{"POST", "/in/HOOK", 404},
		{"POST", "/in", 404},
		{"POST", "/", 404},
		{"GET", "/in/hook", 405},
		{"HEAD", "/in/hook", 405},
		{"OPTIONS", "/in/hook", 405},
		{"PUT", "/in/hook", 405},
		{"GET", "/", 404},
		{"GET", "/healthz/", 404},
	} {
		status, text := p.raw(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nX-Id: %d\r\nContent-Length: 2\r\n\r\n{}", c.method, c.path, i))
		if status != c.status {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, status, c.status, text)
		}
	}
	if n := len(p.deliveries()); n != 7 {
		t.Errorf("%d deliveries, want 7", n)
	}
	b := p.login()
	b.open("/deliveries/5").is(t, 200, "POST /in/hook?a=1&amp;a=2")
	b.open("/deliveries/2").is(t, 200, "POST //in/hook")
}
