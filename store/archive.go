package store

import (
	"context"
	"time"
)

// Archive is what pages, the API and the command line read. Its methods work on
// connections of their own and never wait for the writer.
type Archive interface {
	// Deliveries lists at most f.Limit, newest first, from before f.Before (0: the
	// newest). next is the number to go on before (or after, when f.After is set); 0 is
	// the end. How far one call looks is bounded: with a filter that few match it may
	// return a short list, even an empty one, and a next.
	Deliveries(ctx context.Context, f DeliveryFilter) (list []Delivery, next int64, err error)
	// Delivery reads one with its jobs and attempts. ErrNotFound.
	Delivery(ctx context.Context, id int64) (Delivery, error)
	// Attempts reads the attempts of a delivery's jobs, oldest first.
	Attempts(ctx context.Context, delivery int64) ([]Attempt, error)
	// Payload reads what came in. ErrNotFound, ErrPayloadGone.
	Payload(ctx context.Context, delivery int64) (Payload, error)
	// Totals counts what waits; it is cheap enough for every scrape.
	Totals(ctx context.Context) (Totals, error)
	// DeadGroups groups the dead letters by destination, reason and last status.
	DeadGroups(ctx context.Context) ([]DeadGroup, error)
	// Neighbours are the numbers of the deliveries just older and just newer than id
	// that match f; 0 is none.
	Neighbours(ctx context.Context, id int64, f DeliveryFilter) (older, newer int64, err error)
	// Trail lists what people did with a delivery, oldest first.
	Trail(ctx context.Context, delivery int64) ([]AuditEntry, error)
}

// DeliveryState is the state a delivery shows: the worst of its jobs.
type DeliveryState string

// The states of a delivery, worst first. One without any job was delivered nowhere and
// shows as filtered.
const (
	StateDead        DeliveryState = "dead"
	StateLeased      DeliveryState = "leased"
	StateQueued      DeliveryState = "queued"
	StateCancelled   DeliveryState = "cancelled"
	StateSuperseded  DeliveryState = "superseded"
	StateFiltered    DeliveryState = "filtered"
	StateDelivered   DeliveryState = "delivered"
	StateQuarantined DeliveryState = "quarantined"
)

// DeliveryHead is what a list and a worker need of a delivery.
type DeliveryHead struct {
	ID         int64
	Source     string
	Provider   string
	EventID    string // empty while quarantined
	Made       bool   // acuse made the id
	Type       string
	Resource   string
	Version    string
	Unit       string
	Test       bool
	ReceivedAt time.Time
	Size       int
	Slot       int // secret that verified, from 1; 0 is none
	Part       int // batch item; -1 is the whole body
}

// Delivery is the archive row of an accepted event.
type Delivery struct {
	DeliveryHead
	State           DeliveryState
	Quarantine      string // why; empty unless quarantined
	Duplicates      int
	LastDuplicateAt time.Time // zero: none
	BodyDiffers     int       // duplicates whose body was another
	AckMicros       int64
	Remote          string
	DuplicateOf     int64 // a released one whose key was claimed already; 0 is none
	CopyOf          int64 // as_new: the delivery it was made from; 0 is none
	PayloadGone     bool
	Jobs            []Job
}

// Job is one delivery for one destination.
type Job struct {
	ID           int64
	Delivery     int64
	Destination  string
	Key          string
	State        JobState
	Attempts     int       // over the job's whole life
	Spent        int       // since the last resend
	DueAt        time.Time // of a queued job
	SettledAt    time.Time // zero: not settled
	LastStatus   int
	LastClass    string
	LastError    string
	LastMicros   int64 // duration of the last attempt
	Reason       DeadReason
	Resend       bool
	Note         string    // rule of a filtered one
	Order        string    // value of its order; empty: none
	Strict       bool      // as a dead letter it blocks its order
	Waits        bool      // queued behind another of its order: it has no due time
	Moved        bool      // went to the end of its order: resent or revived
	TurnAt       time.Time // when its turn in the order came; zero: not yet, or over
	SupersededBy int64     // delivery that replaced it; 0 is none
	LeaseToken   int64
	LeaseOwner   string
	LeaseUntil   time.Time
}

// Attempt is one try of a job.
type Attempt struct {
	ID        int64
	Job       int64
	N         int // ordinal within the job, from 1
	StartedAt time.Time
	Resend    bool
	Owner     string
	Result
}

// Payload is a request as it came in. For a batch item Part says which one: the
// bytes are those of the whole request.
type Payload struct {
	Method string
	Target string // path and query as received
	Header []byte // EncodeHeader's form
	Body   []byte
	Part   int
}

// DeliveryFilter narrows a list. Zero fields do not filter.
type DeliveryFilter struct {
	Source, Type, Destination string
	State                     DeliveryState
	Query                     string // number ("10482", "#10482"), event id, type, resource or delivery key; exact
	Since, Until              time.Time
	Answer                    string // 2xx 3xx 4xx 5xx timeout refused: last answer of a job
	Duplicates                bool   // only those with duplicates
	Resent                    bool   // only those that a person queued again
	Failing                   bool   // only those with a queued job that failed before
	Before                    int64
	After                     int64 // not 0: the f.Limit oldest above it, listed newest first all the same; Before is ignored
	Limit                     int   // 100 when 0, at most 500
}

// Totals counts what is there now.
type Totals struct {
	Queued, Leased, Dead, Quarantined int64
	OldestDue                         time.Time // earliest due time of queued jobs; zero: none
	Newest                            time.Time // received_at of the newest delivery
	Deliveries                        int64     // highest number given out
	ByDestination                     map[string]LaneTotals
}

// LaneTotals counts one destination's jobs.
type LaneTotals struct {
	Queued, Leased, Dead int64
	OldestDue            time.Time
}

// DeadGroup is a set of dead letters that ended alike.
type DeadGroup struct {
	Destination string
	Reason      DeadReason
	Status      int
	Class       string
	Jobs        int64
	First, Last time.Time // when they died
}
