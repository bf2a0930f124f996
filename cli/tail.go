package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// tailLongest is the longest wait between tries to reach a server that went away.
const tailLongest = 10 * time.Second

// tail follows the deliveries.
type tail struct {
	app     *app
	client  *client
	filter  filter
	body    bool
	budgets map[string]int
	opened  bool             // the server was reached once
	last    string           // id of the last event, for the server to go on from
	shown   map[int64]string // newest line of a delivery, so that nothing shows twice
}

func (a *app) tailCommand() *cobra.Command {
	t := &tail{app: a, shown: map[int64]string{}}
	c := a.command("tail", "tail", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		t.client, t.budgets = a.client(), a.budgets(cmd)
		err := t.follow(cmd.Context())
		for wait := a.opt.tailWait; err == nil || t.opened; wait = min(2*wait, tailLongest) {
			if cmd.Context().Err() != nil {
				return nil
			}
			a.remark("%s", a.w("tail.lost"))
			select {
			case <-cmd.Context().Done():
				return nil
			case <-time.After(wait):
			}
			if err = t.follow(cmd.Context()); err == nil {
				wait = a.opt.tailWait
			}
		}
		return err
	})
	a.filterFlags(c, &t.filter)
	c.Flags().BoolVar(&t.body, "body", false, a.w("flag.body"))
	return c
}

// follow reads one stream to its end; nil: it was opened and ended.
func (t *tail) follow(ctx context.Context) error {
	header := []string{"Accept", "text/event-stream"}
	if t.last != "" {
		header = append(header, "Last-Event-ID", t.last)
	}
	resp, err := t.client.open(ctx, http.MethodGet, "/api/v1/events", nil, header...)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // was only read
	if !t.opened {
		t.opened = true
		t.app.remark("%s", t.app.w("tail.waiting"))
	}
	return t.events(ctx, resp.Body)
}

// events reads server-sent events.
func (t *tail) events(ctx context.Context, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	event, data := "", ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			if err := t.event(ctx, event, data); err != nil {
				return err
			}
			event, data = "", ""
		case field == "event":
			event = value
		case field == "data":
			data += value
		case field == "id":
			t.last = value
		}
	}
	return nil
}

func (t *tail) event(ctx context.Context, event, data string) error {
	if event == "reset" {
		t.app.remark("%s", t.app.w("tail.gap"))
		return nil
	}
	var e struct {
		Delivery int64 `json:"delivery"`
	}
	if data == "" || json.Unmarshal([]byte(data), &e) != nil || e.Delivery == 0 {
		return nil
	}
	err := t.show(ctx, e.Delivery)
	var f *failure
	if errors.As(err, &f) && f.code == exitNotFound {
		return nil // removed since
	}
	return err
}

func (t *tail) show(ctx context.Context, id int64) error {
	var raw json.RawMessage
	if err := t.client.call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/deliveries/%d", id), nil, &raw); err != nil {
		return err
	}
	var d delivery
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	if !t.wanted(&d) {
		return nil
	}
	line := strings.Join(t.app.row(&d, t.budgets), "  ")
	before, seen := t.shown[id]
	if before == line {
		return nil
	}
	if len(t.shown) >= 1000 {
		clear(t.shown)
	}
	t.shown[id] = line
	if t.app.json {
		t.app.line(raw)
		return nil
	}
	row := t.app.row(&d, t.budgets)
	row[4] = t.app.painted(d.State, row[4])
	t.app.say("%s", strings.TrimRight(strings.Join(row, "  "), " "))
	if t.body && !seen {
		return t.showBody(ctx, id)
	}
	return nil
}

func (t *tail) showBody(ctx context.Context, id int64) error {
	resp, err := t.client.open(ctx, http.MethodGet, fmt.Sprintf("/api/v1/deliveries/%d/body", id), nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // was only read
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return t.app.unreachable(ctx, err)
	}
	t.app.say("%s", cleanLines(string(b)))
	return nil
}

func (t *tail) wanted(d *delivery) bool {
	f := &t.filter
	if f.source != "" && f.source != d.Source || f.state != "" && f.state != d.State || f.kind != "" && f.kind != d.Type {
		return false
	}
	if f.destination == "" {
		return true
	}
	for i := range d.Jobs {
		if d.Jobs[i].Destination == f.destination {
			return true
		}
	}
	return false
}
