package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"acuse/access"
	"acuse/problem"
	"acuse/store"
)

// DeadGroup is a set of dead letters that ended alike.
type DeadGroup struct {
	ID          string  `json:"id"`
	Destination string  `json:"destination"`
	Reason      string  `json:"reason"` // exhausted, refused, too_old
	Status      *int    `json:"status"`
	Class       *string `json:"class"`
	Jobs        int64   `json:"jobs"`
	FirstAt     *string `json:"first_at"`
	LastAt      *string `json:"last_at"`
}

func (a *Admin) apiDead(w http.ResponseWriter, r *http.Request) error {
	groups, err := a.opt.Archive.DeadGroups(r.Context())
	if err != nil {
		return err
	}
	out := struct {
		Groups []DeadGroup `json:"groups"`
	}{[]DeadGroup{}}
	for _, g := range groups {
		out.Groups = append(out.Groups, DeadGroup{groupID(g), g.Destination, reasonWords[g.Reason], orNull(g.Status), orNull(g.Class), g.Jobs, stamp(g.First), stamp(g.Last)})
	}
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (a *Admin) apiDeadAct(what act) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var in struct {
			Limit  int    `json:"limit"` // 0: as many as one call takes
			Reason string `json:"reason"`
		}
		if err := readInput(w, r, &in); err != nil {
			return err
		}
		if in.Limit < 0 || in.Limit > groupLimit {
			return badInput("limit: 1 to %d", groupLimit)
		}
		if in.Limit == 0 {
			in.Limit = groupLimit
		}
		g, err := a.groupOf(r.Context(), r.PathValue("group"))
		if err != nil {
			return err
		}
		done, left, _, err := a.actOn(r.Context(), g, what, in.Limit, in.Reason, actor(r, grantOf(r)))
		if err != nil {
			return err
		}
		status := http.StatusOK
		if what == actResend {
			status = http.StatusAccepted
		}
		problem.WriteJSON(w, status, struct {
			Count   int   `json:"count"`
			Refused int   `json:"refused"` // not possible in their state
			Remain  int64 `json:"remain"`  // not looked at by this call
		}{done, left, max(0, g.Jobs-int64(done+left))})
		return nil
	}
}

// SourceInfo is a source in the API.
type SourceInfo struct {
	Name          string   `json:"name"`
	Provider      string   `json:"provider"`
	Address       string   `json:"address"`
	Secrets       int      `json:"secrets"`
	Unsigned      bool     `json:"unsigned"`
	DeliverTo     []string `json:"deliver_to"`
	LastEventAt   *string  `json:"last_event_at"`
	WindowSeconds int64    `json:"dedup_window_seconds"`
}

