package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"acuse/scripts/tools/load"
)

// app is a destination. It remembers all that it was given.
type app struct {
	URL string

	t      *testing.T
	file   *os.File // the socket
	answer http.HandlerFunc

	mu    sync.Mutex
	calls map[string][]call // by event; "" for what is no event
}

// call is one request that the app was given.
type call struct {
	Header http.Header
	Body   []byte
	At     time.Time
}

// newApp starts an app; a nil answer takes everything.
func newApp(t *testing.T, answer http.HandlerFunc) *app {
	t.Helper()
	a := newClosedApp(t)
	a.answer = answer
	a.open()
	return a
}

// newClosedApp is an app whose address refuses connections until open: the port is
// held, and nobody listens on it.
func newClosedApp(t *testing.T) *app {
	t.Helper()
	syscall.ForkLock.RLock() // no child inherits it
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	a := &app{t: t, file: os.NewFile(uintptr(fd), "app"), calls: map[string][]call{}}
	t.Cleanup(func() { a.file.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	addr, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	a.URL = fmt.Sprintf("http://127.0.0.1:%d/hook", addr.(*syscall.SockaddrInet4).Port)
	return a
}

// open lets the app answer.
func (a *app) open() {
	a.t.Helper()
	if err := syscall.Listen(int(a.file.Fd()), 128); err != nil {
		a.t.Fatal(err)
	}
	l, err := net.FileListener(a.file)
	if err != nil {
		a.t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(a.take)}
	go srv.Serve(l)
	a.t.Cleanup(func() { srv.Close() })
}

func (a *app) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	event := r.Header.Get("Acuse-Event-Id")
	a.calls[event] = append(a.calls[event], call{r.Header, body, time.Now()})
	a.mu.Unlock()
	if a.answer != nil {
		a.answer(w, r)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// given are the calls for an event, in order.
func (a *app) given(event string) []call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls[event])
}

// tests counts the calls for test events.
func (a *app) tests() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, calls := range a.calls {
		for _, c := range calls {
			if c.Header.Get("Acuse-Test") == "true" {
				n++
			}
		}
	}
	return n
}

// times is how often the app was given an event.
func (a *app) times(event string) int { return len(a.given(event)) }

// signed tells whether Stripe's library would take the call.
func (c call) signed() error {
	list := c.Header["Stripe-Signature"]
	if len(list) != 1 {
		return fmt.Errorf("%d signature headers", len(list))
	}
	stamp, _, _ := strings.Cut(strings.TrimPrefix(list[0], "t="), ",")
	sec, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return err
	}
	at := time.Unix(sec, 0)
	if age := c.At.Sub(at); age < -time.Second || age > 5*time.Minute {
		return fmt.Errorf("signed %v ago", age)
	}
	if list[0] != load.Sign(c.Body, at) {
		return errors.New("signature does not fit")
	}
	return nil
}

// failing answers the first n calls of an event with a cut connection, a 500, a
// redirect, a 404 and so on, then takes it.
func failing(n int) http.HandlerFunc {
	var mu sync.Mutex
	seen := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("Acuse-Event-Id")
		mu.Lock()
		i := seen[id]
		seen[id]++
		mu.Unlock()
		switch {
		case i >= n:
			w.WriteHeader(http.StatusOK)
		case i%3 == 0:
			panic(http.ErrAbortHandler)
		case i%3 == 1:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	}
}
