package load

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// Poster sends signed Stripe events on one connection.
type Poster interface {
	Post(path string, body []byte, at time.Time) (status int, answer []byte, err error)
	Close()
}

// Common sends like most Go programs do, with net/http. It costs about as much as the
// server it loads, and it is what the figures of the budget were taken with.
type Common struct {
	Addr   string
	client http.Client
}

// NewCommon makes a Poster of its own connection.
func NewCommon(addr string) *Common {
	return &Common{Addr: addr, client: http.Client{
		Transport: &http.Transport{MaxConnsPerHost: 1, DisableCompression: true}, Timeout: 30 * time.Second,
	}}
}

// Post is as Client.Post.
func (c *Common) Post(path string, body []byte, at time.Time) (int, []byte, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+c.Addr+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for _, h := range headers {
		req.Header.Set(h[0], h[1])
	}
	req.Header.Set("Stripe-Signature", Sign(body, at))
	res, err := c.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// Close drops the connection.
func (c *Common) Close() { c.client.CloseIdleConnections() }
