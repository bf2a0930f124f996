package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestTail: a delivery shows once a state, a lost connection is taken up where it was
// left, and Ctrl-C ends it well.
func TestTail(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /api/v1/destinations", 200, destinations)
	states := []string{"queued", "queued", "delivered"} // of #1 at each look
	s.mux.HandleFunc("GET /api/v1/deliveries/1", func(w http.ResponseWriter, _ *http.Request) {
		state := states[0]
		states = states[1:]
		_, _ = io.WriteString(w, one(1, state, jobOf(state, 0, `"last_status":null,"last_error":null`)))
	})
	s.answer("GET /api/v1/deliveries/2", 404, problemOf("not-found", "Not Found", ""))
	s.mux.HandleFunc("GET /api/v1/deliveries/1/body", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{\x1b}") })
	ctx, stop := context.WithCancel(t.Context())
	streams := 0
	s.mux.HandleFunc("GET /api/v1/events", func(w http.ResponseWriter, r *http.Request) {
		event := func(id string, n int) { fmt.Fprintf(w, "id: %s\nevent: delivery\ndata: {\"delivery\":%d}\n\n", id, n) }
		streams++
		if streams == 1 {
			_, _ = io.WriteString(w, "retry: 2000\n\n: beat\n\n")
			event("a", 1)
			event("b", 1)
			event("c", 2)
			return
		}
		if got := r.Header.Get("Last-Event-ID"); got != "c" {
			t.Errorf("goes on from %q", got)
		}
		event("d", 1)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	var out, errs bytes.Buffer
	done := make(chan int)
	go func() {
		done <- Run(ctx, Options{Stdout: &stopWhen{&out, "delivered", stop}, Stderr: &errs, Zone: time.UTC, tailWait: time.Millisecond, Stdin: strings.NewReader(""),
			Env: []string{"ACUSE_DATA_DIR=" + s.dir}}, []string{"tail", "--body"})
	}()
	if code := <-done; code != 0 {
		t.Errorf("exit %d", code)
	}
	want := "#1  2026-11-30 14:02:11  stripe  invoice.paid  queued  0  app\n{·}\n#1  2026-11-30 14:02:11  stripe  invoice.paid  delivered  0  app\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	if !strings.Contains(errs.String(), "No connection; trying again.") {
		t.Errorf("standard error: %s", errs.String())
	}
}

// stopWhen calls stop once the text was written.
type stopWhen struct {
	w    *bytes.Buffer
	text string
	stop func()
}

func (s *stopWhen) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	if bytes.Contains(b, []byte(s.text)) {
		s.stop()
	}
	return n, err
}
