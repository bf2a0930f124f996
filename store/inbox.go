package store

import (
	"context"
	"time"
)

// Inbox is what the receiving edge needs.
type Inbox interface {
	// Accept writes one request: for each of its events it claims (source, event
	// id) and writes the delivery and its jobs, all in one transaction shared with
	// other requests. A nil error means all of it is on disk and survives power
	// loss; only then may the caller answer 2xx. The outcomes stand in the order of
	// the events. Either all events of the request are written or none is.
	//
	// It returns ErrBusy at once when too much waits, ErrUnavailable when storage
	// fails or is full, ErrRefused when the engine refuses this request. When ctx
	// ends first the request may still be committed: its bytes must not change then.
	Accept(ctx context.Context, a Arrival) ([]Outcome, error)
}

// Arrival is one verified request exactly as it came in.
type Arrival struct {
	Source     string    // configured source
	Provider   string    // catalogue name, for display
	ReceivedAt time.Time // UTC
	// At is when it is accepted: keys, jobs and duplicates count from it. Zero: ReceivedAt.
	// A request that was refused first is let in later than it was received.
	At        time.Time
	Remote    string  // address of the sender, as believed
	Method    string  // "POST"
	Target    string  // path and query as received: "/in/stripe?x=1"
	Header    []byte  // EncodeHeader's form
	Body      []byte  // raw bytes, never re-encoded
	Slot      int     // which configured secret verified, from 1; 0 is none
	AckMicros int64   // verification time so far, for the line of time
	Events    []Event // one, or the items of a batch in array order
}

// Accepted is when the arrival is accepted.
func (a *Arrival) Accepted() time.Time {
	if a.At.IsZero() {
		return a.ReceivedAt
	}
	return a.At
}

// MaxEventID is how many bytes an event id may have: a longer one is ErrRefused.
const MaxEventID = 16 << 10

// Event is one thing that happened, as identified in an Arrival.
type Event struct {
	ID       string // unique within the source, at most MaxEventID bytes; empty only when Quarantine is set
	Made     bool   // acuse made the ID: repeats cannot be recognised
	Type     string // may be empty
	Resource string // the thing the event is about; may be empty
	Version  string // orders events of one resource; may be empty
	Unit     string // unit of Version: s, ms, rfc3339, int, string; may be empty
	Test     bool   // the provider's test mode, or acuse test
	Part     int    // index of the batch item; -1 is the whole body
	Size     int    // bytes of the item or body
	Digest   int64  // first 8 bytes of the SHA-256 of the item or body
	// Quarantine is why the event cannot be identified; it then claims no key and
	// queues no job until it is released. Empty: a normal event.
	Quarantine string
	Window     time.Duration // how long the dedup key is remembered: from Window after the arrival was accepted on it may be claimed again
	WithRow    bool          // it is remembered at least as long as its delivery is kept, whatever Window says
	Revive     bool          // a duplicate queues the dead letters of exhausted attempts again, once each (until a person resends)
	Jobs       []NewJob
}

// NewJob says where an event goes.
type NewJob struct {
	Destination string   // at most one job of an event goes to each, else ErrRefused
	Key         string   // idempotency key of every attempt; not empty
	State       JobState // Queued, or Filtered, or Dead: parked, since its rule failed
	Note        string   // the rule that filtered or parked it, or failed: Note's form
	// Order is the value whose jobs are worked on one at a time at this destination, by
	// delivery number; empty: no order.
	Order string
	// Strict: as a dead letter it blocks what comes after it in its order.
	Strict bool
	// Latest: it supersedes the queued, unleased jobs at this destination of earlier
	// deliveries of the same source, resource, type and unit of version whose Latest was set
	// too and whose version is lower (Newer). An event without a resource or an orderable
	// version supersedes nothing.
	Latest bool
}

// Outcome is what became of one event.
type Outcome struct {
	Kind     Kind
	Delivery int64 // the new delivery, or the first one of a duplicate
	Revived  bool  // the duplicate queued a dead letter again
}

// Kind is the sort of an outcome.
type Kind int

// The sorts of outcome.
const (
	Accepted Kind = iota + 1
	Duplicate
	Quarantined
)
