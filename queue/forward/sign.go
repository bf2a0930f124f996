package forward

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"acuse/provider"
)

// useStandard is the advice when an app refuses a signature that cannot be fresh.
const useStandard = "acuse cannot sign afresh for this source; use `standard`"

// sign signs r as the provider would. Where that is not possible r stays as it came
// in, and hint says what helps if the app refuses it.
func sign(r *provider.Request, s Signer, public string, slot int, now time.Time) (hint string, err error) {
	if s == nil || !s.CanSign() {
		return useStandard, nil
	}
	if u, err := url.Parse(public); err == nil && public != "" {
		_, u.RawQuery, _ = strings.Cut(r.Target, "?")
		r.URL, r.Host = u.String(), u.Host
	}
	if err := s.Sign(r, slot, now); err != nil {
		return "", errors.New("it could not be signed afresh as its provider does")
	}
	return "", nil
}

// standardSecret decodes the secret of Standard Webhooks.
func standardSecret(s string) ([]byte, error) {
	b64, ok := strings.CutPrefix(s, "whsec_")
	b, err := base64.StdEncoding.DecodeString(b64)
	if !ok || err != nil || len(b) < 24 || len(b) > 64 {
		return nil, errors.New("secret: signature standard needs whsec_ and 24 to 64 bytes in base64")
	}
	return b, nil
}

// signStandard sets the three headers of Standard Webhooks. The id is the
// idempotency key: unique to the event and the same on every retry and resend, on
// every machine; a delivery number starts again with a new data folder, and an app
// that remembers ids would skip what it never saw. The specification keeps full
// stops out of ids, so they are escaped.
func signStandard(h http.Header, secret []byte, key string, body []byte, now time.Time) {
	id := strings.ReplaceAll(Escape(key), ".", "%2E")
	ts := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + ts + "."))
	mac.Write(body)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", ts)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
