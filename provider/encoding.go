package provider

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
)

var (
	errEncoding = errors.New("content encoding is not supported")
	errTooLarge = errors.New("body is too large once decoded")
	errGarbled  = errors.New("body is not in its content encoding")
)

// defaultMaxBody bounds a decoded body where neither file nor settings say more.
const defaultMaxBody = 1 << 20

// unpack undoes one Content-Encoding. It reads at most limit bytes, so a bomb costs no
// more memory than a body of the legal size.
func unpack(encoding string, body []byte, limit int64) ([]byte, error) {
	var r io.Reader
	var err error
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate": // zlib by the book, bare deflate by some senders
		if r, err = zlib.NewReader(bytes.NewReader(body)); err != nil {
			r, err = flate.NewReader(bytes.NewReader(body)), nil
		}
	default:
		return nil, errEncoding
	}
	if err != nil {
		return nil, errGarbled
	}
	out, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case int64(len(out)) > limit:
		return nil, errTooLarge
	case err != nil:
		return nil, errGarbled
	}
	return out, nil
}
