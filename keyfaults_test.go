package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"acuse/dial"
	"acuse/keys"
	"acuse/provider"
	"acuse/store"
	"acuse/web"
)

// toServer sends every request to one address, whatever host it names: the name still
// counts for TLS.
type toServer struct {
	next http.RoundTripper
	addr string
}

func (s toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = s.addr
	return s.next.RoundTrip(r)
}

// tlsServer is a provider's host with a certificate of a CA of its own, and the guarded client
// that trusts that CA.
func tlsServer(t *testing.T, name string, until time.Time, h http.HandlerFunc) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	client := dial.Client(dial.ClientOptions{TLS: &tls.Config{RootCAs: pool, ServerName: "www.googleapis.com"}, HeaderTimeout: time.Second})
	client.Transport = toServer{client.Transport, s.Listener.Addr().String()}
	return client
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// noInbox takes everything and keeps nothing.
type noInbox struct{}

func (noInbox) Accept(context.Context, store.Arrival) ([]store.Outcome, error) {
	return []store.Outcome{{Kind: store.Accepted, Delivery: 1}}, nil
}

// pubsub is a source whose key set comes through a client, and a push signed by the
// key that its rehearsal would publish.
func pubsub(t *testing.T, client *http.Client) (*web.Edge, *provider.Checker) {
	t.Helper()
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	k := keys.New(keys.Options{Client: client, Log: log})
	t.Cleanup(k.Close)
	p, _ := cat.Get("google-pubsub-push")
	c, err := p.Compile(provider.Settings{Keys: k, Params: map[string]string{"audience": "https://hooks.example.test/in/g", "service_account": "push@example.test"}})
	if err != nil {
		t.Fatal(err)
	}
	edge := web.NewEdge(web.EdgeOptions{Inbox: noInbox{}, Log: log})
	edge.SetSources([]web.Source{{Name: "g", Provider: p.Name, Checker: c}})
	t.Cleanup(edge.Close)
	return edge, c
}

