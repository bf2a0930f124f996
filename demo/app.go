// Package demo is the outside world of `acuse demo`: senders that sign, repeat and
// race like real providers, and an app that is slow, fails and dies in the middle.
// Neither helps acuse: the app does its work once per idempotency key and counts
// what it was asked, so that a second key for one event shows as a second order.
package demo

import (
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// App is the app behind acuse. It takes an order for every new idempotency key.
type App struct {
	// Down tells whether the app is down at the moment: it then answers 503.
	Down func(now time.Time) bool
	// Verify judges the signature that the app was given, as the provider's own
	// library would. It may be nil.
	Verify func(r *http.Request, body []byte) error

	mu     sync.Mutex
	orders map[string]order // by idempotency key
	tries  map[string]int   // requests, by idempotency key
	asked  int
	badSig int
	noKey  int
}

// order is a piece of work done: for which event of which source.
type order struct{ source, event string }

// mood is what the app does with a request.
type mood int

const (
	fine mood = iota
	failing
	slow
	dying // does the work, then breaks the connection before it answers
)

// moodOf is the same for the same key and try, whatever the clock: about a third of
// the events meet trouble, none more than three times.
func moodOf(key string, try int) mood {
	h := fnv.New32a()
	io.WriteString(h, key)
	if try > 3 {
		return fine
	}
	io.WriteString(h, strconv.Itoa(try))
	switch h.Sum32() % 12 {
	case 0, 1:
		return failing
	case 2:
		return slow
	case 3:
		return dying
	}
	return fine
}

// ServeHTTP takes one delivery.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 32<<20))
	if err != nil {
		http.Error(w, "body not read", http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	m, ok := a.enter(r, key, body)
	switch {
	case !ok:
		http.Error(w, "signature not accepted", http.StatusUnauthorized)
	case key == "":
		http.Error(w, "Idempotency-Key is missing", http.StatusBadRequest)
	case m == failing:
		http.Error(w, "the app is down", http.StatusServiceUnavailable)
	case m == slow:
		time.Sleep(300 * time.Millisecond)
		a.take(key, r)
		w.WriteHeader(http.StatusNoContent)
	case m == dying:
		a.take(key, r)
		panic(http.ErrAbortHandler) // the connection breaks without an answer
	default:
		a.take(key, r)
		w.WriteHeader(http.StatusNoContent)
	}
}

// enter counts the request, judges its signature, and tells the app's mood.
func (a *App) enter(r *http.Request, key string, body []byte) (m mood, ok bool) {
	ok = a.Verify == nil || a.Verify(r, body) == nil
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tries == nil {
		a.tries, a.orders = map[string]int{}, map[string]order{}
	}
	a.asked++
	if !ok {
		a.badSig++
	}
	if key == "" {
		a.noKey++
	}
	a.tries[key]++
	if a.Down != nil && a.Down(time.Now()) {
		return failing, ok
	}
	return moodOf(key, a.tries[key]), ok
}

// take does the work of a key that was not done before.
func (a *App) take(key string, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, done := a.orders[key]; !done {
		a.orders[key] = order{r.Header.Get("Acuse-Source"), r.Header.Get("Acuse-Event-Id")}
	}
}

// Tally is what the app counted.
type Tally struct {
	Asked, BadSignatures, NoKey int
	Orders                      map[string]int // orders, by "source event"
}

// Tally counts the orders of each event.
func (a *App) Tally() Tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := Tally{Asked: a.asked, BadSignatures: a.badSig, NoKey: a.noKey, Orders: map[string]int{}}
	for _, o := range a.orders {
		t.Orders[o.source+" "+o.event]++
	}
	return t
}
