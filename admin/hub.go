package admin

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
)

// The bounds of the hub: what one reader may be behind, and how much of the past a
// reader that comes back finds.
const (
	hubBehind = 128
	hubPast   = 512
)

// change says that a delivery is no longer as it was. ID is "run-number": numbers
// of another run of acuse mean nothing in this one.
type change struct {
	Seq      uint64
	Delivery int64
}

// hub hands changes to every open page and listener. publish never blocks: a reader
// that is too slow is dropped, comes back and reads what it missed.
type hub struct {
	run string

	mu      sync.Mutex
	seq     uint64
	past    []change // the newest hubPast
	readers map[chan change]bool
	watches map[int64]map[chan struct{}]bool
	closed  bool
}

func newHub() *hub {
	return &hub{run: strings.ToLower(rand.Text()[:6]), readers: map[chan change]bool{}, watches: map[int64]map[chan struct{}]bool{}}
}

func (h *hub) publish(delivery int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq++
	c := change{h.seq, delivery}
	if h.past = append(h.past, c); len(h.past) > 2*hubPast {
		h.past = append(h.past[:0:0], h.past[hubPast:]...)
	}
	for ch := range h.readers {
		select {
		case ch <- c:
		default:
			delete(h.readers, ch)
			close(ch)
		}
	}
	for ch := range h.watches[delivery] {
		select {
		case ch <- struct{}{}:
		default: // it has a nudge already
		}
	}
}

// id is a change's name in the stream.
func (h *hub) id(c change) string { return h.run + "-" + strconv.FormatUint(c.Seq, 10) }

// join returns the changes since last and a channel of those to come, closed when
// the reader is too slow or the hub ends. whole is false when some were forgotten:
// then the reader looks at everything anew.
func (h *hub) join(last string) (since []change, ch chan change, whole bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch = make(chan change, hubBehind)
	if h.closed {
		close(ch)
		return nil, ch, true
	}
	h.readers[ch] = true
	if last == "" {
		return nil, ch, true
	}
	run, num, _ := strings.Cut(last, "-")
	n, err := strconv.ParseUint(num, 10, 64)
	if err != nil || run != h.run || n > h.seq {
		return nil, ch, false
	}
	if n == h.seq {
		return nil, ch, true
	}
	if len(h.past) == 0 || h.past[0].Seq > n+1 {
		return nil, ch, false
	}
	for _, c := range h.past {
		if c.Seq > n {
			since = append(since, c)
		}
	}
	return since, ch, true
}

func (h *hub) leave(ch chan change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers[ch] {
		delete(h.readers, ch)
		close(ch)
	}
}

// watch nudges when one delivery changes, until stop.
func (h *hub) watch(delivery int64) (nudge <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches[delivery] == nil {
		h.watches[delivery] = map[chan struct{}]bool{}
	}
	h.watches[delivery][ch] = true
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watches[delivery], ch)
		if len(h.watches[delivery]) == 0 {
			delete(h.watches, delivery)
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for ch := range h.readers {
		delete(h.readers, ch)
		close(ch)
	}
}
