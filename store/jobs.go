package store

import (
	"context"
	"time"
)

// JobState is where a job stands.
type JobState int

// The states of a job. The numbers are on disk: never change one.
const (
	Queued JobState = iota + 1
	Leased
	Delivered
	Dead
	Cancelled
	Superseded
	Filtered
)

// Jobs is what the lanes and the pull API need.
type Jobs interface {
	// Lease gives up to q.Max due jobs of q.Destination, oldest due first, to
	// q.Owner until q.Now+q.TTL, and opens an attempt for each. Jobs that used up
	// q.Budget attempts without an outcome (their workers died) become dead letters
	// instead, as do jobs older than q.MaxAge. No due job: an empty list, no error.
	//
	// Of the jobs that share an order value at a destination only the one whose turn it is
	// may be leased: the lowest delivery number when the turn became free. It keeps its turn
	// while it is leased or waits for a retry, and, if it is strict, as a dead letter; then
	// the next one is due. A job that is resent or revived goes to the end.
	Lease(ctx context.Context, q LeaseQuery) ([]Lease, error)
	// Renew moves the deadline of a lease. ErrLeaseLost when the token is not the
	// job's current one. A deadline that has passed does not matter, nor does it that
	// Expire has queued the job again: the lease lives on as long as no other worker
	// took the job and no person resent or cancelled it.
	Renew(ctx context.Context, job int64, token int64, until time.Time) error
	// Settle writes the outcome of a leased job and of its attempt. ErrLeaseLost
	// when the token is not current: then nothing is written. As with Renew, a late
	// settle counts until another worker takes the job. A settled job has no current
	// token: the second of two settles is refused.
	Settle(ctx context.Context, s Settlement) error
	// Expire queues the jobs of leases whose deadline lies before now, due at once;
	// their attempts are interrupted and count. It returns how many, by destination.
	Expire(ctx context.Context, now time.Time) (map[string]int, error)
	// EndLeases ends the leases of owners that share prefix, as Expire does, but for
	// good: their tokens are not current any more. Called at start, for this node's own
	// earlier workers.
	EndLeases(ctx context.Context, prefix string, now time.Time) (int, error)
	// NextDue is the earliest due time of a queued job of the destination; ok is
	// false when none is queued.
	NextDue(ctx context.Context, destination string) (due time.Time, ok bool, err error)
	// NextDeadline is the earliest deadline of all leases; ok is false for none.
	NextDeadline(ctx context.Context) (until time.Time, ok bool, err error)
	// JobByID reads one job.
	JobByID(ctx context.Context, job int64) (Job, error)
}

// LeaseQuery asks for work.
type LeaseQuery struct {
	Destination string
	Owner       string        // node, run and kind of the worker: "n1/4f2a/http"
	Max         int           // at least 1
	TTL         time.Duration // the lease runs until Now+TTL
	Now         time.Time
	Budget      int           // attempts a job has before it is dead; 0 is no limit
	MaxAge      time.Duration // 0 is no limit
}

// Lease is the right to work on one job, with all that the work needs.
type Lease struct {
	Job         int64
	Token       int64 // fencing token: rises with every lease of the job
	Until       time.Time
	Destination string
	Key         string // idempotency key
	Attempt     int    // ordinal of this attempt over the job's whole life, from 1
	Spent       int    // attempts since the last resend, this one included
	Resend      bool   // a person or the API queued it again
	Passthrough bool   // the person asked for the original signature
	Order       string // value of its order: once it is settled another job may be due; empty: none
	Delivery    DeliveryHead
	Payload     Payload
}

// Settlement is the outcome of one attempt.
type Settlement struct {
	Job   int64
	Token int64
	At    time.Time
	// State is Delivered, Dead, or Queued for another try at Due.
	State  JobState
	Due    time.Time
	Reason DeadReason // when State is Dead
	Result Result
}

// DeadReason is why a job became a dead letter. The numbers are on disk.
type DeadReason int

// The reasons. Exhausted ones may be revived by a duplicate.
const (
	Exhausted    DeadReason = iota + 1 // no attempts left
	RefusedByApp                       // 410, give_up_on, nack dead
	TooOld                             // older than max_age
)

// AttemptOutcome is how an attempt ended. The numbers are on disk.
type AttemptOutcome int

// The outcomes of an attempt.
const (
	Running AttemptOutcome = iota + 1
	Succeeded
	Failed
	Interrupted // its lease was lost: the worker or acuse died
)

// Result is what an attempt found.
type Result struct {
	Outcome                 AttemptOutcome // 0 in a settlement: Succeeded when its State is Delivered, else Failed
	Status                  int            // HTTP status or exit code; 0 is none
	Class                   string         // machine word of an error: "timeout", "refused", "dns", "tls", "reset", "status", "redirect", …
	Error                   string         // for people; never holds a body or a secret
	Maybe                   bool           // the connection broke after the request was sent: maybe delivered
	Duration                time.Duration  // of the whole attempt
	Connect, TLS, FirstByte time.Duration  // 0 is not measured
	Header                  []byte         // answer's headers, EncodeHeader's form; may be nil
	Body                    []byte         // answer's body: 4 KiB an attempt, 64 KiB of the latest
	Worker                  string         // pull: who settled it
	RetryAfter              time.Duration  // wait the app asked for; 0 is none. It shapes Settlement.Due and is not kept
}