func (a *Admin) apiSources(w http.ResponseWriter, r *http.Request) error {
	list, err := a.sourceViews(r.Context(), a.locales["en"])
	if err != nil {
		return err
	}
	out := struct {
		Sources []SourceInfo `json:"sources"`
	}{[]SourceInfo{}}
	for _, s := range list {
		out.Sources = append(out.Sources, SourceInfo{s.Name, s.Provider, s.Address, s.Secrets, s.Unsigned, append([]string{}, s.To...), stamp(s.Last), int64(s.Source.Window / time.Second)})
	}
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

// DestinationInfo is a destination with its queue.
type DestinationInfo struct {
	Name       string   `json:"name"`
	Kind       string   `json:"kind"` // http, exec, pull; empty: only jobs are left of it
	URL        *string  `json:"url"`  // credentials and query values hidden
	Configured bool     `json:"configured"`
	Attempts   int      `json:"attempts"` // that a job has before it is dead; 0 is no limit
	Sources    []string `json:"sources"`
	Queued     int64    `json:"queued"`
	Leased     int64    `json:"leased"`
	Dead       int64    `json:"dead"`
	OldestDue  *string  `json:"oldest_due"`

	State       string   `json:"state"` // up, down, paused; an outage goes on while paused
	PausedAt    *string  `json:"paused_at"`
	DownSince   *string  `json:"down_since"`
	DownStatus  *int     `json:"down_status"` // how the latest attempt of the outage ended
	DownClass   *string  `json:"down_class"`
	Probes      int      `json:"probes"` // that came to nothing since then
	NextProbeAt *string  `json:"next_probe_at"`
	HoldUntil   *string  `json:"hold_until"`  // after a 429 with Retry-After
	Concurrency int      `json:"concurrency"` // 0: pull
	Sends       int      `json:"sends"`       // at a time now; below concurrency during a slow start
	Rate        *float64 `json:"rate"`        // a second
	MaxAge      *int64   `json:"max_age_seconds"`
}

func destinationInfo(d destinationView) DestinationInfo {
	s := d.State
	out := DestinationInfo{Name: d.Name, Kind: d.Kind, URL: orNull(d.Shown), Configured: !d.Gone, Attempts: d.Budget, Sources: append([]string{}, d.From...),
		Queued: d.Lane.Queued, Leased: d.Lane.Leased, Dead: d.Lane.Dead, OldestDue: stamp(d.Lane.OldestDue), State: "up",
		PausedAt: stamp(s.Paused), DownSince: stamp(s.Down), DownStatus: orNull(s.Status), DownClass: orNull(s.Class), Probes: s.Probes, NextProbeAt: stamp(s.ProbeAt),
		HoldUntil: stamp(s.HoldUntil), Rate: orNull(s.Rate), MaxAge: orNull(int64(s.MaxAge / time.Second))}
	if !s.Pull {
		out.Concurrency, out.Sends = s.Concurrency, s.Sends
	}
	switch {
	case !s.Paused.IsZero():
		out.State = "paused"
	case !s.Down.IsZero():
		out.State = "down"
	}
	return out
}

func (a *Admin) apiDestinations(w http.ResponseWriter, r *http.Request) error {
	t, err := a.opt.Archive.Totals(r.Context())
	if err != nil {
		return err
	}
	out := struct {
		Destinations []DestinationInfo `json:"destinations"`
	}{[]DestinationInfo{}}
	for _, d := range a.destinationViews(a.locales["en"], t) {
		out.Destinations = append(out.Destinations, destinationInfo(d))
	}
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

// Rejection is a refused request.
type Rejection struct {
	ID         int64   `json:"id"`
	Source     string  `json:"source"`
	Reason     string  `json:"reason"`
	Detail     *string `json:"detail"`
	Remote     string  `json:"remote"`
	FirstAt    *string `json:"first_at"`
	LastAt     *string `json:"last_at"`
	Count      int     `json:"count"`
	Status     int     `json:"status"`
	Signed     bool    `json:"signed"` // carried a well-formed signature header
	Size       int     `json:"size"`
	Diagnosis  string  `json:"diagnosis"` // the reason in words, in the language asked for
	Method     string  `json:"method"`
	Target     string  `json:"target"`
	BodyBase64 []byte  `json:"body_base64,omitempty"`

	Headers map[string][]string `json:"headers,omitempty"`
}

func (a *Admin) apiRejectionOf(l *locale, r *store.Rejection) Rejection {
	s := a.sourceOf(&store.Delivery{DeliveryHead: store.DeliveryHead{Source: r.Source}})
	return Rejection{ID: r.ID, Source: r.Source, Reason: r.Reason, Detail: orNull(r.Detail), Remote: r.Remote, FirstAt: stamp(r.FirstAt), LastAt: stamp(r.At),
		Count: r.Count, Status: r.Status, Signed: r.Signed, Size: r.Size, Diagnosis: l.why(r, s), Method: r.Method, Target: maskOf(s).target(r.Target)}
}

func (a *Admin) apiRejections(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	before, ok := readID(q.Get("before"))
	if !ok && q.Get("before") != "" {
		return badInput("before: not a number")
	}
	limit, err := readLimit(q.Get("limit"))
	if err != nil {
		return err
	}
	list, err := a.opt.Rejections.RejectionList(r.Context(), q.Get("source"), before, limit)
	if err != nil {
		return err
	}
	out := struct {
		Rejections []Rejection `json:"rejections"`
		Next       string      `json:"next"`
	}{Rejections: []Rejection{}}
	for i := range list {
		out.Rejections = append(out.Rejections, a.apiRejectionOf(a.asked(r), &list[i]))
	}
	if len(list) == limit {
		out.Next = cursor(list[limit-1].ID)
	}
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (a *Admin) apiRejection(w http.ResponseWriter, r *http.Request) error {
	id, ok := readID(r.PathValue("id"))
	if !ok {
		return store.ErrNotFound
	}
	rej, err := a.opt.Rejections.RejectionByID(r.Context(), id)
	if err != nil {
		return err
	}
	h, err := store.DecodeHeader(rej.Header)
	if err != nil {
		return err
	}
	out := a.apiRejectionOf(a.asked(r), &rej)
	s := a.sourceOf(&store.Delivery{DeliveryHead: store.DeliveryHead{Source: rej.Source}})
	out.Headers = maskOf(s).headersOf(h)
	if grantOf(r).May(access.Body) {
		out.BodyBase64 = rej.Body
	}
	problem.WriteJSON(w, http.StatusOK, out)
	return nil
}

// Counts are what waits now.
type Counts struct {
	Deliveries   int64         `json:"deliveries"` // highest number given out
	Queued       int64         `json:"queued"`
	Leased       int64         `json:"leased"`
	Dead         int64         `json:"dead"`
	Quarantined  int64         `json:"quarantined"`
	OldestDue    *string       `json:"oldest_due"`
	NewestAt     *string       `json:"newest_received_at"`
	Rejections   int64         `json:"rejections"` // since `since`; by default 24 h
	Destinations []LaneNumbers `json:"destinations"`
}

// LaneNumbers count one destination's jobs.
type LaneNumbers struct {
	Name      string  `json:"name"`
	Queued    int64   `json:"queued"`
	Leased    int64   `json:"leased"`
	Dead      int64   `json:"dead"`
	OldestDue *string `json:"oldest_due"`
}

func (a *Admin) counts(ctx context.Context, since time.Time) (Counts, error) {
	t, err := a.opt.Archive.Totals(ctx)
	if err != nil {
		return Counts{}, err
	}
	refused, err := a.opt.Rejections.RejectionsSince(ctx, since)
	if err != nil {
		return Counts{}, err
	}
	out := Counts{Deliveries: t.Deliveries, Queued: t.Queued, Leased: t.Leased, Dead: t.Dead, Quarantined: t.Quarantined,
		OldestDue: stamp(t.OldestDue), NewestAt: stamp(t.Newest), Rejections: refused, Destinations: []LaneNumbers{}}
	for _, name := range sortedNames(t.ByDestination) {
		l := t.ByDestination[name]
		out.Destinations = append(out.Destinations, LaneNumbers{name, l.Queued, l.Leased, l.Dead, stamp(l.OldestDue)})
	}
	return out, nil
}

func (a *Admin) apiStats(w http.ResponseWriter, r *http.Request) error {
	since := a.opt.Now().Add(-24 * time.Hour)
	if s := r.URL.Query().Get("since"); s != "" {
		var ok bool
		if since, ok = a.readTime(s); !ok {
			return badInput("since: RFC 3339")
		}
	}
	c, err := a.counts(r.Context(), since.UTC())
	if err != nil {
		return err
	}
	problem.WriteJSON(w, http.StatusOK, c)
	return nil
}

// apiEvents streams changes until the caller leaves, is too slow, or acuse stops.
func (a *Admin) apiEvents(w http.ResponseWriter, r *http.Request) error {
	out := http.NewResponseController(w)
	since, ch, whole := a.hub.join(r.Header.Get("Last-Event-ID"))
	defer a.hub.leave(ch)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	say := func(format string, args ...any) bool {
		if err := out.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	ok := say("retry: 2000\n\n")
	if !whole {
		ok = ok && say("event: reset\ndata: {}\n\n")
	}
	for _, c := range since {
		ok = ok && say("id: %s\nevent: delivery\ndata: {\"delivery\":%d}\n\n", a.hub.id(c), c.Delivery)
	}
	beat := time.NewTicker(15 * time.Second)
	defer beat.Stop()
	for ok {
		select {
		case c, open := <-ch:
			if !open {
				return nil
			}
			ok = say("id: %s\nevent: delivery\ndata: {\"delivery\":%d}\n\n", a.hub.id(c), c.Delivery)
		case <-beat.C:
			if _, err := a.caller(r); err != nil {
				return nil // logged out, or the token was revoked
			}
			ok = say(": beat\n\n")
		case <-r.Context().Done():
			return nil
		}
	}
	return nil
}
