package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Shares of the byte budget. A body that says its length and is small gets its whole
// buffer at once; larger ones and those that do not say grow as bytes come in, so
// that who only promises holds little.
const (
	firstShare   = 16 << 10
	chunkedShare = 4 << 10
	shareWait    = time.Second
)

// What can go wrong while a body comes in.
var (
	errTooLarge = errors.New("body over the source's limit")
	errShort    = errors.New("body ended before its promised end")
	errSlow     = errors.New("body came in too slowly")
	errNoShare  = errors.New("too many bytes in flight")
)

// readBody reads the body once, to its end. The bytes are counted in the budget; the
// caller gives v.share back when nobody needs them any more.
func (e *Edge) readBody(w http.ResponseWriter, r *http.Request, v *visit) ([]byte, error) {
	n, limit := r.ContentLength, v.source.MaxBody
	switch {
	case n == 0:
		return []byte{}, nil
	case n > limit:
		return nil, errTooLarge
	case n > 0:
		return e.fill(r, r.Body, v, min(n, firstShare), n)
	}
	// One byte more than allowed, so that the end is seen without another buffer.
	return e.fill(r, http.MaxBytesReader(w, r.Body, limit), v, min(limit+1, chunkedShare), limit+1)
}

// fill reads in to its end or to most bytes, starting with a buffer of first bytes.
func (e *Edge) fill(r *http.Request, in io.Reader, v *visit, first, most int64) ([]byte, error) {
	v.unread = true
	if !e.grow(r, v, first) {
		return nil, errNoShare
	}
	buf := make([]byte, 0, first)
	for {
		if len(buf) == cap(buf) {
			if int64(len(buf)) == most {
				break
			}
			next := min(4*int64(cap(buf)), most)
			if !e.grow(r, v, next) {
				return nil, errNoShare
			}
			buf = append(make([]byte, 0, next), buf...)
		}
		n, err := in.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			if r.ContentLength >= 0 && int64(len(buf)) < r.ContentLength {
				return nil, errShort
			}
			break
		}
		if err != nil {
			return nil, readError(err)
		}
	}
	v.unread = false
	return buf, nil
}

// grow makes the request's share of the budget as large as its buffer.
func (e *Edge) grow(r *http.Request, v *visit, bytes int64) bool {
	more := min(bytes, e.budget.size) - v.share
	if more <= 0 {
		return true
	}
	if !e.budget.take(r.Context(), more, shareWait) {
		return false
	}
	v.share += more
	return true
}

func readError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	}
	return fmt.Errorf("%w: %w", errShort, err)
}

// farewell is how long a sender that is still talking has to read its answer. Once the
// connection is closed over bytes that nobody read, its system may throw the answer
// away.
const farewell = 500 * time.Millisecond

// linger lets a sender that is still talking read its answer before the connection
// ends: it reads on for a second and 64 KiB at most. What comes later is cut off.
// net/http waits by itself only for some bodies, and never for a sender that asked to
// close the connection.
func (v *visit) linger(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_ = c.Flush()
	if c.SetReadDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	_, err := io.CopyN(io.Discard, r.Body, 64<<10)
	_ = c.SetReadDeadline(time.Now().Add(-time.Second)) // net/http would read another 256 KiB
	if err == nil {
		v.conn.sayGoodbye(farewell)
	}
}
