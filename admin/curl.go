package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"acuse/store"
)

// curlBody is the longest body that is written into the command itself.
const curlBody = 4 << 10

// own headers of a connection, or of this one: curl sets them itself.
var curlSkips = []string{"Host", "Content-Length", "Connection", "Accept-Encoding", "Transfer-Encoding", "User-Agent", "Accept", "Expect"}

// curl writes the request as a shell command. Everything from outside stands in
// single quotes; masked headers are left out.
func curl(p store.Payload, h http.Header, m mask, d *store.Delivery, address string) string {
	if address == "" || strings.Contains(address, hidden) {
		address = "http://127.0.0.1:3000/"
	}
	var b strings.Builder
	method := p.Method
	if method == "" {
		method = http.MethodPost
	}
	fmt.Fprintf(&b, "curl -X %s %s", quote(method), quote(address))
	names := make([]string, 0, len(h))
	for k := range h {
		if !m.hidesHeader(k) && !slices.Contains(curlSkips, k) && !strings.HasPrefix(k, "X-Forwarded-") {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	for _, k := range names {
		for _, v := range h[k] {
			fmt.Fprintf(&b, " \\\n  -H %s", quote(k+": "+v))
		}
	}
	if len(d.Jobs) > 0 {
		fmt.Fprintf(&b, " \\\n  -H %s", quote("Idempotency-Key: "+d.Jobs[0].Key))
	}
	if len(p.Body) > curlBody || !utf8.Valid(p.Body) || !clean(string(p.Body), true) {
		fmt.Fprintf(&b, " \\\n  --data-binary @delivery-%d.body", d.ID)
	} else { // raw: a body that starts with @ names no file
		fmt.Fprintf(&b, " \\\n  --data-raw %s", quote(string(p.Body)))
	}
	return b.String()
}

// quote makes one word of the shell. A NUL cannot stand in a command.
func quote(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(visible(s, true), "\x00", ""), "'", `'\''`) + "'"
}
