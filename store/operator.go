package store

import (
	"context"
	"time"
)

// Operator is what people and the API do to deliveries. Each act writes its audit
// entry in the same transaction.
type Operator interface {
	// Resend queues the jobs of a delivery again, due now, with a fresh budget of
	// attempts and the same number and key. A job that waits for a retry is due now too;
	// one that waits because of an earlier resend is left as it is. ErrRunning when a
	// chosen job is leased (then none is queued), ErrPayloadGone, ErrNotFound, ErrState
	// for a quarantined one.
	Resend(ctx context.Context, r Resend) (Resent, error)
	// Cancel ends the queued and dead jobs of a delivery. ErrState when there is none.
	Cancel(ctx context.Context, delivery int64, destination string, by Actor, at time.Time) (int, error)
	// Quarantined lists up to limit quarantined deliveries after the number given,
	// oldest first.
	QuarantinedAfter(ctx context.Context, source string, after int64, limit int) ([]Delivery, error)
	// Release gives a quarantined delivery its identity and queues its jobs; when
	// the key is claimed already it ends cancelled and counts as a duplicate.
	Release(ctx context.Context, delivery int64, e Event, by Actor, at time.Time) (Outcome, error)
	// Audit writes an entry that belongs to no other act (a login, a new token).
	Audit(ctx context.Context, e AuditEntry) error
	// AuditLog lists newest first, before the id given (0: the newest).
	AuditLog(ctx context.Context, before int64, limit int) ([]AuditEntry, error)
}

// Actor is who acts: a user, a token or the owner on the socket.
type Actor struct {
	Name string // "ana", "token ci", "socket"
	From string // address; empty on the socket
}

// Resend asks for jobs to be queued again.
type Resend struct {
	Delivery    int64
	Destination string                                   // empty: every destination of the delivery
	AsNew       bool                                     // a delivery of its own, with an event id like evt_1~2 and new keys
	NewKeys     func(eventID, destination string) string // idempotency key of an AsNew job
	Passthrough bool                                     // send the original signature
	Reason      string
	By          Actor
	At          time.Time
}

// Resent is what a resend did.
type Resent struct {
	Delivery      int64 // the delivery itself, or the new one of AsNew
	Jobs          []int64
	AlreadyQueued bool // every chosen job was waiting to be resent already
}

// AuditEntry is one act of a person or a token.
type AuditEntry struct {
	ID       int64
	At       time.Time
	By       Actor
	Act      string // "resend", "cancel", "release", "login", "token.create", …
	Delivery int64  // 0: none
	Subject  string // what it was done to, when no delivery
	Reason   string
}
