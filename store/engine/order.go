package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"math"

	"acuse/store"
)

// What a job's turn in its order can be. The numbers are on disk.
const (
	NoTurn = iota // it has no order, or is through
	Turn          // it may be leased once due; one a value at a destination
	Waits         // another one has the turn
)

// Never is the due time of a job that waits for its turn, in unix milliseconds: it sorts
// behind all that are due, so that looking for those passes none that waits.
const Never = math.MaxInt64

// placeBits are left for jobs that went to the end between two deliveries.
const placeBits = 20

// Place is the place in its order of a delivery's job.
func Place(delivery int64) int64 { return delivery << placeBits }

// EndPlace is a place behind all given out: highest is the highest delivery number, last
// the last place taken in the order.
func EndPlace(highest, last int64) int64 { return max(Place(highest), last) + 1 }

// Keeps tells whether a job in that state still has its turn.
func Keeps(state store.JobState, strict bool) bool {
	return state == store.Queued || state == store.Leased || state == store.Dead && strict
}

// ClassRule is the class of the error of a job that was parked because its rule failed. Its
// reason is RefusedByApp: a repeat does not revive it, the rule would fail again.
const ClassRule = "rule"

// MaxOlder is how many earlier versions one job supersedes at most.
const MaxOlder = 1000

// HeadLooks bounds what one call of Heads looks at.
const HeadLooks = 10_000

// Latest is the digest under which the versions of one thing are found; 0 when the event
// has none that can be compared. Its finder compares the parts themselves.
func Latest(source string, e *store.Event) int64 {
	if e.Resource == "" || !store.Orderable(e.Unit, e.Version) {
		return 0
	}
	h := sha256.New()
	for _, part := range []string{source, e.Resource, e.Type, e.Unit} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	if n := int64(binary.BigEndian.Uint64(h.Sum(nil))); n != 0 {
		return n
	}
	return 1
}
