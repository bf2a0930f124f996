package engine

import (
	"fmt"

	"acuse/store"
)

// Check refuses an arrival that no engine could keep in a meaningful way.
func Check(a *store.Arrival) error {
	if a.Source == "" || len(a.Events) == 0 {
		return fmt.Errorf("%w: no source or no event", store.ErrRefused)
	}
	for _, e := range a.Events {
		if e.ID == "" && e.Quarantine == "" {
			return fmt.Errorf("%w: an event without an id is quarantined, with a reason", store.ErrRefused)
		}
		for _, j := range e.Jobs {
			if j.Destination == "" || (j.State != store.Queued && j.State != store.Filtered && j.State != store.Dead) {
				return fmt.Errorf("%w: a job needs a destination and is queued, filtered or parked", store.ErrRefused)
			}
		}
	}
	return nil
}
