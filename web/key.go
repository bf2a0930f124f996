package web

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxKey is the longest idempotency key that is sent as it is. Stripe, the strictest
// of the common ones, takes 255 characters.
const maxKey = 255

// Key is the idempotency key of a job: "stripe:evt_1:app". It is the same on every
// machine, for every attempt, every resend and after every restart. Parts with
// other characters than A-Z a-z 0-9 _ . - are percent-encoded, so two triples never
// meet; a key over 255 characters becomes "ak_" and the hex SHA-256 of the long form.
//
// source and destination are the key names: those stay when the config renames.
func Key(source, eventID, destination string) string {
	return key(escape(source)+":", eventID, ":"+escape(destination))
}

// key is Key over parts that are escaped already but for the event id, which is the
// only one that changes from request to request.
func key(prefix, eventID, suffix string) string {
	b := make([]byte, 0, len(prefix)+len(eventID)+len(suffix)+16)
	b = append(b, prefix...)
	b = appendEscaped(b, eventID)
	b = append(b, suffix...)
	if len(b) <= maxKey {
		return string(b)
	}
	sum := sha256.Sum256(b)
	return "ak_" + hex.EncodeToString(sum[:])
}

func escape(s string) string { return string(appendEscaped(nil, s)) }

func appendEscaped(b []byte, s string) []byte {
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
