package alert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/nicholas-fedor/shoutrrr"
	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"acuse/dial"
)

// sendTime bounds one sending to one channel.
const sendTime = 15 * time.Second

// channel is one way to a person.
type channel struct {
	name string // the URL's scheme: "ntfy"
	give func(text string) error
}

// open makes the channels of shoutrrr service URLs. Errors name the URL by its place
// and scheme: the rest is secret.
func open(urls []string, client *http.Client) ([]channel, error) {
	if client == nil {
		client = dial.Client(dial.ClientOptions{})
	}
	bounded := *client // shoutrrr gives its requests no context
	bounded.Timeout = sendTime
	list := make([]channel, 0, len(urls))
	for i, u := range urls {
		scheme, _, ok := strings.Cut(u, ":")
		if !ok || len(scheme) > 40 || strings.ContainsAny(scheme, "/@?") {
			return nil, fmt.Errorf("alert %d: not a service URL", i+1)
		}
		name, _, _ := strings.Cut(scheme, "+")
		c := &carrier{client: &bounded}
		sender, err := shoutrrr.NewSenderWithOptions(nil, types.SenderOptions{HTTPClient: c, Timeout: sendTime}, u)
		switch {
		case errors.Is(err, router.ErrUnknownService):
			return nil, fmt.Errorf("alert %d: unknown service %q", i+1, name)
		case err != nil:
			return nil, fmt.Errorf("alert %d: the %s URL is not complete", i+1, name)
		}
		list = append(list, channel{name: name, give: func(text string) error {
			c.note("")
			if err := errors.Join(sender.Send(text, &types.Params{})...); err != nil {
				return fmt.Errorf("%s: %s", name, c.why())
			}
			return nil
		}})
	}
	return list, nil
}

// send gives text to the channel; ctx ends the wait, not the sending.
func (c channel) send(ctx context.Context, text string) error {
	done := make(chan error, 1)
	go func() { done <- c.give(text) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: acuse is stopping", c.name)
	}
}

// carrier is the guarded client as shoutrrr uses it. It remembers what went wrong in
// words of its own, since shoutrrr's errors quote URLs with their tokens.
type carrier struct {
	client *http.Client

	mu   sync.Mutex
	last string // of the latest request; empty: it went well
}

// Do implements types.HTTPClient. A redirect is an error: some services would take
// its status for success, and the message would be lost.
func (c *carrier) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.client.Do(r)
	if err != nil {
		return nil, c.note(transportWords(err))
	}
	if resp.StatusCode >= 300 {
		err := c.note(fmt.Sprintf("answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
		if resp.StatusCode < 400 {
			resp.Body.Close()
			return nil, err
		}
	}
	resp.Body = limited{io.LimitReader(resp.Body, 1<<20), resp.Body}
	return resp, nil
}

// note keeps what went wrong and returns it as an error.
func (c *carrier) note(what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = what
	return errors.New(what)
}

func (c *carrier) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == "" {
		return "could not be sent"
	}
	return c.last
}

func transportWords(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, dial.ErrForbidden):
		return "its address is not one that acuse connects to"
	case errors.As(err, &dns):
		return "its name does not resolve"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	return "no connection"
}

// limited bounds an answer that shoutrrr reads to its end.
type limited struct {
	io.Reader
	io.Closer
}
