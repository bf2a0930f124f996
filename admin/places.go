package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"acuse/store"
)

// sourceView is a source with what the archive knows of it.
type sourceView struct {
	Source
	Chip    chip
	Last    time.Time // zero: nothing arrived yet
	LastID  int64
	To      []string
	Window  string
	Address string
}

type destinationView struct {
	Destination
	Gone   bool // only jobs are left of it
	State  LaneState
	Chip   chip
	Lane   store.LaneTotals
	Oldest time.Time
	Shown  string // address, masked
	From   []string
	Held   []heldView // jobs that hold up others of their order
}

func (a *Admin) sourceViews(ctx context.Context, l *locale) ([]sourceView, error) {
	var out []sourceView
	for _, s := range a.opt.Sources() {
		v := sourceView{Source: s, To: s.DeliverTo, Address: maskURL(s.Address)}
		if s.Window > 0 {
			v.Window = l.span(s.Window)
		}
		list, _, err := a.opt.Archive.Deliveries(ctx, store.DeliveryFilter{Source: s.Name, Limit: 1})
		if err != nil {
			return nil, err
		}
		switch {
		case s.Waiting:
			v.Chip = chip{Role: "wait", Icon: "clock", Word: l.T("source.waiting")}
		case len(list) == 0:
			v.Chip = chip{Role: "mute", Icon: "moon", Word: l.T("source.none")}
		default:
			v.Last, v.LastID = list[0].ReceivedAt, list[0].ID
			v.Chip = chip{Role: "ok", Icon: "radio", Word: l.T("source.receiving")}
		}
		out = append(out, v)
	}
	return out, nil
}

func (a *Admin) sources(w http.ResponseWriter, r *http.Request) error {
	l := a.localeOf(r)
	list, err := a.sourceViews(r.Context(), l)
	if err != nil {
		return err
	}
	return a.show(w, r, http.StatusOK, "sources", frame{Title: l.T("nav.sources"), Nav: "/sources", Help: "help.sources", Body: list})
}

// destinationViews lists the configured destinations, then those of which only jobs
// are left: nothing that was accepted is dropped in silence.
func (a *Admin) destinationViews(l *locale, t store.Totals) []destinationView {
	var out []destinationView
	from := map[string][]string{}
	for _, s := range a.opt.Sources() {
		for _, d := range s.DeliverTo {
			from[d] = append(from[d], s.Name)
		}
	}
	known := map[string]bool{}
	for _, d := range a.opt.Destinations() {
		known[d.Name] = true
		v := destinationView{Destination: d, Lane: t.ByDestination[d.Name], Shown: maskURL(d.URL), From: from[d.Name]}
		switch {
		case v.Lane.Dead > 0:
			v.Chip = chip{Role: "bad", Icon: "x-octagon", Word: l.N("dest.dead", v.Lane.Dead)}
		case v.Lane.Queued+v.Lane.Leased > 0:
			v.Chip = chip{Role: "info", Icon: "list", Word: l.N("dest.waiting", v.Lane.Queued+v.Lane.Leased)}
		default:
			v.Chip = chip{Role: "ok", Icon: "check", Word: l.T("dest.idle")}
		}
		v.Oldest, v.State = v.Lane.OldestDue, a.lane(d.Name)
		if c, ok := l.laneChip(v.State, a.opt.Now()); ok {
			v.Chip = c
		}
		out = append(out, v)
	}
	for _, name := range sortedNames(t.ByDestination) {
		lane := t.ByDestination[name]
		if known[name] || lane.Queued+lane.Leased+lane.Dead == 0 {
			continue
		}
		out = append(out, destinationView{Destination: Destination{Name: name}, Gone: true, Lane: lane, Oldest: lane.OldestDue,
			Chip: chip{Role: "bad", Icon: "alert", Word: l.T("dest.gone")}})
	}
	slices.SortStableFunc(out, func(x, y destinationView) int {
		switch {
		case x.Gone == y.Gone:
			return 0
		case x.Gone:
			return -1
		}
		return 1
	})
	return out
}

func (a *Admin) destinations(w http.ResponseWriter, r *http.Request) error {
	l := a.localeOf(r)
	t, err := a.opt.Archive.Totals(r.Context())
	if err != nil {
		return err
	}
	views := a.destinationViews(l, t)
	if err := a.addHeld(r.Context(), l, views); err != nil {
		return err
	}
	return a.show(w, r, http.StatusOK, "destinations", frame{Title: l.T("nav.destinations"), Nav: "/destinations", Help: "help.destinations", Body: views})
}
