package engine

import "acuse/store"

// Worst is the order in which a delivery shows its jobs' states.
var Worst = []struct {
	Job   store.JobState
	State store.DeliveryState
}{
	{store.Dead, store.StateDead},
	{store.Leased, store.StateLeased},
	{store.Queued, store.StateQueued},
	{store.Cancelled, store.StateCancelled},
	{store.Superseded, store.StateSuperseded},
	{store.Filtered, store.StateFiltered},
	{store.Delivered, store.StateDelivered},
}

// State is the worst of the delivery's jobs. Without a job nothing is delivered: it
// shows as filtered, or cancelled when it was released onto a claimed key.
func State(d *store.Delivery, quarantined bool) store.DeliveryState {
	if quarantined {
		return store.StateQuarantined
	}
	for _, w := range Worst {
		for _, j := range d.Jobs {
			if j.State == w.Job {
				return w.State
			}
		}
	}
	if d.DuplicateOf != 0 {
		return store.StateCancelled
	}
	return store.StateFiltered
}
