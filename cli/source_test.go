package cli

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// capturing answers as the server does: the window is open for two waits, then what came.
func capturing(s *server, states ...string) {
	s.answer("GET /api/v1/sources", 200, `{"sources":[{"name":"notion","address":"https://hooks.example.org/in/notion"}]}`)
	s.mux.HandleFunc("GET /api/v1/sources/notion/capture", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, states[0])
		if len(states) > 1 {
			states = states[1:]
		}
	})
	s.mux.HandleFunc("POST /api/v1/sources/notion/capture", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(b), "open"):
			_, _ = io.WriteString(w, windowOpen)
		default:
			_, _ = io.WriteString(w, windowShut)
		}
	})
}

const (
	windowShut = `{"open_until":null,"value":null,"from":null,"at":null,"snippet":null}`
	windowOpen = `{"open_until":"2026-11-30T14:12:31.000Z","value":null,"from":null,"at":null,"snippet":null}`
	came       = `{"open_until":null,"value":"secret_\u001b[2Jfake","from":"192.0.2.7","at":"2026-11-30T14:03:00.000Z","snippet":null}`
)

func TestASecretIsCapturedShownAndConfirmed(t *testing.T) {
	t.Parallel()
	s := start(t)
	capturing(s, windowShut, windowOpen, came)
	s.run(t, "source", "capture", "notion").want(t, 0, "secret_·[2Jfake\n",
		"Open until 2026-11-30 14:12:31. Have the provider send its handshake to https://hooks.example.org/in/notion now.",
		"It came from 192.0.2.7 at 2026-11-30 14:03:00", "acuse source capture notion --confirm")
	if got := s.requests(); !slices.Contains(got, "GET /api/v1/sources/notion/capture?wait_seconds=60") {
		t.Errorf("%q", got)
	}
	s.run(t, "source", "capture", "notion", "--confirm").want(t, 0, "Confirmed: it is a secret of notion now.\n")
	s.runIn(t, "es", "source", "capture", "notion", "--discard").want(t, 0, "Descartado: notion ya no acepta ningún secreto.\n")
	s.run(t, "source", "capture", "notion", "--discard", "--json").want(t, 0, windowShut+"\n")
}

// Opening the window anew would forget what the provider sends only once.
func TestWhatCameBeforeIsShownAndNotForgotten(t *testing.T) {
	t.Parallel()
	s := start(t)
	capturing(s, came)
	s.run(t, "source", "capture", "notion").want(t, 0, "secret_·[2Jfake\n", "--discard")
	if got := s.requests(); len(got) != 1 {
		t.Errorf("%q", got)
	}
	s.run(t, "source", "capture", "notion", "--json").want(t, 0, came+"\n")
}

func TestACaptureThatBringsNothingSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := start(t)
	capturing(s, windowShut)
	s.run(t, "source", "capture", "notion").want(t, 1, "", "no handshake came to notion", "within ten minutes")
	s.run(t, "source", "capture", "stripe").want(t, 3, "", `"stripe" is no source that learns its secret`)
	s.run(t, "source", "capture", "notion", "--confirm", "--discard").want(t, 2, "", "not both")
	other := start(t)
	other.answer("POST /api/v1/sources/notion/capture", 409, `{"type":"urn:acuse:problem:nothing-captured","title":"x"}`)
	other.runIn(t, "es", "source", "capture", "notion", "--confirm").want(t, 1, "", "no se ha capturado nada")
}

func TestASecretThatCannotBeWrittenIsPrinted(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("POST /api/v1/sources/notion/capture", 200, `{"open_until":null,"value":"v","from":"192.0.2.7","at":null,"snippet":"sources:\n  notion:\n    more_secrets: [v]\n"}`)
	s.run(t, "source", "capture", "notion", "--confirm").want(t, 0, "sources:\n  notion:\n    more_secrets: [v]\n", "cannot be written")
}
