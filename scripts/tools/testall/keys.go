package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
)

// publicKey is a new public key as a provider would print it. Nobody holds the private
// one: acuse tests with a pair of its own.
func publicKey(kind, encoding string, prefixes []string) (string, error) {
	var pub any
	switch kind {
	case "ed25519":
		p, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return "", err
		}
		pub = p
	case "ecdsa":
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return "", err
		}
		pub = &k.PublicKey
	case "rsa":
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return "", err
		}
		pub = &k.PublicKey
	}
	prefix := ""
	if len(prefixes) > 0 {
		prefix = prefixes[0]
	}
	if raw, ok := pub.(ed25519.PublicKey); ok {
		switch encoding {
		case "raw-hex":
			return prefix + hex.EncodeToString(raw), nil
		case "raw-base64":
			return prefix + base64.StdEncoding.EncodeToString(raw), nil
		}
	}
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return "", err
	}
	switch encoding {
	case "spki-der-base64":
		return prefix + base64.StdEncoding.EncodeToString(der), nil
	case "pem":
		return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
	}
	return "", fmt.Errorf("no %s key in the encoding %q", kind, encoding)
}
