package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// publicRule says how a configured string becomes a public key.
type publicRule struct {
	encoding string
	strip    []string
}

func parsePublicRule(path string, f *secretFile, usual string) (publicRule, error) {
	if f == nil {
		return publicRule{encoding: usual}, nil
	}
	r := publicRule{encoding: f.Encoding, strip: f.StripPrefix}
	if r.encoding == "" {
		r.encoding = usual
	}
	if !slices.Contains([]string{"pem", "spki-der-base64", "raw-hex", "raw-base64", "jwk"}, r.encoding) {
		return r, at(join(path, "encoding"), "unknown encoding %q of a public key", r.encoding)
	}
	if deref(f.Derive) != "" || f.UnlessPrefixed != "" {
		return r, at(path, "a public key is read as it is")
	}
	return r, nil
}

// read makes the key. Errors never show the text: people paste private keys too.
func (r publicRule) read(text string) (crypto.PublicKey, error) {
	text = strings.TrimSpace(text)
	for _, p := range r.strip {
		if rest, ok := strings.CutPrefix(text, p); ok {
			text = rest
			break
		}
	}
	if strings.HasPrefix(text, "-----BEGIN ") {
		return readPEM([]byte(text))
	}
	var raw []byte
	var err error
	switch r.encoding {
	case "raw-hex":
		raw, err = hex.DecodeString(text)
	case "jwk":
		var k jose.JSONWebKey
		if err := k.UnmarshalJSON([]byte(text)); err != nil || !k.Valid() || !k.IsPublic() {
			return nil, errors.New("is no public JWK")
		}
		return k.Key, nil
	case "pem":
		return nil, errors.New("is not PEM: it begins with -----BEGIN PUBLIC KEY-----")
	default:
		raw, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	}
	if err != nil {
		return nil, errors.New("is not " + r.encoding)
	}
	if r.encoding == "spki-der-base64" {
		return readSPKI(raw)
	}
	if len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("is not 32 bytes long")
	}
	return ed25519.PublicKey(raw), nil
}

// write is the inverse of read.
func (r publicRule) write(key crypto.PublicKey) (string, error) {
	prefix := ""
	if len(r.strip) > 0 {
		prefix = r.strip[0]
	}
	if raw, ok := key.(ed25519.PublicKey); ok && r.encoding == "raw-hex" {
		return prefix + hex.EncodeToString(raw), nil
	} else if ok && r.encoding == "raw-base64" {
		return prefix + base64.StdEncoding.EncodeToString(raw), nil
	}
	if r.encoding == "jwk" {
		b, err := jose.JSONWebKey{Key: key}.MarshalJSON()
		return string(b), err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	if r.encoding == "spki-der-base64" {
		return prefix + base64.StdEncoding.EncodeToString(der), nil
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}

// readPEM reads the first key or certificate of a PEM text.
func readPEM(text []byte) (crypto.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("is not PEM")
	}
	switch block.Type {
	case "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("is a damaged certificate")
		}
		return cert.PublicKey, nil
	case "RSA PUBLIC KEY":
		key, err := x509.ParsePKCS1PublicKey(block.Bytes)
		if err != nil {
			return nil, errors.New("is a damaged key")
		}
		return key, nil
	case "PUBLIC KEY":
		return readSPKI(block.Bytes)
	}
	return nil, errors.New("holds no public key")
}

func readSPKI(der []byte) (crypto.PublicKey, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("is no public key")
	}
	return key, nil
}

// fitRSA wants at least 2048 bits: what is shorter can be broken or is a mistake.
func fitRSA(key crypto.PublicKey) (*rsa.PublicKey, error) {
	k, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("is no RSA key")
	}
	if k.N.BitLen() < 2048 || k.N.BitLen() > 8192 {
		return nil, errors.New("is no RSA key of 2048 to 8192 bits")
	}
	return k, nil
}

func fitECDSA(key crypto.PublicKey) (*ecdsa.PublicKey, error) {
	k, ok := key.(*ecdsa.PublicKey)
	if !ok || k.Curve.Params().Name != "P-256" {
		return nil, errors.New("is no P-256 key")
	}
	return k, nil
}
