package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) sourceCommand() *cobra.Command {
	parent := a.command("source", "source", nil, nil)
	var confirm, discard bool
	capture := a.command("capture SOURCE", "source.capture", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		h := handshake{app: a, cmd: cmd, client: a.client(), source: args[0], path: "/api/v1/sources/" + url.PathEscape(args[0]) + "/capture"}
		switch {
		case confirm && discard:
			return a.misuse(cmd, a.w("capture.either"))
		case confirm:
			return h.confirm()
		case discard:
			return h.discard()
		}
		return h.wait()
	})
	capture.Flags().BoolVar(&confirm, "confirm", false, a.w("flag.confirm"))
	capture.Flags().BoolVar(&discard, "discard", false, a.w("flag.discard"))
	parent.AddCommand(capture)
	return parent
}

// handshake is the capture of one source's secret.
type handshake struct {
	app          *app
	cmd          *cobra.Command
	client       *client
	source, path string

	raw   json.RawMessage // as the server said it
	state struct {
		OpenUntil *string `json:"open_until"`
		Value     *string `json:"value"`
		From      *string `json:"from"`
		At        *string `json:"at"`
		Snippet   *string `json:"snippet"`
	}
}

// ask asks for the state; with an action it changes it.
func (h *handshake) ask(action, query string) error {
	method, in := http.MethodGet, any(nil)
	if action != "" {
		method, in = http.MethodPost, map[string]string{"action": action}
	}
	h.raw, h.state.Value, h.state.OpenUntil, h.state.Snippet = nil, nil, nil, nil
	err := h.client.call(h.cmd.Context(), method, h.path+query, in, &h.raw)
	if f, ok := err.(*failure); ok && f.code == exitNotFound {
		return &failure{code: exitNotFound, what: h.app.f("capture.none", clean(h.source))}
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(h.raw, &h.state)
}

// wait opens the window and waits until something came or it closed. What came before
// and was not decided about is shown: opening anew would forget it.
func (h *handshake) wait() error {
	if err := h.ask("", ""); err != nil {
		return err
	}
	if h.state.Value == nil {
		if err := h.ask("open", ""); err != nil {
			return err
		}
		h.app.remark("%s", h.app.f("capture.waiting", h.app.when(h.state.OpenUntil), h.address()))
	}
	for h.state.Value == nil {
		if h.state.OpenUntil == nil {
			return &failure{code: exitFailed, what: h.app.f("capture.over", clean(h.source)), todo: h.app.w("capture.over.todo")}
		}
		if err := h.ask("", "?wait_seconds=60"); err != nil {
			return err
		}
	}
	if h.app.json {
		h.app.line(h.raw)
		return nil
	}
	from := "–"
	if h.state.From != nil {
		from = clean(*h.state.From)
	}
	h.app.say("%s", clean(*h.state.Value))
	h.app.remark("%s", h.app.f("capture.came", from, h.app.when(h.state.At)))
	h.app.remark("%s", h.app.f("capture.next", clean(h.source)))
	return nil
}

// address is where the provider sends to, when the server knows.
func (h *handshake) address() string {
	var out struct {
		Sources []struct {
			Name    string `json:"name"`
			Address string `json:"address"`
		} `json:"sources"`
	}
	if err := h.client.call(h.cmd.Context(), http.MethodGet, "/api/v1/sources", nil, &out); err == nil {
		for _, s := range out.Sources {
			if s.Name == h.source && s.Address != "" {
				return clean(s.Address)
			}
		}
	}
	return h.app.w("capture.address")
}

func (h *handshake) confirm() error {
	if err := h.ask("confirm", ""); err != nil {
		return err
	}
	switch {
	case h.app.json:
		h.app.line(h.raw)
	case h.state.Snippet != nil:
		h.app.remark("%s", h.app.w("capture.snippet"))
		h.app.say("%s", cleanLines(strings.TrimSuffix(*h.state.Snippet, "\n")))
	default:
		h.app.say("%s", h.app.f("capture.confirmed", clean(h.source)))
	}
	return nil
}

func (h *handshake) discard() error {
	if err := h.ask("discard", ""); err != nil {
		return err
	}
	if h.app.json {
		h.app.line(h.raw)
	} else {
		h.app.say("%s", h.app.f("capture.discarded", clean(h.source)))
	}
	return nil
}
