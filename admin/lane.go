package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"acuse/access"
	"acuse/problem"
	"acuse/store"
)

// LaneState is how a destination stands now. Its zero value is one that is not configured.
type LaneState struct {
	Paused      time.Time // since when; zero: it is not
	Down        time.Time // since when; zero: it is not
	Status      int       // of the outage: how the latest attempt ended
	Class       string
	Probes      int       // that came to nothing since then
	ProbeAt     time.Time // when the next probe may be sent
	Probing     bool      // one is under way
	HoldUntil   time.Time // an answer 429 asked for quiet until then; zero: none did
	Sends       int       // requests at a time; below Concurrency while it starts slowly
	Concurrency int
	Rate        float64 // a second; 0 is no limit
	MaxAge      time.Duration
	Pull        bool // workers come and ask: it has no breaker
}

// Errors of Options.LaneAct.
var (
	ErrNotDown = errors.New("the destination is not down")
	ErrPaused  = errors.New("the destination is paused")
)

// laneActs are what a person can do with a destination, and their words in the audit.
var laneActs = map[string]string{"pause": "destination.pause", "resume": "destination.resume", "probe": "destination.probe"}

// actOnLane does it and writes it down. changed is false when there was nothing to do.
func (a *Admin) actOnLane(r *http.Request, by store.Actor, act string) (changed bool, err error) {
	name, word := r.PathValue("name"), laneActs[act]
	if a.opt.LaneAct == nil {
		return false, errAbsent
	}
	if word == "" {
		return false, badInput("action: want pause, resume or probe")
	}
	changed, err = a.opt.LaneAct(context.WithoutCancel(r.Context()), name, act)
	if err == nil && changed {
		a.note(r.Context(), store.AuditEntry{By: by, Act: word, Subject: name})
	}
	return changed, err
}

func (a *Admin) apiLaneAct(act string) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := a.actOnLane(r, actor(r, grantOf(r)), act); err != nil {
			switch {
			case errors.Is(err, ErrNotDown):
				return apiError{http.StatusConflict, "not-down", "a probe is for a destination that is down"}
			case errors.Is(err, ErrPaused):
				return apiError{http.StatusConflict, "paused", "resume the destination first"}
			}
			return err
		}
		t, err := a.opt.Archive.Totals(r.Context())
		if err != nil {
			return err
		}
		for _, d := range a.destinationViews(a.locales["en"], t) {
			if d.Name == r.PathValue("name") {
				problem.WriteJSON(w, http.StatusOK, destinationInfo(d))
				return nil
			}
		}
		return store.ErrNotFound
	}
}

// lane is how a destination stands.
func (a *Admin) lane(name string) LaneState {
	if a.opt.Lane == nil {
		return LaneState{}
	}
	return a.opt.Lane(name)
}

// laneChip says what matters most: paused, then down, then held.
func (l *locale) laneChip(s LaneState, now time.Time) (chip, bool) {
	switch {
	case !s.Paused.IsZero():
		return chip{Role: "wait", Icon: "clock", Word: l.T("lane.paused")}, true
	case !s.Down.IsZero():
		return chip{Role: "bad", Icon: "alert", Word: l.T("lane.down")}, true
	case s.HoldUntil.After(now):
		return chip{Role: "wait", Icon: "clock", Word: l.T("lane.held")}, true
	}
	return chip{}, false
}

// laneNotes are the sentences that tell how a destination stands.
func (l *locale) laneNotes(s LaneState, waiting int64, now time.Time) (out []notice) {
	if !s.Paused.IsZero() {
		out = append(out, notice{"wait", "clock", l.T("lane.paused_text", l.full(s.Paused), l.N("dest.waiting", waiting))})
	}
	if !s.Down.IsZero() {
		out = append(out, notice{"bad", "alert", l.T("lane.down_text", l.full(s.Down), l.class(s.Status, s.Class))})
		switch left := s.ProbeAt.Sub(now); {
		case !s.Paused.IsZero():
		case s.Probing:
			out = append(out, notice{"info", "loader", l.T("lane.probing")})
		case left > 0:
			out = append(out, notice{"info", "clock", l.N("lane.probe_in", int64(s.Probes), l.span(left.Round(time.Second)))})
		default:
			out = append(out, notice{"info", "clock", l.T("lane.probe_due")})
		}
		return out
	}
	if s.HoldUntil.After(now) {
		out = append(out, notice{"wait", "clock", l.T("lane.held_text", l.full(s.HoldUntil))})
	}
	if s.Sends < s.Concurrency {
		out = append(out, notice{"info", "list", l.T("lane.slow", s.Sends, s.Concurrency)})
	}
	return out
}

