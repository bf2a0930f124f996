package bolt

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"acuse/store"
)

var oneDelivery = delivery{
	id: 7, source: 1, provider: 2, eventID: "evt\x00\xff", kind: "paid", resource: "in_1", version: "3", unit: "int", receivedAt: 1767225600000, size: 10, digest: -5,
	slot: 1, part: -1, payload: 6, hold: holdJobless, quarantine: "why", made: true, test: true, ackMicros: 250, remote: "::1", duplicates: 2, lastDuplicateAt: 9,
	bodyDiffers: 1, duplicateOf: 3, copyOf: 4, earlier: 5, jobs: []int64{11, 12},
}

var oneJob = job{
	id: 11, delivery: 7, destination: 3, state: store.Leased, due: 1, since: 2, attempts: 3, spent: 1, token: 99, owner: "n1", until: 5, settled: 6,
	reason: store.Exhausted, lastStatus: -1, lastClass: "status", lastError: "503", lastMicros: 8, resend: true, passthrough: true, revived: true, key: "k", note: "rule",
	order: "in_1", strict: true, place: 7 << 20, turn: 1, turnAt: 8, latest: -9, supersededBy: 12,
}

var oneAttempt = attempt{job: 11, id: 99, n: 3, started: 4, resend: true, owner: "n1", result: store.Result{Outcome: store.Failed, Status: 503, Class: "status",
	Error: "e", Maybe: true, Duration: time.Millisecond, Connect: 2 * time.Microsecond, TLS: 3 * time.Microsecond, FirstByte: 4 * time.Microsecond,
	Header: []byte("{}"), Body: []byte{0}, Worker: "w"}}

func TestRecordsComeBackWhole(t *testing.T) {
	t.Parallel()
	if got, err := decodeDelivery(7, oneDelivery.encode()); err != nil || !reflect.DeepEqual(got, oneDelivery) {
		t.Errorf("delivery: %+v %v", got, err)
	}
	if got, err := decodeJob(11, oneJob.encode()); err != nil || got != oneJob {
		t.Errorf("job: %+v %v", got, err)
	}
	if got, err := decodeAttempt(attemptKey(11, 99), oneAttempt.encode()); err != nil || !reflect.DeepEqual(got, oneAttempt) {
		t.Errorf("attempt: %+v %v", got, err)
	}
}

// TestRecordsOfOtherVersionsAreRead: one with more fields, one with fewer, one of a layout
// that is not known.
func TestRecordsOfOtherVersionsAreRead(t *testing.T) {
	t.Parallel()
	b := oneJob.encode()
	if got, err := decodeJob(11, append(bytes.Clone(b), 1, 2, 3)); err != nil || got != oneJob {
		t.Errorf("with more: %+v %v", got, err)
	}
	before := oneJob
	before.order, before.strict, before.place, before.turn, before.turnAt, before.latest, before.supersededBy = "", false, 0, 0, 0, 0, 0
	if got, err := decodeJob(11, before.encode()); err != nil || got != before {
		t.Errorf("of the first version: %+v %v", got, err)
	}
	b, before.note = before.encode(), ""
	if got, err := decodeJob(11, b[:len(b)-len("rule")-1]); err != nil || got != before {
		t.Errorf("with fewer: %+v %v", got, err)
	}
	b[0] = 9
	if _, err := decodeJob(11, b); err == nil {
		t.Error("an unknown layout is read")
	}
}

func TestKeysAreInTheOrderOfTheirNumbers(t *testing.T) {
	t.Parallel()
	numbers := []int64{-1 << 63, -5, -1, 0, 1, 255, 256, 1 << 40, 1<<63 - 1}
	for i := 1; i < len(numbers); i++ {
		if bytes.Compare(num(numbers[i-1]), num(numbers[i])) >= 0 {
			t.Errorf("%d comes after %d", numbers[i-1], numbers[i])
		}
		if got := numAt(num(numbers[i]), 0); got != numbers[i] {
			t.Errorf("%d comes back as %d", numbers[i], got)
		}
	}
	if bytes.Equal(key(text("a"), text("bc")), key(text("ab"), text("c"))) {
		t.Error("two pairs meet")
	}
}

// FuzzRecords: whatever lies in the file, reading it does not panic.
func FuzzRecords(f *testing.F) {
	f.Add(oneDelivery.encode())
	f.Add(oneJob.encode())
	f.Add(oneAttempt.encode())
	f.Add(encodePayload(&store.Payload{Method: "POST", Body: []byte("x")}))
	f.Add([]byte{layout1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = decodeDelivery(1, b)
		_, _ = decodeJob(1, b)
		_, _ = decodeAttempt(make([]byte, 16), b)
		_, _ = decodePayload(b)
		_, _ = decodeRejection(1, b, true)
		_, _ = decodeNotice(b)
		_, _ = decodeUser(b)
		_, _ = decodeToken(b)
		_, _ = decodeSession(b)
		_, _ = decodeAudit(1, b)
	})
}
