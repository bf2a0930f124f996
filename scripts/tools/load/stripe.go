// Package load is what the crash and bench tools share: a lean HTTP/1.1 client, so
// that the load costs little of the two cores it shares with the server, and
// Stripe-signed events made with the standard library alone, so that acuse is
// judged by other code than its own.
package load

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Secret is the signing secret of every tool's source.
const Secret = "whsec_load_0123456789abcdef"

// EventID is a time-ordered id like Stripe's: 13 hex digits of n, then a tag of
// the run.
func EventID(run string, n int64) string { return fmt.Sprintf("evt_%013x%s", n, run) }

// Body is a Stripe event of about 1.5 KB with the given id.
func Body(id string, at time.Time) []byte {
	return fmt.Appendf(nil, `{"id":"%s","object":"event","api_version":"2026-10-28","created":%d,"livemode":true,`+
		`"pending_webhooks":1,"type":"invoice.paid","request":{"id":null,"idempotency_key":null},"data":{"object":{`+
		`"id":"in_%s","object":"invoice","amount_due":2500,"amount_paid":2500,"currency":"usd","customer":"cus_load",`+
		`"status":"paid","lines":"%s"}}}`, id, at.Unix(), id[4:], filler)
}

var filler = strings.Repeat("acuse de recibo ", 72)

// headers are those of a request of Stripe behind a proxy, about 600 bytes with host,
// signature and length.
var headers = [][2]string{
	{"User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)"},
	{"Accept", "*/*; q=0.5, application/xml"},
	{"Accept-Encoding", "gzip"},
	{"Cache-Control", "no-cache"},
	{"Content-Type", "application/json; charset=utf-8"},
	{"X-Forwarded-For", "203.0.113.7"},
	{"X-Forwarded-Host", "hooks.example.org"},
	{"X-Forwarded-Proto", "https"},
	{"X-Real-Ip", "203.0.113.7"},
	{"Via", "1.1 proxy.example.org"},
	{"X-Request-Id", "req-0123456789abcdef0123456789abcdef"},
}

// Sign is the Stripe-Signature header of a body.
func Sign(body []byte, at time.Time) string {
	t := strconv.FormatInt(at.Unix(), 10)
	m := hmac.New(sha256.New, []byte(Secret))
	m.Write([]byte(t + "."))
	m.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(m.Sum(nil))
}
