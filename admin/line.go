package admin

import (
	"slices"
	"strconv"
	"time"

	"acuse/store"
)

// step is one point of the line of time.
type step struct {
	At    time.Time
	Icon  string
	Role  string
	What  string
	Why   string // what went wrong, or a detail
	Took  string
	Ahead bool // has not happened yet
}

// stepsShown bounds the line: the first and the last of many attempts.
const stepsShown = 40

// steps tells a delivery's life from top to bottom.
func (a *Admin) steps(l *locale, d *store.Delivery, s Source, attempts []store.Attempt, trail []store.AuditEntry, now time.Time) []step {
	out := l.arrival(d, s)
	var rest []step
	if d.Duplicates > 0 {
		st := step{At: d.LastDuplicateAt, Icon: "copy", Role: "mute", What: l.N("line.duplicates", int64(d.Duplicates)), Why: l.T("line.duplicate_why")}
		if d.BodyDiffers > 0 {
			st.Role, st.Why = "wait", l.N("line.differs", int64(d.BodyDiffers))
		}
		rest = append(rest, st)
	}
	where := map[int64]*store.Job{}
	for i := range d.Jobs {
		where[d.Jobs[i].ID] = &d.Jobs[i]
	}
	for i := range attempts {
		if j := where[attempts[i].Job]; j != nil {
			rest = append(rest, l.attemptStep(&attempts[i], j, len(d.Jobs) > 1))
		}
	}
	for _, e := range trail {
		rest = append(rest, step{At: e.At, Icon: "user", Role: "info", What: l.T("line.person", who(l, e.By), l.act(e)), Why: visible(e.Reason, false)})
	}
	slices.SortStableFunc(rest, func(x, y step) int { return x.At.Compare(y.At) })
	if n := len(rest); n > stepsShown {
		gap := step{At: rest[5].At, Icon: "more", Role: "mute", What: l.N("line.more", int64(n-stepsShown))}
		rest = append(append(slices.Clone(rest[:5]), gap), rest[n-stepsShown+5:]...)
	}
	out = append(out, rest...)
	return append(out, l.ends(d, now)...)
}

// arrival is what happened before the answer, all within one request.
func (l *locale) arrival(d *store.Delivery, s Source) []step {
	from := l.T("line.arrived", titleOf(s))
	why := ""
	if d.Remote != "" {
		why = l.T("line.from", visible(d.Remote, false))
	}
	out := []step{{At: d.ReceivedAt, Icon: "inbox", Role: "info", What: from, Why: why}}
	sig := step{At: d.ReceivedAt, Icon: "shield-check", Role: "ok", What: l.T("line.signed")}
	switch {
	case d.Slot > 0 && s.Secrets >= d.Slot:
		sig.Why = l.T("line.secret_of", d.Slot, s.Secrets)
	case d.Slot > 0:
		sig.Why = l.T("line.secret", d.Slot)
	default:
		sig.Icon, sig.Role, sig.What = "shield-alert", "wait", l.T("line.unsigned")
	}
	out = append(out, sig)
	kept := step{At: d.ReceivedAt, Icon: "database", Role: "ok", What: l.T("line.stored")}
	if d.AckMicros > 0 {
		kept.Took = l.span(time.Duration(d.AckMicros) * time.Microsecond)
	}
	switch {
	case d.State == store.StateQuarantined:
		kept.Icon, kept.Role, kept.What, kept.Why = "shield-alert", "wait", l.T("line.quarantined"), visible(d.Quarantine, false)
	case d.Made:
		kept.Why = l.T("line.no_id")
	}
	out = append(out, kept)
	if d.CopyOf != 0 {
		out = append(out, step{At: d.ReceivedAt, Icon: "copy", Role: "mute", What: l.T("line.copy_of", "#"+strconv.FormatInt(d.CopyOf, 10))})
	}
	return out
}

func titleOf(s Source) string {
	switch {
	case s.Title != "":
		return s.Title
	case s.Provider != "":
		return s.Provider
	}
	return s.Name
}

func (l *locale) attemptStep(at *store.Attempt, j *store.Job, named bool) step {
	c := outcomeLooks[at.Outcome]
	st := step{At: at.StartedAt, Icon: c.Icon, Role: c.Role}
	if at.Duration > 0 {
		st.Took = l.span(at.Duration)
	}
	to := ""
	if named {
		to = " → " + j.Destination
	}
	switch at.Outcome {
	case store.Succeeded:
		st.What = l.T("line.ok", at.N, l.class(at.Status, at.Class)) + to
		if at.Status == 0 {
			st.What = l.T("line.ok_pull", at.N) + to
		}
	case store.Failed:
		st.What, st.Why = l.T("line.failed", at.N, l.class(at.Status, at.Class))+to, visible(at.Error, false)
		if at.Maybe {
			st.Why = l.T("line.maybe")
		}
	case store.Interrupted:
		st.What, st.Why = l.T("line.interrupted", at.N)+to, l.T("line.interrupted_why")
	default:
		st.What = l.T("line.running", at.N) + to
	}
	if at.Resend {
		st.What += " · " + l.T("line.resent")
	}
	return st
}

// ends is how it stands now: what is planned, or why it is over.
func (l *locale) ends(d *store.Delivery, now time.Time) []step {
	var out []step
	if d.DuplicateOf != 0 {
		out = append(out, step{Icon: "copy", Role: "mute", What: l.T("line.duplicate_of", "#"+strconv.FormatInt(d.DuplicateOf, 10))})
	}
	for i := range d.Jobs {
		j := &d.Jobs[i]
		to := ""
		if len(d.Jobs) > 1 {
			to = " → " + j.Destination
		}
		switch j.State {
		case store.Queued:
			st := step{At: j.DueAt, Icon: "clock", Role: "wait", What: l.T("line.next", j.Attempts+1) + to, Ahead: true}
			if !j.DueAt.After(now) {
				st.Icon, st.Role, st.What = "list", "info", l.T("line.due", j.Attempts+1)+to
			}
			out = append(out, st)
		case store.Leased:
			out = append(out, step{At: j.LeaseUntil, Icon: "loader", Role: "info", What: l.T("line.leased") + to, Why: visible(j.LeaseOwner, false), Ahead: true})
		case store.Dead:
			out = append(out, step{At: j.SettledAt, Icon: "x-octagon", Role: "bad", What: l.T("line.dead") + to, Why: l.T("reason." + reasonWords[j.Reason])})
		case store.Delivered:
			out = append(out, step{At: j.SettledAt, Icon: "check-check", Role: "ok", What: l.T("line.delivered", j.Destination)})
		case store.Cancelled, store.Superseded, store.Filtered:
			c := l.chipOf(stateWords[j.State], time.Time{}, now)
			out = append(out, step{At: j.SettledAt, Icon: c.Icon, Role: c.Role, What: c.Word + to, Why: visible(j.Note, false)})
		}
	}
	return out
}
