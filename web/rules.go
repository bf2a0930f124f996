package web

import (
	"errors"
	"net/http"
	"strings"

	"acuse/provider"
	"acuse/rule"
	"acuse/store"
)

// Filter is a rule that an event must meet.
type Filter struct {
	Rule *rule.Rule
	Park bool // an event for which the rule fails becomes a dead letter; else it is delivered
}

// Order is the order in which a destination gets its events.
type Order struct {
	By     *rule.Rule // gives the value; nil: the event's resource
	Strict bool       // a dead letter blocks what comes after it
}

// Types is a list of patterns for event types; * stands for any text.
type Types []string

// Match tells whether a pattern fits.
func (t Types) Match(kind string) bool {
	for _, pattern := range t {
		if fits(pattern, kind) {
			return true
		}
	}
	return false
}

func fits(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// judged is an event of a request on its way to its jobs, as rules see it.
type judged struct {
	src    *source
	event  *store.Event
	newest bool // the provider says that a greater version replaces a lower one
	facts  rule.Event
}

// judge makes ready what rules may ask for; nothing is parsed yet.
func (s *source) judge(e *store.Event, in *provider.Event, method string, header http.Header, body []byte) judged {
	if in.Part >= 0 {
		body = in.Bytes
	}
	return judged{s, e, in.Supersedes, rule.Event{
		Source: s.Name, Method: method, ID: e.ID, Type: e.Type, Resource: e.Resource, Test: e.Test, Header: header, Body: body,
	}}
}

// apply decides over one job: whether its rules let it through, and its order, which one
// that is not let through has when a person resends it.
func (j *judged) apply(job *store.NewJob, lane *Destination) {
	if !j.stops(job, j.src.Filter, true) {
		j.stops(job, lane.Filter, false)
	}
	if o := lane.Order; o != nil {
		job.Strict = o.Strict
		if o.By == nil {
			job.Order = j.event.Resource
		} else if value, err := j.facts.Value(o.By); err == nil {
			job.Order = value
		} else if job.Note == "" {
			job.Note = ruleNote(o.By, "order_by", false, err)
		}
	}
	job.Latest = job.State == store.Queued && j.newest && lane.LatestOnly.Match(j.event.Type)
}

// stops tells whether a filter keeps the job from being sent.
func (j *judged) stops(job *store.NewJob, f *Filter, ofSource bool) bool {
	if f == nil {
		return false
	}
	yes, err := j.facts.Decide(f.Rule)
	switch {
	case err != nil:
		job.Note = ruleNote(f.Rule, "filter", ofSource, err)
		if f.Park {
			job.State = store.Dead
		}
		return f.Park
	case !yes:
		job.State, job.Note = store.Filtered, ruleNote(f.Rule, "filter", ofSource, nil)
	}
	return !yes
}

// ruleNote is what a job keeps of a rule.
func ruleNote(r *rule.Rule, key string, ofSource bool, err error) string {
	n := store.Note{Rule: r.String(), Key: key, Source: ofSource}
	var e *rule.Error
	if errors.As(err, &e) {
		n.Failed, n.Line, n.Column = e.Word, e.Line, e.Column
	}
	return n.String()
}
