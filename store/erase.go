package store

import (
	"context"
	"time"
)

// Eraser removes contents for good, on demand.
type Eraser interface {
	// Erase removes the contents of the deliveries that q matches: payloads, answers and
	// errors of attempts, resource, version and sender's address; and whole rejections
	// that hold q's text. What stays is a tombstone: number, source, event id, type, times,
	// states and the dedup key, so that a repeat is still a duplicate. Queued, leased and
	// dead jobs of these deliveries are cancelled, since there is nothing to send any more;
	// a lease under way is lost. A payload that a batch shares goes for all its items.
	//
	// It works in bounded transactions, overwrites what it removes, and ends with an empty
	// journal; each transaction writes its audit entry. After an error a part may be
	// done: call it again. With DryRun it changes nothing and counts.
	Erase(ctx context.Context, q Erasure) (Erased, error)
}

// Erasure says what is to be erased: Resource or EventID, exact, of one source or of all.
// Copies that were resent as new belong to their event.
type Erasure struct {
	Resource, EventID, Source string
	DryRun                    bool
	By                        Actor
	At                        time.Time
	Reason                    string
}

// Erased counts what was, or would be, erased.
type Erased struct {
	Deliveries int // that matched and still held contents
	Shared     int // further deliveries that lost their part of a shared payload
	Cancelled  int // jobs that were still to be done, or dead
	Rejections int
	Bytes      int64 // of payloads
	// Traces says that copies may be left inside the engine's files (a reader kept the
	// journal from being emptied); another Erase removes them.
	Traces bool
}
