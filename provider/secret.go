package provider

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// maxSecrets and maxSignatures bound the work that one request can cause.
const (
	maxSecrets    = 8
	maxSignatures = 16
)

// keyRule says how a configured string becomes the bytes of a key.
type keyRule struct {
	encoding, unlessPrefixed, derive string
	strip                            []string
}

func parseKeyRule(path string, f *secretFile) (keyRule, error) {
	if f == nil {
		return keyRule{encoding: "utf8"}, nil
	}
	r := keyRule{encoding: f.Encoding, unlessPrefixed: f.UnlessPrefixed, derive: deref(f.Derive), strip: f.StripPrefix}
	if r.encoding == "" {
		r.encoding = "utf8"
	}
	for _, e := range []struct{ field, value string }{{"encoding", r.encoding}, {"unless_prefixed", r.unlessPrefixed}} {
		switch e.value {
		case "", "utf8", "base64", "base64url", "hex":
		default:
			return r, at(join(path, e.field), "unknown encoding %q", e.value)
		}
	}
	switch r.derive {
	case "", "sha1", "sha256":
	default:
		return r, at(join(path, "derive"), "unknown digest %q", r.derive)
	}
	return r, nil
}

// key makes the key of a secret. Errors never show the secret.
func (r keyRule) key(secret string) ([]byte, error) {
	enc, prefixed := r.encoding, false
	for _, p := range r.strip {
		if rest, ok := strings.CutPrefix(secret, p); ok {
			secret, prefixed = rest, true
			break
		}
	}
	if !prefixed && r.unlessPrefixed != "" {
		enc = r.unlessPrefixed
	}
	key, err := decodeKey(enc, secret)
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		return nil, errors.New("is empty")
	}
	switch r.derive {
	case "sha1":
		sum := sha1.Sum(key)
		key = sum[:]
	case "sha256":
		sum := sha256.Sum256(key)
		key = sum[:]
	}
	return key, nil
}

// decodeKey is lenient about padding: people copy secrets by hand.
func decodeKey(enc, s string) (key []byte, err error) {
	switch enc {
	case "base64":
		key, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	case "base64url":
		key, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
	case "hex":
		key, err = hex.DecodeString(s)
	default:
		return []byte(s), nil
	}
	if err != nil {
		return nil, errors.New("is not " + enc)
	}
	return key, nil
}
