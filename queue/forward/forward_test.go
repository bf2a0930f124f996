package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"acuse/provider"
	"acuse/store"
)

var now = time.Unix(1767225600, 0).UTC() // 2026-01-01T00:00:00Z

// lease is the right to deliver body with headers.
func lease(body string, h http.Header) store.Lease {
	return store.Lease{
		Job: 7, Token: 3, Destination: "app", Key: "stripe:evt_1:app", Attempt: 2, Spent: 2,
		Delivery: store.DeliveryHead{
			ID: 10482, Source: "stripe", EventID: "evt_1", Type: "invoice.paid", Part: -1, Slot: 1,
			ReceivedAt: now.Add(-90 * time.Second).Add(7 * time.Millisecond),
		},
		Payload: store.Payload{Method: "POST", Target: "/in/stripe?x=1", Header: store.EncodeHeader(h), Body: []byte(body), Part: -1},
	}
}

// seen is one request as an app saw it.
type seen struct {
	method, uri, host, body string
	header                  http.Header
	length                  int64
}

// app is a server that keeps what it saw and answers with answer.
func app(t *testing.T, answer http.HandlerFunc) (url string, got <-chan seen) {
	ch := make(chan seen, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		ch <- seen{r.Method, r.RequestURI, r.Host, string(b), r.Header, r.ContentLength}
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, ch
}

func destination(t *testing.T, o Options) *HTTP {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return now }
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.opt.Client.CloseIdleConnections)
	return h
}

// signer signs by putting the time into X-Signature and the query parameter sig.
type signer struct {
	cannot bool
	blind  bool // the provider puts nothing into the query
	err    error
	url    string // what Sign was given
	slot   int
}

func (s *signer) CanSign() bool    { return !s.cannot }
func (s *signer) ReadsQuery() bool { return !s.blind }
func (s *signer) Sign(r *provider.Request, slot int, at time.Time) error {
	s.url, s.slot = r.URL, slot
	r.Header.Set("X-Signature", "fresh "+at.Format(time.RFC3339))
	r.Target = "/in/stripe?x=1&sig=fresh"
	return s.err
}
func (s *signer) Item(body []byte, part int) ([]byte, error) {
	items := strings.Split(string(body), ",")
	if part >= len(items) {
		return nil, errors.New("SECRET-BODY has no such item")
	}
	return []byte(items[part]), nil
}

func signers(s Signer) func(string) (Signer, string) {
	return func(string) (Signer, string) { return s, "https://hooks.example.org/in/stripe" }
}

func TestRequestAsTheAppSeesIt(t *testing.T) {
	t.Parallel()
	url, got := app(t, nil)
	h := destination(t, Options{URL: url + "/hook?own=1", Headers: map[string]string{"X-Own": "mine", "User-Agent": "acuse-test", "Host": "app.internal"}})
	l := lease("\x00raw\xff bytes", http.Header{
		"Content-Type": {"application/json"}, "X-Two": {"a", "b"}, "User-Agent": {"Stripe/1.0"}, "X-Own": {"theirs"},
		"Connection": {"close, X-Hop"}, "X-Hop": {"1"}, "Te": {"trailers"}, "Keep-Alive": {"1"}, "Upgrade": {"h2c"}, "Expect": {"100-continue"},
		"Cookie": {"s=1"}, "Forwarded": {"for=1.2.3.4"}, "X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Proto": {"https"},
		"Acuse-Delivery": {"666"}, "Acuse-Anything": {"x"}, "Idempotency-Key": {"theirs é"}, "Accept-Encoding": {"gzip"},
		"Content-Length": {"99"}, "Authorization": {"Basic c2VuZGVy"},
	})
	l.Delivery.Type = "factura.año"
	l.Resend, l.Delivery.Test = true, true
	if res := h.Send(t.Context(), l); res.Outcome != store.Succeeded || res.Status != 200 || res.Error != "" {
		t.Fatalf("got %+v", res)
	}
	s := <-got
	want := http.Header{
		"Content-Type": {"application/json"}, "X-Two": {"a", "b"}, "User-Agent": {"acuse-test"}, "X-Own": {"mine"},
		"Authorization": {"Basic c2VuZGVy"}, "Accept-Encoding": {"identity"}, "Content-Length": {"11"},
		"Idempotency-Key": {"stripe:evt_1:app"}, "Acuse-Original-Idempotency-Key": {"theirs %C3%A9"},
		"Acuse-Delivery": {"10482"}, "Acuse-Source": {"stripe"}, "Acuse-Event-Id": {"evt_1"}, "Acuse-Event-Type": {"factura.a%C3%B1o"},
		"Acuse-Attempt": {"2"}, "Acuse-Received-At": {"2025-12-31T23:58:30.007Z"}, "Acuse-Resend": {"true"}, "Acuse-Test": {"true"},
	}
	if !reflect.DeepEqual(s.header, want) {
		t.Errorf("headers\n got %v\nwant %v", s.header, want)
	}
	if s.method != "POST" || s.uri != "/hook?own=1" || s.body != "\x00raw\xff bytes" || s.host != "app.internal" {
		t.Errorf("got %+v", s)
	}
}

