package engine

import (
	"cmp"
	"time"

	"acuse/store"
)

// The life of an effect, without a disk: an engine reads the row that its unique
// constraint found, asks here what becomes of it, and writes that in the same
// transaction.

// ClaimEffect tells what a claim makes of the effect of its key; old is nil when there is
// none. runs counts the tries of the scope that began within the claim's LimitWindow; it
// is asked at most once. token is the next fencing token. changed says that the effect
// is to be written; a new one has no number yet.
func ClaimEffect(old *store.Effect, c *store.EffectClaim, runs func() (int, error), token int64) (out store.EffectClaimed, changed bool, err error) {
	if old == nil || forgotten(old, c.Now) {
		out.New, out.Effect = true, newEffect(c)
		why, err := needsApproval(c, runs)
		if err != nil {
			return out, false, err
		}
		claimOrWait(&out, c, why, token)
		return out, true, nil
	}
	out.Effect = *old
	e := &out.Effect
	if e.Fingerprint != c.Fingerprint {
		out.Verdict = store.ClaimMismatch
		return out, false, nil
	}
	switch e.State {
	case store.EffectDone:
		out.Verdict = store.ClaimReplay
		e.Replays, e.LastReplayAt = e.Replays+1, c.Now
		return out, true, nil
	case store.EffectRefused:
		out.Verdict = store.ClaimRefused
	case store.EffectExpired:
		out.Verdict = store.ClaimExpired
	case store.EffectInDoubt:
		out.Verdict = store.ClaimDoubt
	case store.EffectInProgress:
		return inProgress(out, c)
	case store.EffectWaiting:
		return waiting(out, c, token)
	case store.EffectFailed:
		return again(out, c, runs, token)
	}
	return out, false, nil
}

// forgotten tells whether a finished effect has outlived its time: its key is new.
func forgotten(e *store.Effect, now time.Time) bool {
	return e.State.Finished() && !e.ExpiresAt.IsZero() && !e.ExpiresAt.After(now)
}

func newEffect(c *store.EffectClaim) store.Effect {
	e := store.Effect{
		Scope: c.Scope, Agent: c.Agent, Action: c.Action, Key: c.Key, Origin: c.Origin,
		Fingerprint: c.Fingerprint, Delivery: c.Delivery, Task: c.Task, Step: c.Step, CreatedAt: c.Now,
	}
	renew(&e, c)
	return e
}

// renew takes over what may differ from claim to claim under one fingerprint.
func renew(e *store.Effect, c *store.EffectClaim) {
	e.Card, e.Method, e.Path, e.UpstreamKey, e.Expiry = c.Card, c.Method, c.Path, c.UpstreamKey, c.Expiry
	e.Job, e.Attempt = cmp.Or(c.Job, e.Job), cmp.Or(c.Attempt, e.Attempt)
	e.RequestGone, e.AnswerGone = false, false
	e.Status, e.Class, e.Error = 0, "", ""
	e.SettledAt, e.ExpiresAt = time.Time{}, time.Time{}
}

// again runs a failed effect once more. What a person approved stays approved as long
// as the bytes are the same.
func again(out store.EffectClaimed, c *store.EffectClaim, runs func() (int, error), token int64) (store.EffectClaimed, bool, error) {
	e := &out.Effect
	if out.NewCard = e.Card != c.Card; out.NewCard {
		unapprove(e)
	}
	renew(e, c)
	why := ""
	if e.ApprovedAt.IsZero() {
		var err error
		if why, err = needsApproval(c, runs); err != nil {
			return out, false, err
		}
	}
	claimOrWait(&out, c, why, token)
	return out, true, nil
}

func unapprove(e *store.Effect) { e.ApprovedAt, e.DecidedBy, e.Note = time.Time{}, "", "" }

func needsApproval(c *store.EffectClaim, runs func() (int, error)) (string, error) {
	if c.NeedsApproval != "" || c.LimitRuns == 0 {
		return c.NeedsApproval, nil
	}
	n, err := runs()
	if err != nil || n < c.LimitRuns {
		return "", err
	}
	return "limit", nil
}

func claimOrWait(out *store.EffectClaimed, c *store.EffectClaim, why string, token int64) {
	e := &out.Effect
	if why == "" {
		out.Verdict = store.ClaimRun
		begin(e, token, c.Owner, c.Now, c.TTL)
		return
	}
	out.Verdict = store.ClaimWaits
	e.State, e.Approval, e.Token, e.Owner = store.EffectWaiting, why, 0, ""
	e.ApprovalBy = time.Time{}
	if c.ApprovalTimeout > 0 {
		e.ApprovalBy = c.Now.Add(c.ApprovalTimeout)
	}
}

func begin(e *store.Effect, token int64, owner string, at time.Time, ttl time.Duration) {
	e.State, e.Token, e.Owner, e.StartedAt, e.Until = store.EffectInProgress, token, owner, at, time.Time{}
	if ttl > 0 {
		e.Until = at.Add(ttl)
	}
	if e.FirstTryAt.IsZero() {
		e.FirstTryAt = at
	}
	e.Tries++
}

// inProgress renews the claim of the one who holds it, even after its deadline; for
// others a claim that ran out is in doubt.
func inProgress(out store.EffectClaimed, c *store.EffectClaim) (store.EffectClaimed, bool, error) {
	e := &out.Effect
	switch {
	case c.Token != 0 && c.Token == e.Token:
		out.Verdict = store.ClaimRun
		if c.TTL > 0 {
			e.Until = c.Now.Add(c.TTL)
		}
		return out, true, nil
	case ranOut(e, c.Now):
		doubt(e, c.Now)
		out.Verdict = store.ClaimDoubt
		return out, true, nil
	}
	out.Verdict = store.ClaimBusy
	return out, false, nil
}

func ranOut(e *store.Effect, now time.Time) bool { return !e.Until.IsZero() && e.Until.Before(now) }

// doubt leaves the token: who held the claim may still tell how it ended.
func doubt(e *store.Effect, now time.Time) {
	e.State, e.SettledAt, e.Class = store.EffectInDoubt, now, "claim-ran-out"
}

// waiting goes on waiting, and runs an approved claim of the bytes that were approved.
// Other bytes are another card.
func waiting(out store.EffectClaimed, c *store.EffectClaim, token int64) (store.EffectClaimed, bool, error) {
	e := &out.Effect
	if lapsed(e, c.Now) {
		out.Verdict = store.ClaimExpired
		lapse(e, c.Now)
		return out, true, nil
	}
	if out.NewCard = e.Card != c.Card; out.NewCard {
		renew(e, c)
		unapprove(e)
	}
	if e.ApprovedAt.IsZero() {
		out.Verdict = store.ClaimWaits
		return out, out.NewCard, nil
	}
	out.Verdict = store.ClaimRun
	begin(e, token, c.Owner, c.Now, c.TTL)
	return out, true, nil
}

func lapsed(e *store.Effect, now time.Time) bool {
	return e.State == store.EffectWaiting && e.ApprovedAt.IsZero() && !e.ApprovalBy.IsZero() && !e.ApprovalBy.After(now)
}

func lapse(e *store.Effect, now time.Time) {
	e.State = store.EffectExpired
	finish(e, now)
}

// finish ends an effect. One that is bound to a delivery is not forgotten by time.
func finish(e *store.Effect, now time.Time) {
	e.SettledAt, e.Token, e.ExpiresAt = now, 0, time.Time{}
	if e.Delivery == 0 && e.Expiry > 0 {
		e.ExpiresAt = now.Add(e.Expiry)
	}
}
