package keys

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"acuse/provider"
)

// roots are those that certificates must chain to; nil: the system's.
type roots struct{ pool *x509.CertPool }

// maxChain is how many certificates of one document are read.
const maxChain = 10

// trust looks at a certificate document: the leaf first, what it chains through after
// it. It must be in its time. With names it must also chain to a public root and be
// issued to one of them; without, that it came over TLS from the provider's own host is what
// speaks for it. ends is when it is over.
func (r *roots) trust(doc []byte, names []string, now time.Time) (ends time.Time, err error) {
	chain, err := readChain(doc)
	if err != nil {
		return ends, err
	}
	leaf := chain[0]
	if now.Before(leaf.NotBefore) || !now.Before(leaf.NotAfter) {
		return ends, fmt.Errorf("%w: out of its time", provider.ErrUntrusted)
	}
	if len(names) == 0 {
		return leaf.NotAfter, nil
	}
	opt := x509.VerifyOptions{CurrentTime: now, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	if r != nil {
		opt.Roots = r.pool
	}
	for _, c := range chain[1:] {
		opt.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(opt); err != nil {
		return ends, fmt.Errorf("%w: it does not chain to a public root", provider.ErrUntrusted)
	}
	for _, name := range names {
		if leaf.VerifyHostname(name) == nil {
			return leaf.NotAfter, nil
		}
	}
	return ends, fmt.Errorf("%w: it is issued to somebody else", provider.ErrUntrusted)
}

// readChain wants certificates and nothing else: what is looked at here must be what the
// key is read from later, and that is the first block.
func readChain(doc []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for len(chain) < maxChain {
		var block *pem.Block
		if block, doc = pem.Decode(doc); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%w: something else stands beside the certificates", provider.ErrUntrusted)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate is damaged")
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return chain, nil
}
