package provider

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const decodedAuth = `{"kind":"hmac","alg":"sha256","message":"{body}","signed_over":%q,"signature":{"from":"header:X-Signature","format":"plain","encoding":"hex"}}`

// sig-08: a signature may cover the body before it was packed, where the source says so.
func TestP5SignaturesOverDecodedBodies(t *testing.T) {
	t.Parallel()
	auth := func(over string) *Checker {
		c, err := Custom().Compile(Settings{Secrets: []string{"case-gs"}, Auth: fmt.Appendf(nil, decodedAuth, over), ID: &IDRule{Template: "{json:id}"}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	gs, wire := auth("decoded"), auth("wire")
	packed := unbase64(t, "H4sIAAAAAAAC/6tWKqksSFWyUspNLS5OTE/Vy0stV9JRykwBCqVX6Roq1QIAs/aVQyIAAAA=")
	const plainSig = "f131fdd34bee51b1fa00d047bbe413ee6a2b8675def75c889cbc17000a627709"
	res, err := gs.Receive(post(packed, "Content-Encoding", "gzip", "X-Signature", plainSig), caseNow)
	if err != nil || res.Events[0].ID != "gz-1" || !bytes.Equal(res.Events[0].Bytes, packed) {
		t.Errorf("signed before packing: %v %+v", err, res)
	}
	res, err = wire.Receive(post(packed, "Content-Encoding", "gzip", "X-Signature", "ecb7f60171eda39c1fcf789fb9f5bd7532da7a29205ba0555e0c712082ddd334"), caseNow)
	if err != nil || res.Events[0].ID != "gz-1" {
		t.Errorf("signed after packing: %v %+v", err, res)
	}
	if _, err := gs.Receive(post([]byte(`{"type":"message.new","id":"gz-1"}`), "Content-Encoding", "zstd", "X-Signature", plainSig), caseNow); reasonOf(err) != UnsupportedEncoding {
		t.Errorf("zstd: %v", err)
	}
	plain := []byte(`{"type":"message.new","id":"gz-1"}`)
	for name, pack := range map[string]func() []byte{
		"deflate": func() []byte {
			var b bytes.Buffer
			w := zlib.NewWriter(&b)
			w.Write(plain)
			w.Close()
			return b.Bytes()
		},
		"Deflate": func() []byte {
			var b bytes.Buffer
			w, _ := flate.NewWriter(&b, 9)
			w.Write(plain)
			w.Close()
			return b.Bytes()
		},
		"identity": func() []byte { return plain },
		"x-gzip":   func() []byte { return gzipped(t, plain) },
	} {
		if _, err := gs.Receive(post(pack(), "Content-Encoding", name, "X-Signature", plainSig), caseNow); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := gs.Receive(post([]byte("no gzip"), "Content-Encoding", "gzip", "X-Signature", plainSig), caseNow); reasonOf(err) != MalformedBody {
		t.Errorf("garbage: %v", err)
	}
}

// A bomb of 20 KiB that unpacks to 20 MiB is refused within the limit of a body.
func TestP5ADecompressionBombIsRefusedWithinTheLimit(t *testing.T) {
	c, err := Custom().Compile(Settings{Secrets: []string{"s"}, Auth: fmt.Appendf(nil, decodedAuth, "decoded")})
	if err != nil {
		t.Fatal(err)
	}
	bomb := gzipped(t, make([]byte, 20<<20))
	r := post(bomb, "Content-Encoding", "gzip", "X-Signature", strings.Repeat("0", 64))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = c.Receive(r, caseNow)
	runtime.ReadMemStats(&after)
	if reasonOf(err) != TooLarge {
		t.Errorf("got %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
	small, err := Custom().Compile(Settings{Secrets: []string{"s"}, Auth: fmt.Appendf(nil, decodedAuth, "decoded"), MaxBody: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small.Receive(post(gzipped(t, make([]byte, 11)), "Content-Encoding", "gzip", "X-Signature", strings.Repeat("0", 64)), caseNow); reasonOf(err) != TooLarge {
		t.Errorf("a limit of the source: %v", err)
	}
}
