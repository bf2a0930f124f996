package admin

import (
	"strconv"
	"time"

	"acuse/store"
)

// chip is a state as it is shown: a shape, a word, and a role that colour follows.
type chip struct {
	Role, Icon, Word, Extra string
}

// stateWords names job and delivery states in the API and in addresses.
var stateWords = map[store.JobState]string{
	store.Queued: "queued", store.Leased: "leased", store.Delivered: "delivered", store.Dead: "dead",
	store.Cancelled: "cancelled", store.Superseded: "superseded", store.Filtered: "filtered",
}

// deliveryStates in the order of the filter.
var deliveryStates = []store.DeliveryState{store.StateQueued, store.StateLeased, store.StateDelivered, store.StateDead,
	store.StateCancelled, store.StateSuperseded, store.StateFiltered, store.StateQuarantined}

var stateLooks = map[string]chip{
	"queued": {Role: "info", Icon: "list"}, "retry": {Role: "wait", Icon: "clock"}, "leased": {Role: "info", Icon: "loader"},
	"delivered": {Role: "ok", Icon: "check"}, "dead": {Role: "bad", Icon: "x-octagon"}, "cancelled": {Role: "mute", Icon: "ban"},
	"superseded": {Role: "mute", Icon: "fast-forward"}, "filtered": {Role: "mute", Icon: "filter"},
	"quarantined": {Role: "wait", Icon: "shield-alert"}, "rejected": {Role: "bad", Icon: "shield-x"},
}

// chipOf is the chip of a state's name; due is when a queued one is tried again.
func (l *locale) chipOf(state string, due, now time.Time) chip {
	if state == "queued" && due.After(now) {
		c := stateLooks["retry"]
		c.Word = l.T("state.retry", l.at(due, now, clockFor(due, now)))
		return c
	}
	c, ok := stateLooks[state]
	if !ok {
		c = chip{Role: "mute", Icon: "circle-dot"}
	}
	c.Word = l.T("state." + state)
	return c
}

// clockFor shows seconds only while they matter to whoever waits.
func clockFor(due, now time.Time) string {
	if due.Sub(now) < 10*time.Minute {
		return "15:04:05"
	}
	return "15:04"
}

// deliveryChip shows the worst state and, with several destinations, how many took it.
func (l *locale) deliveryChip(d *store.Delivery, now time.Time) chip {
	var due time.Time
	done := 0
	for i := range d.Jobs {
		if j := &d.Jobs[i]; j.State == store.Queued {
			if !j.Waits && (due.IsZero() || j.DueAt.Before(due)) {
				due = j.DueAt
			}
		} else if j.State == store.Delivered {
			done++
		}
	}
	c := l.chipOf(string(d.State), due, now)
	if n := len(d.Jobs); n > 1 && done < n {
		c.Extra = l.N("state.of", int64(done), n)
	}
	return c
}

// nextAttempt is the earliest due time of the queued jobs; zero: none waits.
func nextAttempt(jobs []store.Job) (due time.Time) {
	for i := range jobs {
		if j := &jobs[i]; j.State == store.Queued && !j.Waits && (due.IsZero() || j.DueAt.Before(due)) {
			due = j.DueAt
		}
	}
	return due
}

// answer says what came back: "503, 1.2 s", "Connection refused, 3 ms".
func (l *locale) answer(status int, class string, took time.Duration) string {
	s := l.class(status, class)
	if s != "" && took > 0 {
		s += ", " + l.span(took)
	}
	return s
}

// class is an error class in words, or the status.
func (l *locale) class(status int, class string) string {
	switch {
	case status != 0 && (class == "" || class == "status" || class == "redirect"):
		return strconv.Itoa(status)
	case class == "":
		return ""
	case class == "exit":
		return l.T("class.exit", status)
	case class == "signal":
		return l.T("class.signal", status-128)
	}
	if _, ok := l.words["class."+class]; ok {
		return l.T("class." + class)
	}
	return visible(class, false)
}

// hint is what to look at after a failure; empty where there is nothing to say.
func (l *locale) hint(status int, class, address string) string {
	key := "hint." + class
	switch {
	case class == "refused" && address == "":
		key = "hint.refused_here"
	case class == "exit" && (status == 75 || status == 126 || status == 127):
		key = "hint.exit_" + strconv.Itoa(status)
	case class == "signal" && status == 137: // SIGKILL
		key = "hint.killed"
	case status == 400 || status == 401 || status == 403:
		key = "hint.signature"
	case status == 404 || status == 405:
		key = "hint.path"
	case status == 410:
		key = "hint.gone"
	case status == 413:
		key = "hint.size"
	case status == 429:
		key = "hint.slow_down"
	case status >= 300 && status < 400:
		key = "hint.redirect"
	case status >= 500:
		key = "hint.app"
	}
	if _, ok := l.words[key]; !ok {
		return ""
	}
	return l.T(key, address)
}

// budget says "2 of 12", or only the number where tries have no limit.
func (l *locale) budget(spent, budget int) string {
	if budget <= 0 {
		return l.num(int64(spent))
	}
	return l.T("attempts.of", spent, max(budget, spent))
}

var outcomeWords = map[store.AttemptOutcome]string{
	store.Running: "running", store.Succeeded: "succeeded", store.Failed: "failed", store.Interrupted: "interrupted",
}

var reasonWords = map[store.DeadReason]string{
	store.Exhausted: "exhausted", store.RefusedByApp: "refused", store.TooOld: "too_old",
}
