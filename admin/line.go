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
	Ahead bool   // has not happened yet
	same  string // answer of a failed attempt: steps of the same are drawn together
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
			rest = append(rest, l.attemptStep(&attempts[i], j, toJob(d, j)))
		}
	}
	for _, e := range trail {
		rest = append(rest, step{At: e.At, Icon: "user", Role: "info", What: l.T("line.person", who(l, e.By), l.act(e)), Why: visible(e.Reason, false)})
	}
	rest = append(rest, l.settled(d, now)...)
	slices.SortStableFunc(rest, func(x, y step) int { return x.At.Compare(y.At) })
	rest = l.fold(rest)
	if n := len(rest); n > stepsShown {
		gap := step{At: rest[5].At, Icon: "more", Role: "mute", What: l.N("line.more", int64(n-stepsShown))}
		rest = append(append(slices.Clone(rest[:5]), gap), rest[n-stepsShown+5:]...)
	}
	out = append(out, rest...)
	return append(append(out, l.ahead(d, now)...), a.held(l, d)...)
}

// fold draws attempts together that failed alike, one after the other: the first and
// the last are told, those between are counted. Each stands under its job.
func (l *locale) fold(list []step) []step {
	var out []step
	for i := 0; i < len(list); {
		j := i + 1
		for list[i].same != "" && j < len(list) && list[j].same == list[i].same {
			j++
		}
		if between := j - i - 2; between > 1 {
			out = append(out, list[i], step{At: list[i+1].At, Icon: "more", Role: "mute", What: l.N("line.alike", int64(between), list[i].same)}, list[j-1])
		} else {
			out = append(out, list[i:j]...)
		}
		i = j
	}
	return out
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

func (l *locale) attemptStep(at *store.Attempt, j *store.Job, to string) step {
	c := outcomeLooks[at.Outcome]
	st := step{At: at.StartedAt, Icon: c.Icon, Role: c.Role}
	if at.Duration > 0 {
		st.Took = l.span(at.Duration)
	}
	switch at.Outcome {
	case store.Succeeded:
		st.Icon, st.What, st.Why = "check-check", l.T("line.delivered", j.Destination), l.T("line.ok", at.N, l.class(at.Status, at.Class))
		if at.Status == 0 {
			st.Why = l.T("line.ok_pull", at.N)
		}
	case store.Failed:
		st.What, st.Why = l.T("line.failed", at.N, l.class(at.Status, at.Class))+to, ""
		st.same = l.class(at.Status, at.Class) + to
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

// settled is how jobs ended, when that is more than their last attempt says.
func (l *locale) settled(d *store.Delivery, now time.Time) []step {
	var out []step
	if d.DuplicateOf != 0 {
		out = append(out, step{At: d.ReceivedAt, Icon: "copy", Role: "mute", What: l.T("line.duplicate_of", "#"+strconv.FormatInt(d.DuplicateOf, 10))})
	}
	for i := range d.Jobs {
		j := &d.Jobs[i]
		switch j.State {
		case store.Dead:
			out = append(out, step{At: j.SettledAt, Icon: "x-octagon", Role: "bad", What: l.T("line.dead") + toJob(d, j), Why: l.T("reason." + reasonWords[j.Reason])})
		case store.Cancelled, store.Superseded, store.Filtered:
			c := l.chipOf(stateWords[j.State], time.Time{}, now)
			out = append(out, step{At: j.SettledAt, Icon: c.Icon, Role: c.Role, What: c.Word + toJob(d, j), Why: l.endedBy(j)})
		}
	}
	return out
}

// endedBy says what ended a job that nobody tried any more.
func (l *locale) endedBy(j *store.Job) string {
	if by := superseded(j); by != "" {
		return l.T("line.superseded_by", by)
	}
	return visible(store.ParseNote(j.Note).Rule, false)
}

// ahead is what is planned or under way.
func (l *locale) ahead(d *store.Delivery, now time.Time) []step {
	var out []step
	for i := range d.Jobs {
		j := &d.Jobs[i]
		switch j.State {
		case store.Queued:
			st := step{At: j.DueAt, Icon: "clock", Role: "wait", What: l.T("line.next", j.Attempts+1) + toJob(d, j), Ahead: true}
			if j.Waits {
				st.Icon, st.Role, st.What = "list", "info", l.T("line.turn")+toJob(d, j)
			} else if !j.DueAt.After(now) {
				st.Icon, st.Role, st.What = "list", "info", l.T("line.due", j.Attempts+1)+toJob(d, j)
			}
			out = append(out, st)
		case store.Leased:
			out = append(out, step{At: j.LeaseUntil, Icon: "loader", Role: "info", What: l.T("line.leased") + toJob(d, j), Why: visible(j.LeaseOwner, false), Ahead: true})
		}
	}
	return out
}

// toJob names the destination where there are several.
func toJob(d *store.Delivery, j *store.Job) string {
	if len(d.Jobs) < 2 {
		return ""
	}
	return " → " + j.Destination
}
