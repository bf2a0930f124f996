package store

import (
	"context"
	"time"
)

// Retention removes what is old and gives its space back. A loop outside calls it step
// by step: each call is one transaction, bounded by the work that the caller allows.
type Retention interface {
	// Purge does one step: first it removes keys, rejections and the like that are too
	// old; then it walks through the deliveries in the order of their numbers, from above
	// r.After.
	//
	// A delivery goes with its jobs, its attempts and, when no other delivery shares it, its
	// payload. One with a queued or leased job stays. One with a dead job, or in
	// quarantine, stays until it came in at least Age ago and died (came in) at least
	// DeadAge ago, whatever the bytes. Any other goes when it came in, and its jobs were
	// settled, at least Age ago; or while the archive takes more than MaxBytes, however
	// old it is. The walk ends before the first delivery that came in within Age before
	// Now, unless bytes are to go; it passes over one that came in after Now: the clock
	// was ahead then.
	//
	// A dedup key goes once it has expired and its delivery is gone; none goes while
	// KeepKeys is set. The numbers of what went are never given out again.
	Purge(ctx context.Context, r PurgeRule) (Purged, error)
	// Reclaim gives up to max bytes of free space inside the data file back to the volume
	// and bounds the journal. left is what is still free inside: with freed 0, an engine
	// that cannot give it back while it runs.
	Reclaim(ctx context.Context, max int64) (freed, left int64, err error)
	// Usage tells what the archive takes, about, and what a purge by r would remove now. It
	// may take seconds on a large archive and never waits for the writer.
	Usage(ctx context.Context, r PurgeRule) (Usage, error)
}

// PurgeRule says what may go. Zero ages and bytes keep for ever.
type PurgeRule struct {
	Now          time.Time
	Age          time.Duration // of deliveries
	DeadAge      time.Duration // of dead letters and of what is in quarantine
	RejectionAge time.Duration
	NoticeAge    time.Duration // since a notice ended
	AuditAge     time.Duration
	MaxBytes     int64 // in use inside the data file
	KeepKeys     bool
	After        int64 // go on above this delivery
	// Work bounds the step: about how many rows are looked at or removed, payloads
	// counting as one for each 4 KiB. Default 500.
	Work int
}

// Purged is what a step did.
type Purged struct {
	Deliveries, Keys, Rejections, Others int
	Bytes                                int64 // of payloads removed
	// Next is the last delivery that the walk passed: the next step goes on after it.
	Next int64
	// More says that work is left that the step had no room for.
	More bool
}

// Usage is what the archive takes.
type Usage struct {
	Bytes   int64 // of the data files, journal included
	Live    int64 // in use inside the data file: what MaxBytes bounds
	Free    int64 // free inside the data file
	Journal int64
	Oldest  time.Time // when the oldest delivery came in; zero: there is none
	Tables  []TableUsage
	// What a purge would remove now, by age and by bytes.
	Removable, RemovableBytes int64
}

// TableUsage is about how much one kind of record takes.
type TableUsage struct {
	Name  string // deliveries, payloads, jobs, attempts, dedup, rejections
	Rows  int64
	Bytes int64
}
