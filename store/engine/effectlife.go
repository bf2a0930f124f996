package engine

import (
	"time"

	"acuse/store"
)

// RunEffect begins another try; see store.Effects.
func RunEffect(e *store.Effect, token int64, owner string, at time.Time, next int64) error {
	switch {
	case token == 0 && (e.State != store.EffectWaiting || e.ApprovedAt.IsZero()):
		return store.ErrState
	case token != 0 && (e.State != store.EffectInProgress || e.Token != token):
		return store.ErrLeaseLost
	case e.RequestGone:
		return store.ErrPayloadGone
	}
	begin(e, next, owner, at, 0)
	return nil
}

// RenewEffect moves the deadline of a claim; see store.Effects.
func RenewEffect(e *store.Effect, token int64, until time.Time) error {
	if e.State != store.EffectInProgress || token == 0 || e.Token != token {
		return store.ErrLeaseLost
	}
	e.Until = until
	return nil
}

// SettleEffect ends a try; see store.Effects.
func SettleEffect(e *store.Effect, s *store.EffectSettlement) error {
	unsettled := e.State == store.EffectInProgress || e.State == store.EffectInDoubt
	if !unsettled || s.Token == 0 || e.Token != s.Token {
		return store.ErrLeaseLost
	}
	e.State, e.Status, e.Class, e.Error, e.Until = s.State, s.Status, s.Class, s.Error, time.Time{}
	switch s.State {
	case store.EffectDone, store.EffectFailed:
		finish(e, s.At)
	case store.EffectInDoubt:
		e.SettledAt = s.At
	default:
		return store.ErrState
	}
	e.AnswerGone = false
	return nil
}

// ExpireEffect ends what time ends and tells whether it did; see store.Effects.
func ExpireEffect(e *store.Effect, now time.Time) bool {
	switch {
	case lapsed(e, now):
		lapse(e, now)
	case e.State == store.EffectInProgress && ranOut(e, now):
		doubt(e, now)
	default:
		return false
	}
	return true
}

// EffectDue is when time has something to end; ok is false for never.
func EffectDue(e *store.Effect) (due time.Time, ok bool) {
	switch {
	case e.State == store.EffectWaiting && e.ApprovedAt.IsZero():
		due = e.ApprovalBy
	case e.State == store.EffectInProgress:
		due = e.Until
	}
	return due, !due.IsZero()
}

// DecideEffect does what a person says; see store.Effects. An approval in time counts,
// whether or not a sweep has passed since.
func DecideEffect(e *store.Effect, d *store.EffectDecision) error {
	from := store.EffectWaiting
	if d.Act == store.MarkDone || d.Act == store.RetryEffect {
		from = store.EffectInDoubt
	}
	if e.State != from || lapsed(e, d.At) || (from == store.EffectWaiting && !e.ApprovedAt.IsZero()) {
		return store.ErrState
	}
	if d.Card != "" && d.Card != e.Card {
		return store.ErrCardChanged
	}
	e.DecidedBy, e.Note = d.By.Name, d.Reason
	switch d.Act {
	case store.ApproveEffect:
		e.ApprovedAt = d.At
	case store.RefuseEffect:
		e.State = store.EffectRefused
		finish(e, d.At)
	case store.MarkDone:
		e.State, e.AnswerGone = store.EffectDone, true
		finish(e, d.At)
	case store.RetryEffect:
		e.State, e.ApprovedAt, e.SettledAt, e.Token = store.EffectWaiting, d.At, time.Time{}, 0
	default:
		return store.ErrState
	}
	return nil
}
