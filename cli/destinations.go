package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// destination is one with its queue, as the server tells it.
type destination struct {
	Name        string  `json:"name"`
	Kind        string  `json:"kind"`
	State       string  `json:"state"`
	Queued      int     `json:"queued"`
	Leased      int     `json:"leased"`
	Dead        int     `json:"dead"`
	OldestDue   *string `json:"oldest_due"`
	PausedAt    *string `json:"paused_at"`
	DownSince   *string `json:"down_since"`
	Probes      int     `json:"probes"`
	NextProbeAt *string `json:"next_probe_at"`
}

func (a *app) destinationsCommand() *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error { return a.destinations(cmd) }
	c := a.command("destinations", "destinations", cobra.NoArgs, list)
	c.AddCommand(a.command("list", "destinations.list", cobra.NoArgs, list), a.laneCommand("pause"), a.laneCommand("resume"), a.laneCommand("probe"))
	return c
}

func (a *app) destinations(cmd *cobra.Command) error {
	var out struct {
		Destinations []json.RawMessage `json:"destinations"`
	}
	if err := a.client().call(cmd.Context(), http.MethodGet, "/api/v1/destinations", nil, &out); err != nil {
		return err
	}
	rows := [][]string{}
	for _, raw := range out.Destinations {
		if a.json {
			a.line(raw)
			continue
		}
		var d destination
		if err := json.Unmarshal(raw, &d); err != nil {
			return err
		}
		rows = append(rows, []string{clean(d.Name), clean(d.Kind), a.laneState(&d),
			a.f("destinations.counts", strconv.Itoa(d.Queued), strconv.Itoa(d.Leased), strconv.Itoa(d.Dead)), a.oldest(&d)})
	}
	if !a.json {
		a.columns(rows, nil)
	}
	if len(out.Destinations) == 0 {
		a.remark("%s", a.w("destinations.none"))
	}
	return nil
}

func (a *app) oldest(d *destination) string {
	if d.OldestDue == nil {
		return ""
	}
	return a.f("destinations.oldest", a.when(d.OldestDue))
}

// laneState is the state in words, with since when.
func (a *app) laneState(d *destination) string {
	switch d.State {
	case "paused":
		return a.f("destinations.paused", a.when(d.PausedAt))
	case "down":
		return a.f("destinations.down", a.when(d.DownSince), a.n("destinations.probes", d.Probes))
	}
	return a.w("destinations.up")
}

// laneCommand pauses, resumes or probes one destination.
func (a *app) laneCommand(act string) *cobra.Command {
	return a.command(act+" DESTINATION", "destinations."+act, cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		var raw json.RawMessage
		err := a.client().call(cmd.Context(), http.MethodPost, "/api/v1/destinations/"+url.PathEscape(args[0])+"/"+act, nil, &raw)
		var f *failure
		if errors.As(err, &f) && f.code == exitNotFound {
			return &failure{code: exitNotFound, what: a.f("destinations.unknown", clean(args[0]))}
		}
		if err != nil {
			return err
		}
		if a.json {
			a.line(raw)
			return nil
		}
		a.say("%s", a.f("destinations.did_"+act, clean(args[0])))
		return nil
	})
}
