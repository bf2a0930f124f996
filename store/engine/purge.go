package engine

import (
	"time"

	"acuse/store"
)

// Standing is what retention asks of a job: its state and, once settled, when.
type Standing struct {
	State   store.JobState
	Settled int64 // unix milliseconds; 0: not settled
}

// Ends tells that the walk of a purge ends before a delivery received at that instant.
// bytes: some are to go.
func Ends(r *store.PurgeRule, bytes bool, received int64) bool {
	return !bytes && (r.Age <= 0 || received > Before(r, r.Age) && received <= Milli(r.Now))
}

// Goes tells whether the purge removes a delivery; the rule stands at store.Retention.
func Goes(r *store.PurgeRule, bytes bool, received int64, quarantined bool, jobs []Standing) bool {
	settled, died, dead := received, received, quarantined
	for _, j := range jobs {
		switch j.State {
		case store.Queued, store.Leased:
			return false
		case store.Dead:
			dead, died = true, max(died, j.Settled)
		}
		settled = max(settled, j.Settled)
	}
	old := r.Age > 0 && received <= Before(r, r.Age)
	if dead {
		return old && r.DeadAge > 0 && died <= Before(r, r.DeadAge)
	}
	return bytes || old && settled <= Before(r, r.Age)
}

// Before is age before the rule's Now, in unix milliseconds.
func Before(r *store.PurgeRule, age time.Duration) int64 { return Milli(r.Now.Add(-age)) }

// DefaultWork is how much one step of a purge does.
const DefaultWork = 500

// WorkBytes of a payload count as much work as a row.
const WorkBytes = 4 << 10

// RowBytes is about what a delivery takes besides its payload.
const RowBytes = 1500
