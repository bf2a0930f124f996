package keys

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"net/http"
	"testing"
	"time"

	"acuse/provider"
)

// PayPal signs with a certificate that the request names: whose it is decides a chain up to
// a public root and its name, whatever the host that gives it.
func TestP5PayPalIsBelievedByTheChainOfItsCertificate(t *testing.T) {
	t.Parallel()
	cat, err := provider.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	p, _ := cat.Get("paypal")
	const name = "messageverificationcerts.paypal.com"
	now, day := time.Now(), 24*time.Hour
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	root, rootKey, _ := issue(t, "root", true, now.Add(-day), now.Add(9*day), nil, nil)
	mid, midKey, midPEM := issue(t, "mid", true, now.Add(-day), now.Add(9*day), root, rootKey)
	stranger, strangerKey, strangerPEM := issue(t, "root", true, now.Add(-day), now.Add(9*day), nil, nil)
	pool := x509.NewCertPool()
	pool.AddCert(root)
	leaf := func(name string, until time.Time, parent *x509.Certificate, by crypto.Signer) string {
		c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
			NotBefore: now.Add(-9 * day), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature}
		if parent == nil {
			parent, by = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	bare := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	good := leaf(name, now.Add(day), mid, midKey) + midPEM
	for what, c := range map[string]struct {
		doc    string
		status int
		want   provider.Reason // empty: it passes, or cannot be judged
		noKey  bool
	}{
		"root, intermediate, leaf":       {good, 200, "", false},
		"the intermediate is missing":    {leaf(name, now.Add(day), mid, midKey), 200, provider.KeyUntrusted, false},
		"expired":                        {leaf(name, now.Add(-day), mid, midKey) + midPEM, 200, provider.KeyUntrusted, false},
		"issued to somebody else":        {leaf("www.example.test", now.Add(day), mid, midKey) + midPEM, 200, provider.KeyUntrusted, false},
		"signed by itself":               {leaf(name, now.Add(day), nil, nil), 200, provider.KeyUntrusted, false},
		"another root of the same name":  {leaf(name, now.Add(day), stranger, strangerKey) + strangerPEM, 200, provider.KeyUntrusted, false},
		"a bare key":                     {bare, 200, provider.KeyUntrusted, false},
		"a bare key, then a good chain":  {bare + good, 200, provider.KeyUntrusted, false},
		"no certificate but a page":      {"<html>", 200, "", true},
		"the host does not answer":       {"", 503, "", true},
		"the certificate is not there":   {"", 404, "", true},
		"the host sends to another host": {"", 302, "", true},
	} {
		h := &host{answer: func(*http.Request) (int, http.Header, string, error) {
			return c.status, http.Header{"Location": {"https://www.example.test/"}}, c.doc, nil
		}}
		k := newKeys(t, h, Options{tlsRoots: &roots{pool}})
		checker, err := p.Compile(provider.Settings{Keys: k, Params: map[string]string{"webhook_id": "WH-1"}})
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(`{"id":"WH-EVENT-1","event_type":"PAYMENT.CAPTURE.COMPLETED"}`)
		sum := sha256.Sum256(fmt.Appendf(nil, "t-1|%s|WH-1|%d", now.Format(time.RFC3339), crc32.ChecksumIEEE(body)))
		sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{"Content-Type": {"application/json"}}
		for name, value := range map[string]string{"PAYPAL-TRANSMISSION-ID": "t-1", "PAYPAL-TRANSMISSION-TIME": now.Format(time.RFC3339),
			"PAYPAL-TRANSMISSION-SIG": base64.StdEncoding.EncodeToString(sig), "PAYPAL-CERT-URL": "https://api.paypal.com/v1/notifications/certs/CERT-1"} {
			header.Set(name, value)
		}
		res, err := checker.Receive(&provider.Request{Method: "POST", Target: "/in/paypal", Header: header, Body: body, Context: t.Context()}, now)
		var refusal *provider.Refusal
		var noKey *provider.NoKey
		switch {
		case c.noKey:
			if !errors.As(err, &noKey) {
				t.Errorf("%s: %v", what, err)
			}
		case c.want != "":
			if !errors.As(err, &refusal) || refusal.Reason != c.want {
				t.Errorf("%s: %v, want %s", what, err, c.want)
			}
		case err != nil || len(res.Events) != 1 || res.Events[0].ID != "WH-EVENT-1":
			t.Errorf("%s: %v %+v", what, err, res)
		}
	}
}