func TestMethodKeyNameAndUserinfo(t *testing.T) {
	t.Parallel()
	url, got := app(t, nil)
	u := strings.Replace(url, "http://", "http://user:pass@", 1)
	h := destination(t, Options{URL: u, Method: "put", IdempotencyHeader: "X-Request-Id"})
	h.Send(t.Context(), lease("", http.Header{"Authorization": {"theirs"}}))
	s := <-got
	if s.method != "PUT" || s.header.Get("X-Request-Id") != "stripe:evt_1:app" || s.header["Idempotency-Key"] != nil {
		t.Errorf("got %+v", s)
	}
	if s.header.Get("Authorization") != "Basic dXNlcjpwYXNz" || s.header["User-Agent"] != nil || s.header["Acuse-Resend"] != nil || s.header["Acuse-Test"] != nil {
		t.Errorf("headers %v", s.header)
	}
	if s.length != 0 || s.header.Get("Content-Length") != "0" {
		t.Errorf("an empty body was sent with length %d, %q", s.length, s.header.Get("Content-Length"))
	}
	none := destination(t, Options{URL: url, IdempotencyHeader: "none"})
	none.Send(t.Context(), lease("x", nil))
	if s := <-got; s.header["Idempotency-Key"] != nil {
		t.Errorf("a key was sent: %v", s.header)
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	original := http.Header{"X-Signature": {"as it came"}, "Webhook-Id": {"theirs"}}
	const secret = "whsec_RkFLRSBzdyBvbmUuLi4uLi4uLi4uLi4uLi4uLi4uLi4="
	for _, c := range []struct {
		name      string
		kind      string
		signer    Signer
		override  bool
		signature string
		webhookID string
		uri       string
	}{
		{"fresh signs again and passes the signature's own parameter", "", &signer{}, false, "fresh 2026-01-01T00:00:00Z", "theirs", "/?x=1&sig=fresh"},
		{"fresh falls back to passthrough where acuse cannot sign", "fresh", &signer{cannot: true}, false, "as it came", "theirs", "/?x=1&sig=old"},
		{"fresh falls back to passthrough for a source that is gone", "fresh", nil, false, "as it came", "theirs", "/"},
		{"the query of a provider that puts nothing into it stays behind", "", &signer{blind: true}, false, "fresh 2026-01-01T00:00:00Z", "theirs", "/"},
		{"passthrough leaves it", "passthrough", &signer{}, false, "as it came", "theirs", "/?x=1&sig=old"},
		{"a resend may ask for passthrough", "fresh", &signer{}, true, "as it came", "theirs", "/?x=1&sig=old"},
		{"standard adds its headers and removes nothing else", "standard", &signer{}, false, "as it came", "stripe:evt_1:app", "/?x=1&sig=old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url, got := app(t, nil)
			o := Options{URL: url, Signature: c.kind, Signers: signers(c.signer)}
			if c.kind == Standard {
				o.Secret = secret
			}
			l := lease("body", original)
			l.Payload.Target = "/in/stripe?x=1&sig=old"
			l.Passthrough = c.override
			if res := destination(t, o).Send(t.Context(), l); res.Outcome != store.Succeeded {
				t.Fatalf("got %+v", res)
			}
			s := <-got
			if s.header.Get("X-Signature") != c.signature || s.header.Get("Webhook-Id") != c.webhookID || s.uri != c.uri {
				t.Fatalf("signature %q, webhook-id %q, uri %q", s.header.Get("X-Signature"), s.header.Get("Webhook-Id"), s.uri)
			}
		})
	}
}

