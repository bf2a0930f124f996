package store

import (
	"context"
	"time"
)

// Dumper moves a whole store from one engine to another, and parts of one into another.
type Dumper interface {
	// Dump emits every record as of one moment: marks, settings, people and their like first;
	// then payloads, deliveries, jobs, attempts, each by number; keys last. Records and
	// their bytes are the callee's own. An error of emit ends it.
	Dump(ctx context.Context, emit func(Record) error) error
	// Load writes the records of a Dump into an empty store, numbers as they are. It
	// calls next until io.EOF. ErrState when the store holds any delivery, user or
	// rejection. It works in many transactions: after an error the store is to be thrown
	// away.
	Load(ctx context.Context, next func() (Record, error)) error
	// Counts counts the records by kind, exactly; it may take long.
	Counts(ctx context.Context) (Counts, error)
	// Import adds one delivery of an export in one transaction: it claims its key until
	// Expires (Duplicate, and nothing written, when the key is claimed at At), and keeps its
	// number when that is above every number given out here, else gives it a new one. Jobs,
	// attempts and the payload get new numbers. Queued and leased jobs become cancelled, or
	// are queued, due at At, with Requeue set.
	Import(ctx context.Context, i Import) (Imported, error)
}

// Record is one row of a dump: exactly one field is set.
type Record struct {
	Marks     *Marks
	Setting   *Setting
	User      *User
	Token     *Token
	Session   *Session
	Notice    *Notice
	Audit     *AuditEntry
	Minute    *RejectionMinute
	Rejection *Rejection
	Payload   *PayloadRow
	Delivery  *DeliveryRow
	Job       *JobRow
	Attempt   *Attempt
	Key       *KeyRow
}

// Marks are the highest numbers given out, whether or not their records are kept.
type Marks struct{ Delivery, Job, Attempt, Rejection, Audit int64 }

// Setting is a small value by name.
type Setting struct{ Name, Value string }

// RejectionMinute counts the requests refused in a minute, repeats included.
type RejectionMinute struct {
	Minute time.Time
	Count  int64
}

// PayloadRow is a request; ID is the number of the first delivery made of it.
type PayloadRow struct {
	ID int64
	Payload
}

// DeliveryRow is a delivery without its jobs, and what only the engine knows of it.
type DeliveryRow struct {
	Delivery
	Digest  int64
	Payload int64 // PayloadRow's ID; 0: gone
	Jobless bool  // it has no job and is not in quarantine
	Earlier int64 // delivery that had its event id before; 0 is none
}

// JobRow is a job and what only the engine knows of it.
type JobRow struct {
	Job
	Since       time.Time // its age counts from here
	Passthrough bool
	Revived     bool  // a duplicate queued it again since the last resend
	Place       int64 // in its order
	Turn        int   // in its order: 0 not in it, 1 its turn, 2 waits
	Latest      int64 // digest of what it is the latest version of; 0 is none
}

// KeyRow is a claimed key.
type KeyRow struct {
	Source, EventID string
	Delivery        int64
	Expires         time.Time
}

// Counts are the records kept.
type Counts struct {
	Deliveries, Payloads, Jobs, Attempts, Keys, Rejections, Users, Tokens, Settings, Audit int64
	Queued, Leased, Dead, Quarantined                                                      int64
}

// Import is a delivery that comes from another archive.
type Import struct {
	Delivery Delivery // with Jobs; their IDs only tell which Attempts are whose
	Payload  *Payload // nil: it was gone
	Attempts []Attempt
	Digest   int64
	Expires  time.Time // of the key
	Requeue  bool
	At       time.Time
}

// Imported is what became of it.
type Imported struct {
	Delivery  int64
	Kept      bool // under its own number
	Duplicate bool // of Delivery: nothing was written
	Cancelled int  // jobs that were unfinished
}
