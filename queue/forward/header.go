package forward

import (
	"encoding/base64"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"acuse/store"
)

// dropped are the inbound headers that do not go on: those of the connection, those
// that speak of the way in, and those that only acuse may set towards an app.
var dropped = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Expect": true, "Host": true, "Content-Length": true,
	"Cookie": true, "Forwarded": true, "Idempotency-Key": true,
	"Accept-Encoding": true, // speaks of an answer that only acuse reads
}

// Passed are the inbound headers that go on to a destination. It may change in.
func Passed(in http.Header) http.Header {
	for _, v := range in["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			delete(in, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	out := make(http.Header, len(in)+10)
	for name, values := range in {
		c := textproto.CanonicalMIMEHeaderKey(name)
		if dropped[c] || strings.HasPrefix(c, "X-Forwarded-") || strings.HasPrefix(c, "Acuse-") {
			continue
		}
		out[c] = values
	}
	if key := in.Get("Idempotency-Key"); key != "" {
		out.Set("Acuse-Original-Idempotency-Key", Escape(key))
	}
	return out
}

// header makes the outgoing headers of in, which it may change.
func (h *HTTP) header(in http.Header, l store.Lease) http.Header {
	out := Passed(in)
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = []string{""} // net/http would name itself
	}
	out.Set("Accept-Encoding", "identity")
	if h.opt.IdempotencyHeader != "none" {
		out.Set(h.opt.IdempotencyHeader, Escape(l.Key))
	}
	if h.basic != "" {
		out.Set("Authorization", h.basic)
	}
	d := l.Delivery
	set := func(name, value string) {
		if value != "" {
			out.Set(name, Escape(value))
		}
	}
	set("Acuse-Delivery", strconv.FormatInt(d.ID, 10))
	set("Acuse-Source", d.Source)
	set("Acuse-Event-Id", d.EventID)
	set("Acuse-Event-Type", d.Type)
	set("Acuse-Attempt", strconv.Itoa(l.Attempt))
	set("Acuse-Received-At", d.ReceivedAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	if l.Resend {
		set("Acuse-Resend", "true")
	}
	if d.Test {
		set("Acuse-Test", "true")
	}
	return out
}

// Escape makes a header value of any text: bytes outside printable ASCII become
// %XX, as do spaces at either end, which HTTP would cut off. All else stays.
func Escape(s string) string {
	const hex = "0123456789ABCDEF"
	clean := func(i int) bool {
		return s[i] > 0x20 && s[i] < 0x7f || s[i] == 0x20 && i > 0 && i < len(s)-1
	}
	n := 0
	for n < len(s) && clean(n) {
		n++
	}
	if n == len(s) {
		return s
	}
	b := append(make([]byte, 0, len(s)+16), s[:n]...)
	for i := n; i < len(s); i++ {
		if clean(i) {
			b = append(b, s[i])
		} else {
			b = append(b, '%', hex[s[i]>>4], hex[s[i]&15])
		}
	}
	return string(b)
}

func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// retryAfter reads a Retry-After header against now. What is negative, in the past
// or unreadable is 0: none.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	digits := strings.Trim(value, "0123456789") == ""
	if digits {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > maxRetryAfter {
			seconds = maxRetryAfter // too many digits to matter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil || !at.After(now) {
		return 0
	}
	return min(at.Sub(now), maxRetryAfter*time.Second)
}

// maxRetryAfter keeps durations far from overflow: a year, in seconds.
const maxRetryAfter = 365 * 24 * 3600
