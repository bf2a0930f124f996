package provider

import (
	"strconv"
	"strings"
	"time"
)

// Cause is a machine word: why a request was refused, where a computation shows it.
type Cause string

// The causes. Each but the first was shown.
const (
	CannotTell    Cause = "cannot_tell"    // nothing that was tried makes the request pass
	OtherSecret   Cause = "other_secret"   // it passes with a secret of another source
	TestSecret    Cause = "test_secret"    // likewise, and the event and our own secret say that one is live, the other a test
	SecretText    Cause = "secret_text"    // it passes with a configured secret, written in another way
	BodyChanged   Cause = "body_changed"   // it passes with the body as it was before a change on the way
	TooOld        Cause = "too_old"        // all is good but its time
	TooNew        Cause = "too_new"        // likewise
	HeaderMissing Cause = "header_missing" // what carries the proof is not there
	OtherProvider Cause = "other_provider" // it passes, or has the headers of, another entry of the catalogue
	OtherURL      Cause = "other_url"      // it passes with another public URL
)

// Diagnosis is what could be shown about a refused request. It holds names and numbers,
// never a secret, a token, a signature or a part of a body.
type Diagnosis struct {
	Cause     Cause
	How       string        // which way the secret, the body or the URL differs: "newline", "json_layout", "scheme,port"
	Source    string        // other_secret, test_secret: the source whose secret fits
	Event     string        // "live" or "test", as a proven event says of itself; empty: it does not
	Providers []string      // other_provider: those that fit, by name
	Shown     string        // other_provider: "verified", or only "headers"
	Missing   string        // header_missing: "header:Stripe-Signature"
	Present   []string      // header_missing: headers of this provider that are there
	Skew      time.Duration // how far its signed time lies behind ours, where that is wrong: too_old, too_new, or besides another cause
	Allowed   time.Duration // how far it may
	URL       string        // other_url: the one that fits, without its query
}

// Shows tells whether there is a cause.
func (d Diagnosis) Shows() bool { return d.Cause != "" && d.Cause != CannotTell }

// String is the documented form: "cause=other_secret;source=shop". ParseDetail reads it.
func (d Diagnosis) String() string {
	if d.Cause == "" {
		return ""
	}
	fields := []string{"cause", string(d.Cause), "how", d.How, "source", d.Source, "event", d.Event, "provider", strings.Join(d.Providers, ","),
		"shown", d.Shown, "missing", d.Missing, "present", strings.Join(d.Present, ","), "skew", span(d.Skew), "allowed", span(d.Allowed), "url", d.URL}
	return FormatDetail(fields...)
}

func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}

// FormatDetail writes pairs of names and values as "name=value;name=value"; empty values
// are left out. In a value ";", "=", "%", spaces and control characters are
// percent-encoded.
func FormatDetail(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(';')
		}
		b.WriteString(pairs[i])
		b.WriteByte('=')
		for j := range len(pairs[i+1]) {
			c := pairs[i+1][j]
			if c <= ' ' || c == 0x7f || c == ';' || c == '=' || c == '%' {
				const hex = "0123456789ABCDEF"
				b.WriteByte('%')
				b.WriteByte(hex[c>>4])
				c = hex[c&15]
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// ParseDetail reads FormatDetail's form. A part without a name is "at": so places were
// written once.
func ParseDetail(s string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(s, ";") {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case ok && name != "":
			out[name] = unescape(value)
		case !ok && part != "":
			out["at"] = part
		}
	}
	return out
}

// unescape undoes percent-encoding; what is none stays.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