func TestFreshSignsThePublicURLWithTheSlotThatVerified(t *testing.T) {
	t.Parallel()
	url, _ := app(t, nil)
	s := &signer{}
	l := lease("body", nil)
	l.Delivery.Slot = 2
	destination(t, Options{URL: url, Signers: signers(s)}).Send(t.Context(), l)
	if s.url != "https://hooks.example.org/in/stripe?x=1" || s.slot != 2 {
		t.Fatalf("signed %q with slot %d", s.url, s.slot)
	}
}

func TestTheDestinationsOwnQueryWins(t *testing.T) {
	t.Parallel()
	url, got := app(t, nil)
	l := lease("body", nil)
	l.Payload.Target = "/in/q?token=theirs&id=a%20b&k%65y=theirs"
	destination(t, Options{URL: url + "/hook?key=own&token=own", Signature: Passthrough, Signers: signers(&signer{})}).Send(t.Context(), l)
	if s := <-got; s.uri != "/hook?key=own&token=own&id=a%20b" {
		t.Fatalf("uri %q", s.uri)
	}
}

func TestStandardSignatureAgainstTheReferenceLibrary(t *testing.T) {
	t.Parallel()
	secret, err := standardSecret("whsec_RkFLRSBzdyBvbmUuLi4uLi4uLi4uLi4uLi4uLi4uLi4=")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	body := `{"type":"contact.created","timestamp":"2026-01-01T00:00:00Z","data":{"id":"c_1f81eb52","name":"Ada"}}`
	signStandard(h, secret, "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", []byte(body), now)
	want := http.Header{
		"Webhook-Id": {"msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"}, "Webhook-Timestamp": {"1767225600"},
		"Webhook-Signature": {"v1,WI7vRORSErwFQHTuTrX+s11dFd7uNbBQJD703OaUj0I="},
	}
	if !reflect.DeepEqual(h, want) {
		t.Fatalf("got %v", h)
	}
	signStandard(h, secret, "s:a.b:app", nil, now)
	if id := h.Get("Webhook-Id"); id != "s:a%2Eb:app" {
		t.Fatalf("id %q has a full stop", id)
	}
}

func TestBatchItem(t *testing.T) {
	t.Parallel()
	url, got := app(t, nil)
	l := lease("zero,one,two", nil)
	l.Payload.Part = 1
	h := destination(t, Options{URL: url, Signature: Passthrough, Signers: signers(&signer{})})
	if res := h.Send(t.Context(), l); res.Outcome != store.Succeeded {
		t.Fatalf("got %+v", res)
	}
	if s := <-got; s.body != "one" || s.length != 3 {
		t.Fatalf("got %q, length %d", s.body, s.length)
	}
	l.Payload.Part = 9
	if res := h.Send(t.Context(), l); res.Class != "compose" || strings.Contains(res.Error, "SECRET") {
		t.Fatalf("got %+v", res)
	}
	if res := destination(t, Options{URL: url}).Send(t.Context(), l); res.Class != "compose" || res.Outcome != store.Failed {
		t.Fatalf("source gone: got %+v", res)
	}
}

func TestSigningThatFailsSendsNothing(t *testing.T) {
	t.Parallel()
	url, got := app(t, nil)
	h := destination(t, Options{URL: url, Signers: signers(&signer{err: errors.New("SECRET")})})
	if res := h.Send(t.Context(), lease("x", nil)); res.Class != "compose" || strings.Contains(res.Error, "SECRET") {
		t.Fatalf("got %+v", res)
	}
	if len(got) != 0 {
		t.Fatal("a request was sent")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{}, {URL: "ftp://SECRET@x/"}, {URL: "http://"}, {URL: "http://x:SECRET/"}, {URL: "http://x", Signature: "SECRET"},
		{URL: "http://x", Signature: Standard}, {URL: "http://x", Signature: Standard, Secret: "whsec_SECRET"},
		{URL: "http://x", Signature: Standard, Secret: "c2hvcnQ="},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%+v: got %v", o, err)
		}
	}
}

func TestStoppedByItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url, _ := app(t, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	res := destination(t, Options{URL: url}).Send(ctx, lease("x", nil))
	if res.Outcome != store.Failed || res.Class != "cancelled" || !res.Maybe {
		t.Fatalf("got %+v", res)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("evt_1")
	f.Add(" año\r\nX: y\x7f ")
	f.Fuzz(func(t *testing.T, s string) {
		e := Escape(s)
		for i := range len(e) {
			if e[i] < 0x20 || e[i] > 0x7e {
				t.Fatalf("%q became %q", s, e)
			}
		}
		if strings.TrimSpace(e) != e {
			t.Fatalf("%q became %q", s, e)
		}
	})
}