// notice is a sentence with its colour and its sign.
type notice struct{ Role, Icon, Text string }

// laneFacts are the settings of a destination's pace.
func (l *locale) laneFacts(s LaneState) (out []fact) {
	if s.Concurrency > 0 && !s.Pull {
		out = append(out, fact{l.T("lane.concurrency"), l.num(int64(s.Concurrency))})
	}
	if s.Rate > 0 {
		out = append(out, fact{l.T("lane.rate"), l.T("lane.rate_is", strconv.FormatFloat(s.Rate, 'g', 3, 64))})
	}
	if s.MaxAge > 0 {
		out = append(out, fact{l.T("lane.max_age"), l.span(s.MaxAge)})
	}
	return out
}

// held are the steps of a delivery's queued jobs that wait for their destination.
func (a *Admin) held(l *locale, d *store.Delivery) (out []step) {
	for i := range d.Jobs {
		j := &d.Jobs[i]
		if j.State != store.Queued || j.Waits {
			continue
		}
		s := a.lane(j.Destination)
		switch {
		case !s.Paused.IsZero():
			out = append(out, step{At: s.Paused, Icon: "clock", Role: "wait", What: l.T("line.paused") + toJob(d, j), Ahead: true})
		case !s.Down.IsZero():
			out = append(out, step{At: s.Down, Icon: "alert", Role: "wait", What: l.T("line.down") + toJob(d, j), Why: l.T("line.down_why"), Ahead: true})
		}
	}
	return out
}

// destinationPage is the page of one destination.
type destinationPage struct {
	destinationView
	Notes    []notice
	Facts    []fact
	CanPause bool
	IsPaused bool
	CanProbe bool
}

func (a *Admin) destination(w http.ResponseWriter, r *http.Request) error {
	l := a.localeOf(r)
	t, err := a.opt.Archive.Totals(r.Context())
	if err != nil {
		return err
	}
	list := a.destinationViews(l, t)
	i := slices.IndexFunc(list, func(d destinationView) bool { return d.Name == r.PathValue("name") })
	if i < 0 {
		return store.ErrNotFound
	}
	if err := a.addHeld(r.Context(), l, list[i:i+1]); err != nil {
		return err
	}
	d, s := list[i], list[i].State
	may := a.opt.LaneAct != nil && !d.Gone && visitOf(r.Context()).grant.May(access.Resend)
	body := destinationPage{destinationView: d, Notes: l.laneNotes(s, d.Lane.Queued, a.opt.Now()), Facts: l.laneFacts(s),
		CanPause: may, IsPaused: !s.Paused.IsZero(), CanProbe: may && s.Paused.IsZero() && !s.Down.IsZero() && !s.Probing}
	return a.show(w, r, http.StatusOK, "destination", frame{Title: d.Name, Nav: "/destinations", Help: "help.destinations", Body: body})
}

func (a *Admin) destinationAct(w http.ResponseWriter, r *http.Request) error {
	l, v, act := a.localeOf(r), visitOf(r.Context()), r.PostFormValue("action")
	name := r.PathValue("name")
	if laneActs[act] == "" {
		return store.ErrNotFound
	}
	_, err := a.actOnLane(r, actor(r, v.grant), act)
	switch {
	case errors.Is(err, ErrNotDown):
		v.flash(r.Context(), "ok", l.T("lane.not_down", name))
	case errors.Is(err, ErrPaused):
		v.flash(r.Context(), "bad", l.T("lane.probe_paused", name))
	case err != nil:
		return err
	default:
		v.flash(r.Context(), "ok", l.T("lane.did_"+act, name))
	}
	a.redirect(w, r, "/destinations/"+url.PathEscape(name))
	return nil
}