func push(t *testing.T, edge *web.Edge, signer *provider.Checker) *httptest.ResponseRecorder {
	t.Helper()
	const body = `{"message":{"messageId":"1"},"subscription":"s"}`
	pr := &provider.Request{Method: "POST", Target: "/in/g", Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
	if err := signer.Sign(pr, 1, time.Now()); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/in/g", strings.NewReader(body))
	r.Header = pr.Header
	w := httptest.NewRecorder()
	edge.ServeHTTP(w, r)
	return w
}

func rehearse(t *testing.T, c *provider.Checker) *provider.Checker {
	t.Helper()
	r, err := c.Rehearsal()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What cannot be judged is asked to come again: never let in, never refused.
func TestP5FaultsOfAKeyHostOverTLS(t *testing.T) {
	t.Parallel()
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	var signer *provider.Checker
	set := func(w http.ResponseWriter) { _, _ = io.WriteString(w, signer.TestKeys()[0]) }
	for _, c := range []struct {
		name, host string
		until      time.Time
		answer     http.HandlerFunc
		status     int
	}{
		{"good", "www.googleapis.com", soon, func(w http.ResponseWriter, _ *http.Request) { set(w) }, 200},
		{"slow", "www.googleapis.com", soon, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 503},
		{"404", "www.googleapis.com", soon, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, 503},
		{"huge", "www.googleapis.com", soon, func(w http.ResponseWriter, _ *http.Request) {
			set(w)
			_, _ = io.WriteString(w, strings.Repeat(" ", 300<<10))
		}, 503},
		{"redirect", "www.googleapis.com", soon, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/moved" {
				set(w)
				return
			}
			http.Redirect(w, r, "/moved", http.StatusFound)
		}, 503},
		{"a page in place of keys", "www.googleapis.com", soon, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, 503},
		{"expired certificate", "www.googleapis.com", past, func(w http.ResponseWriter, _ *http.Request) { set(w) }, 503},
		{"certificate of another host", "www.example.test", soon, func(w http.ResponseWriter, _ *http.Request) { set(w) }, 503},
		{"no such key", "www.googleapis.com", soon, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"keys":[]}`) }, 401},
	} {
		edge, checker := pubsub(t, tlsServer(t, c.host, c.until, c.answer))
		signer = rehearse(t, checker)
		w := push(t, edge, signer)
		if w.Code != c.status || (w.Code == 503) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%s: %d %s, Retry-After %q", c.name, w.Code, w.Body, w.Header().Get("Retry-After"))
		}
		if w.Code == 503 && !strings.Contains(w.Body.String(), "key-unavailable") {
			t.Errorf("%s: %s", c.name, w.Body)
		}
	}
}

// A key that was rotated is found at the first event that it signed.
func TestARotatedKeyIsFetched(t *testing.T) {
	t.Parallel()
	var doc atomic.Pointer[string]
	var asked atomic.Int32
	edge, checker := pubsub(t, tlsServer(t, "www.googleapis.com", time.Now().Add(time.Hour), func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, *doc.Load())
	}))
	signer := rehearse(t, checker)
	old := strings.Replace(signer.TestKeys()[0], `"acuse-test"`, `"the-old-one"`, 1)
	doc.Store(&old)
	if w := push(t, edge, signer); w.Code != 401 {
		t.Errorf("a key id that nobody published: %d", w.Code)
	}
	if asked.Load() != 1 { // the set was read this very minute
		t.Errorf("asked %d times", asked.Load())
	}
	fresh := signer.TestKeys()[0]
	doc.Store(&fresh)
	edge, checker = pubsub(t, tlsServer(t, "www.googleapis.com", time.Now().Add(time.Hour), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, *doc.Load())
	}))
	if w := push(t, edge, signer); w.Code != 200 {
		t.Errorf("the rotated key: %d %s", w.Code, w.Body)
	}
	if w := push(t, edge, rehearse(t, checker)); w.Code != 401 {
		t.Errorf("another key under the same id: %d", w.Code)
	}
}

// Whose address is not on the list is not even asked.
func TestP5AKeyFromAStrangeHostIsNotFetched(t *testing.T) {
	t.Parallel()
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { asked = true; return nil, io.EOF })}
	k := keys.New(keys.Options{Client: client, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(k.Close)
	params := map[string]map[string]string{"paypal": {"webhook_id": "w"}, "aws-sns": {"topic_arn": "a"}}
	for name, url := range map[string]string{"paypal": "https://api.paypal.com.example.test/c.pem", "aws-sns": "https://sns.a.b.amazonaws.com/c.pem"} {
		p, _ := cat.Get(name)
		c, err := p.Compile(provider.Settings{Keys: k, Params: params[name]})
		if err != nil {
			t.Fatal(err)
		}
		edge := web.NewEdge(web.EdgeOptions{Inbox: noInbox{}, Log: slog.New(slog.DiscardHandler)})
		edge.SetSources([]web.Source{{Name: "x", Checker: c}})
		t.Cleanup(edge.Close)
		body, _ := json.Marshal(map[string]string{"Type": "Notification", "SignatureVersion": "1", "SigningCertURL": url, "Signature": "QUFB", "Message": "m",
			"MessageId": "1", "Timestamp": time.Now().Format(time.RFC3339), "TopicArn": "a"})
		r := httptest.NewRequest("POST", "/in/x", strings.NewReader(string(body)))
		for k, v := range map[string]string{"PAYPAL-TRANSMISSION-ID": "1", "PAYPAL-TRANSMISSION-TIME": "t", "PAYPAL-TRANSMISSION-SIG": "QUFB", "PAYPAL-CERT-URL": url} {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		edge.ServeHTTP(w, r)
		if w.Code != 401 || asked {
			t.Errorf("%s: %d, asked %v", name, w.Code, asked)
		}
	}
}
