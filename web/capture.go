package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// captureWindow is how long a source takes a secret that a handshake brings, once a
// person opened it.
const captureWindow = 10 * time.Minute

// Captures keeps what a handshake brought until a person decides: the provider sends it
// once, so it is on disk before the handshake is answered. store.Accounts is one.
type Captures interface {
	Setting(ctx context.Context, name string) (value string, ok bool, err error)
	PutSetting(ctx context.Context, name, value string) error
}

// Capture is the state of a source that is to learn its secret from a handshake.
type Capture struct {
	Until time.Time `json:"until"` // of the open window; zero: none is open
	Value string    `json:"value"` // what came, in clear; empty: nothing yet
	From  string    `json:"from"`  // who sent it
	At    time.Time `json:"at"`
}

// errNotWaiting refuses a secret that nobody waits for.
var errNotWaiting = errors.New("no window is open for a captured secret")

// captures holds the open windows. They are not on disk: who opens one waits for it.
type captures struct {
	store Captures

	mu   sync.Mutex
	open map[string]window // by source
}

// window is open until its time, unless over is closed before.
type window struct {
	until time.Time
	over  chan struct{}
}

// shut closes a window that is open. The caller holds the lock.
func (c *captures) shut(source string) {
	if w, ok := c.open[source]; ok {
		close(w.over)
		delete(c.open, source)
	}
}

func captureSetting(source string) string { return "capture." + source }

// isOpen tells whether the source takes a secret now.
func (c *captures) isOpen(source string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Before(c.open[source].until)
}

// keep writes down what came and closes the window: the first one counts, and what a
// stranger sends after it changes nothing.
func (c *captures) keep(source, value, from string, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !now.Before(c.open[source].until) || c.store == nil {
		return errNotWaiting
	}
	b, err := json.Marshal(Capture{Value: value, From: from, At: now})
	if err != nil {
		return err
	}
	if err := c.store.PutSetting(context.Background(), captureSetting(source), string(b)); err != nil {
		return fmt.Errorf("keep the captured secret: %w", err)
	}
	c.shut(source)
	return nil
}

// OpenCapture opens the window of a source for ten minutes. What was captured before
// and not confirmed is gone.
func (e *Edge) OpenCapture(ctx context.Context, source string) (until time.Time, err error) {
	c := &e.captures
	if c.store == nil {
		return until, errNotWaiting
	}
	if err := c.store.PutSetting(ctx, captureSetting(source), ""); err != nil {
		return until, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]window{}
	}
	c.shut(source)
	until = e.now().UTC().Add(captureWindow)
	c.open[source] = window{until, make(chan struct{})}
	return until, nil
}

// CaptureOf is how far the capture of a source has come.
func (e *Edge) CaptureOf(ctx context.Context, source string) (out Capture, err error) {
	c := &e.captures
	if c.store == nil {
		return out, nil
	}
	text, _, err := c.store.Setting(ctx, captureSetting(source))
	if err != nil {
		return out, err
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return out, fmt.Errorf("captured secret of %s: %w", source, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.open[source]; e.now().Before(w.until) {
		out.Until = w.until
	}
	return out, nil
}

// CloseWindows ends every wait for a handshake: acuse stops.
func (e *Edge) CloseWindows() {
	c := &e.captures
	c.mu.Lock()
	defer c.mu.Unlock()
	for source := range c.open {
		c.shut(source)
	}
}

// AwaitCapture waits until the window of a source is over: something came, its time is
// up, or a person closed it. Where none is open it does not wait. That ctx ended is no error.
func (e *Edge) AwaitCapture(ctx context.Context, source string) {
	c := &e.captures
	c.mu.Lock()
	w, ok := c.open[source]
	c.mu.Unlock()
	if !ok {
		return
	}
	end := time.NewTimer(w.until.Sub(e.now()))
	defer end.Stop()
	select {
	case <-w.over:
	case <-end.C:
	case <-ctx.Done():
	}
}

// EndCapture closes the window and forgets what came: it was confirmed, and stands in
// the source's configuration, or it was not what was waited for.
func (e *Edge) EndCapture(ctx context.Context, source string) error {
	c := &e.captures
	c.mu.Lock()
	c.shut(source)
	c.mu.Unlock()
	if c.store == nil {
		return nil
	}
	return c.store.PutSetting(ctx, captureSetting(source), "")
}
