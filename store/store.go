// Package store is the contract between acuse and its storage engines: the
// records, the errors, the interfaces and the group committer. It touches no
// disk; the engines are store/sqlite and store/bolt, and store/storetest is the
// suite that every engine passes.
//
// Instants are UTC and kept to the millisecond, durations to the microsecond.
// Time is always an argument: no method reads a clock. Bytes that a caller hands
// over stay the caller's and must not change before the call returns; bytes that
// a method returns are the caller's own.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The errors a caller can act on. Engines wrap them; compare with errors.Is.
var (
	// ErrUnavailable reports that nothing was written because storage fails or is
	// full. The edge answers 503; the caller may try again.
	ErrUnavailable = errors.New("store: storage unavailable")
	// ErrBusy reports that the committer's queue is full. Nothing was written.
	ErrBusy = errors.New("store: too many writes waiting")
	// ErrRefused reports that the engine refused this one write (a constraint, a
	// value it cannot hold); writes of the same batch are not concerned.
	ErrRefused = errors.New("store: write refused")
	// ErrClosed reports a call after Close.
	ErrClosed = errors.New("store: closed")
	// ErrNotFound reports that no such record is kept.
	ErrNotFound = errors.New("store: not found")
	// ErrLeaseLost reports that the lease's token is not the job's current one.
	// Whoever gets it stops and writes nothing further for that job.
	ErrLeaseLost = errors.New("store: lease lost")
	// ErrRunning reports that a job cannot be resent because it is leased.
	ErrRunning = errors.New("store: job is running")
	// ErrPayloadGone reports that the delivery's body was removed by retention.
	ErrPayloadGone = errors.New("store: payload is gone")
	// ErrState reports that the record is in a state that does not allow the act.
	ErrState = errors.New("store: not possible in this state")
	// ErrCardChanged reports that the request changed since the card was shown.
	ErrCardChanged = errors.New("store: the request changed since it was shown")
	// ErrNewerSchema reports a data file written by a newer acuse.
	ErrNewerSchema = errors.New("store: data was written by a newer version")
	// ErrLocked reports that another process works on the data folder.
	ErrLocked = errors.New("store: data folder is in use")
)

// Locked is ErrLocked with what is known of who has the folder.
type Locked struct {
	Dir     string
	Process string // its id; empty: not known
}

func (l *Locked) Error() string {
	if l.Process == "" {
		return fmt.Sprintf("%v: %s", ErrLocked, l.Dir)
	}
	return fmt.Sprintf("%v: %s, by process id %s", ErrLocked, l.Dir, l.Process)
}

// Unwrap makes it an ErrLocked.
func (l *Locked) Unwrap() error { return ErrLocked }

// Store is everything an engine offers. Each consumer takes the part it needs.
type Store interface {
	Inbox
	Jobs
	Orders
	Outages
	Archive
	Operator
	Rejections
	Notices
	Accounts
	Clock
	Retention
	Dumper
	Eraser

	// Check looks for damage: structure, orphans, keys without a delivery. A
	// bounded check of the newest 1 000 deliveries when full is false. It returns
	// what it found wrong, one line each; none means all is well.
	Check(ctx context.Context, full bool) ([]string, error)
	// Backup writes a consistent copy to a new file at path while writes go on.
	Backup(ctx context.Context, path string) error
	// Health tells how the engine does; it is cheap and never blocks on a write.
	Health() Health
	// Close waits for the writes under way and closes the files.
	Close() error
}

// Health is a snapshot of the engine's own state.
type Health struct {
	Engine   string        // "sqlite", "bbolt"
	Schema   int           // version of the data file
	Bytes    int64         // size of the data files, journal included
	Free     int64         // bytes free on the volume
	Journal  int64         // size of the journal alone
	Writable bool          // false while commits fail or free space is under the floor
	Err      string        // the last write error while not Writable; "" otherwise
	Queued   int           // writes waiting for a commit
	Commits  uint64        // transactions committed since start
	Writes   uint64        // writes in those transactions
	Longest  time.Duration // longest transaction since start, its sync included
}
