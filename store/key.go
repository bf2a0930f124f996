package store

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxKey is the longest idempotency key that is sent as it is. Stripe, the strictest
// of the common ones, takes 255 characters.
const MaxKey = 255

// Key joins the parts of an idempotency key: "stripe:evt_1:app". It is the same on every
// machine and after every restart. Parts with other characters than A-Z a-z 0-9 _ . - are
// percent-encoded, so two lists of parts never meet; a key over 255 characters becomes
// "ak_" and the hex SHA-256 of the long form.
func Key(parts ...string) string {
	var b []byte
	for i, p := range parts {
		if i > 0 {
			b = append(b, ':')
		}
		b = AppendKeyPart(b, p)
	}
	return ShortKey(b)
}

// ShortKey is the key of joined, escaped parts.
func ShortKey(b []byte) string {
	if len(b) <= MaxKey {
		return string(b)
	}
	sum := sha256.Sum256(b)
	return "ak_" + hex.EncodeToString(sum[:])
}

// AppendKeyPart appends one part, escaped.
func AppendKeyPart(b []byte, s string) []byte {
	const hexDigits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
			b = append(b, c)
		default:
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return b
}
