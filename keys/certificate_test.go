package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"testing"
	"time"

	"acuse/provider"
)

// issue makes a certificate, signed by parent, or by itself when that is nil.
func issue(t *testing.T, name string, ca bool, from, until time.Time, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	if !ca {
		c.DNSNames = []string{name}
	}
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestCertificatesAreTrustedByChainNameAndTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	day := 24 * time.Hour
	root, rootKey, _ := issue(t, "root", true, now.Add(-day), now.Add(9*day), nil, nil)
	mid, midKey, midPEM := issue(t, "mid", true, now.Add(-day), now.Add(9*day), root, rootKey)
	_, _, good := issue(t, "certs.example.test", false, now.Add(-day), now.Add(day), mid, midKey)
	_, _, old := issue(t, "certs.example.test", false, now.Add(-2*day), now.Add(-day), mid, midKey)
	_, _, early := issue(t, "certs.example.test", false, now.Add(day), now.Add(2*day), mid, midKey)
	_, _, other := issue(t, "other.example.test", false, now.Add(-day), now.Add(day), mid, midKey)
	_, _, own := issue(t, "certs.example.test", false, now.Add(-day), now.Add(day), nil, nil)
	stranger, strangerKey, strangerPEM := issue(t, "root", true, now.Add(-day), now.Add(9*day), nil, nil) // calls itself the same
	_, _, strange := issue(t, "certs.example.test", false, now.Add(-day), now.Add(day), stranger, strangerKey)
	leaf, leafKey, leafPEM := issue(t, "leaf.example.test", false, now.Add(-day), now.Add(day), mid, midKey)
	_, _, byLeaf := issue(t, "certs.example.test", false, now.Add(-day), now.Add(day), leaf, leafKey) // a leaf is no authority
	key := "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
	pool := x509.NewCertPool()
	pool.AddCert(root)
	names := []string{"certs.example.test"}
	for name, c := range map[string]struct {
		doc   string
		names []string
		good  bool
	}{
		"good":                           {good + midPEM, names, true},
		"no way to the root":             {good, names, false},
		"out of its time":                {old + midPEM, names, false},
		"not yet in its time":            {early + midPEM, names, false},
		"somebody else's":                {other + midPEM, names, false},
		"signed by itself":               {own, names, false},
		"another root":                   {strange + strangerPEM, names, false},
		"signed by a leaf":               {byLeaf + leafPEM + midPEM, names, false},
		"the leaf is not the first":      {midPEM + good, names, false},
		"words around them":              {"subject=x\n" + good + "issuer=y\n" + midPEM, names, true},
		"a key before them":              {key + good + midPEM, names, false},
		"a key after them":               {good + midPEM + key, names, false},
		"a key, and the host vouches":    {key + own, nil, false},
		"the host vouches":               {own, nil, true},
		"the host vouches, but too old":  {old, nil, false},
		"the host vouches, but too soon": {early, nil, false},
	} {
		k := newKeys(t, steady(c.doc), Options{tlsRoots: &roots{pool}})
		_, err := k.Key(t.Context(), provider.KeyRequest{URL: "https://certs.example.test/c.pem", Kind: provider.Certificate, Names: c.names})
		if c.good != (err == nil) || (!c.good && !errors.Is(err, provider.ErrUntrusted)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two sources that name one address may ask for different things of what is there.
func TestWhatIsTakenForOneSourceIsNotThereforeGoodForAnother(t *testing.T) {
	t.Parallel()
	now := time.Now()
	_, _, own := issue(t, "certs.example.test", false, now.Add(-time.Hour), now.Add(time.Hour), nil, nil)
	k := newKeys(t, steady(own), Options{tlsRoots: &roots{x509.NewCertPool()}})
	r := provider.KeyRequest{URL: "https://certs.example.test/c.pem", Kind: provider.Certificate}
	want(t, k, r, own)
	r.Names = []string{"certs.example.test"}
	if _, err := k.Key(t.Context(), r); !errors.Is(err, provider.ErrUntrusted) {
		t.Errorf("without a chain, since another source asks for none: %v", err)
	}
	h := &host{answer: func(r *http.Request) (int, http.Header, string, error) {
		b, _ := io.ReadAll(r.Body)
		if string(b) == "right" {
			return 200, nil, "A", nil
		}
		return 400, nil, "no such login", nil
	}}
	k = newKeys(t, h, Options{})
	asked := provider.KeyRequest{URL: "https://keys.example.test/get#1", Kind: provider.KeySet, Post: []byte("wrong")}
	if _, err := k.Key(t.Context(), asked); err == nil {
		t.Error("a refusal is a key")
	}
	asked.Post = []byte("right")
	want(t, k, asked, "A")
}

// A certificate that runs out is asked for again and never used beyond its time.
func TestACertificateIsNotUsedBeyondItsTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	_, _, short := issue(t, "c", false, now.Add(-time.Hour), now.Add(10*time.Minute), nil, nil)
	_, _, next := issue(t, "c", false, now.Add(-time.Hour), now.Add(48*time.Hour), nil, nil)
	at := now
	h := steady(short)
	k := newKeys(t, h, Options{Now: func() time.Time { return at }})
	r := provider.KeyRequest{URL: "https://certs.example.test/c.pem", Kind: provider.Certificate}
	want(t, k, r, short)
	at = now.Add(11 * time.Minute)
	if _, err := k.Key(t.Context(), r); !errors.Is(err, provider.ErrUntrusted) {
		t.Errorf("used beyond its time: %v", err)
	}
	h.answer = steady(next).answer
	at = now.Add(12 * time.Minute)
	want(t, k, r, next)
}
