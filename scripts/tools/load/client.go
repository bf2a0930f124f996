package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Client is one kept connection. It is not safe for use by several goroutines.
type Client struct {
	Addr    string
	Timeout time.Duration // of one exchange; default 30 s
	// RetryAfter of the last answer; "" is none.
	RetryAfter string

	conn net.Conn
	in   *bufio.Reader
	out  []byte
}

// Post sends a signed Stripe event to path and returns the status and the body of
// the answer. An error means that no whole answer came: the event may or may not
// have been stored.
func (c *Client) Post(path string, body []byte, at time.Time) (status int, answer []byte, err error) {
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", c.Addr, 2*time.Second); err != nil {
			c.conn = nil
			return 0, nil, err
		}
		c.in = bufio.NewReader(c.conn)
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	c.conn.SetDeadline(time.Now().Add(timeout))
	c.out = fmt.Appendf(c.out[:0], "POST %s HTTP/1.1\r\nHost: %s\r\n", path, c.Addr)
	for _, h := range headers {
		c.out = append(append(append(append(c.out, h[0]...), ": "...), h[1]...), "\r\n"...)
	}
	c.out = fmt.Appendf(c.out, "Stripe-Signature: %s\r\nContent-Length: %d\r\n\r\n", Sign(body, at), len(body))
	c.out = append(c.out, body...)
	if _, err = c.conn.Write(c.out); err == nil {
		status, answer, err = c.read()
	}
	if err != nil {
		c.Close()
	}
	return status, answer, err
}

// Close drops the connection; the next Post dials again.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *Client) read() (status int, body []byte, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	if len(line) < 12 {
		return 0, nil, errors.New("short status line")
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, nil, fmt.Errorf("status line: %w", err)
	}
	length, keep := -1, true
	c.RetryAfter = ""
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return 0, nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		switch name, value, _ := strings.Cut(string(line), ":"); strings.ToLower(name) {
		case "content-length":
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return 0, nil, fmt.Errorf("content-length: %w", err)
			}
		case "retry-after":
			c.RetryAfter = strings.TrimSpace(value)
		case "connection":
			keep = !strings.EqualFold(strings.TrimSpace(value), "close")
		}
	}
	if length < 0 {
		return 0, nil, errors.New("answer without Content-Length")
	}
	body = make([]byte, length)
	if _, err = io.ReadFull(c.in, body); err == nil && !keep {
		c.Close()
	}
	return status, body, err
}
