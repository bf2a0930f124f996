package bolt

import (
	"encoding/binary"

	bbolt "go.etcd.io/bbolt"
)

// table is one bucket. What its keys and values are stands in DESIGN.md.
type table int

// The buckets. Their names are on disk.
const (
	tMeta       table = iota
	tNames            // number → name
	tDeliveries       // delivery → record
	tPayloads         // number of the first delivery → request
	tDedup            // source, event id → delivery, expiry
	tJobs             // job → record
	tAttempts         // job, attempt → record
	tDue              // destination, due, job: queued ones
	tLeases           // deadline, job: leased ones
	tEnded            // state, delivery, job: dead, cancelled, superseded, filtered ones
	tDead             // destination, reason, status, class, settled, job
	tResent           // delivery, job: resent ones
	tSources          // source, delivery
	tReceived         // received, delivery
	tHold             // hold, delivery: quarantined ones, those without a job
	tRepeated         // delivery: those with duplicates
	tRejections       // number → record
	tSame             // source, reason, digest → rejection
	tRing             // source, signed, at, rejection → bytes kept
	tRingAge          // at, rejection
	tMinutes          // minute → refused requests
	tNotices          // rule, subject → record
	tUsers            // name → record
	tTokens           // id → record
	tHashes           // digest → token
	tSessions         // id → record
	tSessionEnd       // expiry, session
	tSettings         // name → value
	tAudit            // number → record
	tTrail            // delivery, audit entry
	tShared           // payload, delivery: of deliveries that use the payload of another number
	tLoose            // expiry, source, event id: keys whose delivery is gone
	tTurns            // destination, order value, job: those whose turn it is
	tLine             // destination, order value, place, job: all of an order
	tHeads            // since, job: those whose turn it is
	tLatest           // destination, digest, delivery, job: queued ones that a newer version replaces
	tables
)

var tableNames = [tables]string{
	"meta", "names", "deliveries", "payloads", "dedup", "jobs", "attempts", "due", "leases", "ended", "dead", "resent", "sources", "received",
	"hold", "repeated", "rejections", "rejections_same", "rejections_ring", "rejections_age", "rejection_minutes", "notices", "users", "tokens",
	"token_hashes", "sessions", "sessions_end", "settings", "audit", "trail", "shared", "loose",
	"turns", "line", "heads", "latest",
}

// ascending are the buckets that only grow at their end: their pages are filled to the
// brim before the next one is begun.
var ascending = [tables]bool{tDeliveries: true, tPayloads: true, tJobs: true, tReceived: true, tRejections: true, tAudit: true}

// tx is a transaction with its buckets at hand. Bytes that come out of it are the
// engine's: they are copied before it ends.
type tx struct {
	*bbolt.Tx
	buckets [tables]*bbolt.Bucket
	known   map[int64]string // names looked up so far
}

func (x *tx) bucket(t table) *bbolt.Bucket {
	b := x.buckets[t]
	if b == nil {
		b = x.Bucket([]byte(tableNames[t]))
		if ascending[t] {
			b.FillPercent = 0.95
		}
		x.buckets[t] = b
	}
	return b
}

func (x *tx) get(t table, key []byte) []byte { return x.bucket(t).Get(key) }

func (x *tx) put(t table, key, value []byte) error {
	if err := x.bucket(t).Put(key, value); err != nil {
		return fault{where: tableNames[t], err: err}
	}
	return nil
}

func (x *tx) del(t table, key []byte) error {
	if err := x.bucket(t).Delete(key); err != nil {
		return fault{where: tableNames[t], err: err}
	}
	return nil
}

// next gives out the next number of a bucket. It is never given out again, unless the
// transaction is rolled back.
func (x *tx) next(t table) (int64, error) {
	n, err := x.bucket(t).NextSequence()
	if err != nil {
		return 0, fault{where: tableNames[t], err: err}
	}
	return int64(n), nil
}

// fault is an error of the engine or of the data, as opposed to an outcome such as
// store.ErrLeaseLost.
type fault struct {
	where  string
	err    error
	unread bool // the disk did not give a page
}

func (f fault) Error() string { return f.where + ": " + f.err.Error() }
func (f fault) Unwrap() error { return f.err }

// key joins the parts of a key.
func key(parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	k := make([]byte, 0, n)
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

// num is a number as part of a key: in the order of the numbers, negative ones too.
func num(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63) }

// small is a number of a name.
func small(n int64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// text is a text as part of a key with more behind it. Its length comes first, so that
// no two pairs meet.
func text(s string) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(s))), s...)
}

// numAt reads the number that starts at i.
func numAt(k []byte, i int) int64 { return int64(binary.BigEndian.Uint64(k[i:]) ^ 1<<63) }

func smallAt(k []byte, i int) int64 { return int64(binary.BigEndian.Uint32(k[i:])) }

// last is the number at the end of a key.
func last(k []byte) int64 { return numAt(k, len(k)-8) }
