package bolt

import (
	"hash/crc32"

	"acuse/store"
	"acuse/store/engine"
)

// The values of delivery.hold.
const (
	holdNone = iota
	holdQuarantined
	holdJobless
)

// delivery is a row of the archive. Numbers stand for names; instants are unix
// milliseconds, 0 is none.
type delivery struct {
	id                                            int64 // the key
	source, provider                              int64
	eventID, kind, resource, version, unit        string
	receivedAt, size, digest, slot, part, payload int64
	hold                                          int64
	quarantine                                    string
	made, test                                    bool
	ackMicros                                     int64
	remote                                        string
	duplicates, lastDuplicateAt, bodyDiffers      int64
	duplicateOf, copyOf, earlier                  int64
	jobs                                          []int64 // their numbers, ascending
}

func (d *delivery) encode() []byte {
	e := record(160 + len(d.eventID) + len(d.resource) + len(d.kind))
	e.int(d.source, d.provider).text(d.eventID, d.kind, d.resource, d.version, d.unit)
	e.int(d.receivedAt, d.size, d.digest, d.slot, d.part, d.payload, d.hold).text(d.quarantine).flags(d.made, d.test)
	e.int(d.ackMicros).text(d.remote).int(d.duplicates, d.lastDuplicateAt, d.bodyDiffers, d.duplicateOf, d.copyOf, d.earlier)
	e.int(int64(len(d.jobs)))
	for _, job := range d.jobs {
		e.int(job)
	}
	return e.b
}

func decodeDelivery(id int64, b []byte) (d delivery, err error) {
	r := reading(b)
	d = delivery{id: id, source: r.int(), provider: r.int(), eventID: r.text(), kind: r.text(), resource: r.text(), version: r.text(), unit: r.text(),
		receivedAt: r.int(), size: r.int(), digest: r.int(), slot: r.int(), part: r.int(), payload: r.int(), hold: r.int(), quarantine: r.text()}
	f := r.flags()
	d.made, d.test = f[0], f[1]
	d.ackMicros, d.remote = r.int(), r.text()
	d.duplicates, d.lastDuplicateAt, d.bodyDiffers, d.duplicateOf, d.copyOf, d.earlier = r.int(), r.int(), r.int(), r.int(), r.int(), r.int()
	n := r.int()
	for i := int64(0); i < n && !r.bad; i++ {
		d.jobs = append(d.jobs, r.int())
	}
	return d, r.done("deliveries")
}

// job is one delivery for one destination.
type job struct {
	id                           int64 // the key
	delivery, destination        int64
	state                        store.JobState
	due                          int64 // of a queued one
	since                        int64 // when it was queued first, or by the last resend: its age counts from here
	attempts, spent              int64 // over its whole life, since then
	token                        int64 // current fencing token: the number of the attempt; 0 is none
	owner                        string
	until, settled               int64
	reason                       store.DeadReason
	lastStatus                   int64
	lastClass, lastError         string
	lastMicros                   int64
	resend, passthrough, revived bool // revived: a duplicate queued it again since the last resend
	key, note                    string
	order                        string // value; empty: none
	strict                       bool
	place, turn, turnAt          int64
	latest, supersededBy         int64
}

func (j *job) encode() []byte {
	e := record(96 + len(j.key) + len(j.owner) + len(j.lastError) + len(j.note))
	e.int(j.delivery, j.destination, int64(j.state), j.due, j.since, j.attempts, j.spent, j.token).text(j.owner)
	e.int(j.until, j.settled, int64(j.reason), j.lastStatus).text(j.lastClass, j.lastError).int(j.lastMicros)
	e.flags(j.resend, j.passthrough, j.revived).text(j.key, j.note)
	if j.order == "" && j.latest == 0 && j.supersededBy == 0 {
		return e.b // what is missing at the end reads as zero
	}
	return e.text(j.order).flags(j.strict).int(j.place, j.turn, j.turnAt, j.latest, j.supersededBy).b
}

func decodeJob(id int64, b []byte) (j job, err error) {
	r := reading(b)
	j = job{id: id, delivery: r.int(), destination: r.int(), state: store.JobState(r.int()), due: r.int(), since: r.int(), attempts: r.int(), spent: r.int(),
		token: r.int(), owner: r.text(), until: r.int(), settled: r.int(), reason: store.DeadReason(r.int()), lastStatus: r.int(), lastClass: r.text(),
		lastError: r.text(), lastMicros: r.int()}
	f := r.flags()
	j.resend, j.passthrough, j.revived = f[0], f[1], f[2]
	j.key, j.note, j.order = r.text(), r.text(), r.text()
	j.strict = r.flags()[0]
	j.place, j.turn, j.turnAt, j.latest, j.supersededBy = r.int(), r.int(), r.int(), r.int(), r.int()
	return j, r.done("jobs")
}

// attempt is one try of a job; its number is the lease's fencing token.
type attempt struct {
	job, id int64 // the key
	n       int64
	started int64
	resend  bool
	owner   string
	result  store.Result
}

func (a *attempt) encode() []byte {
	r := &a.result
	e := record(96 + len(a.owner) + len(r.Error) + len(r.Header) + len(r.Body))
	e.int(a.n, a.started, int64(r.Outcome), int64(r.Status)).flags(a.resend, r.Maybe)
	e.int(r.Duration.Microseconds(), r.Connect.Microseconds(), r.TLS.Microseconds(), r.FirstByte.Microseconds())
	return e.text(a.owner, r.Worker, r.Class, r.Error).bytes(r.Header).bytes(r.Body).b
}

func decodeAttempt(k, b []byte) (a attempt, err error) {
	r := reading(b)
	a = attempt{job: numAt(k, 0), id: numAt(k, 8), n: r.int(), started: r.int()}
	p := &a.result
	p.Outcome, p.Status = store.AttemptOutcome(r.int()), int(r.int())
	f := r.flags()
	a.resend, p.Maybe = f[0], f[1]
	p.Duration, p.Connect, p.TLS, p.FirstByte = micros(r.int()), micros(r.int()), micros(r.int()), micros(r.int())
	a.owner, p.Worker, p.Class, p.Error = r.text(), r.text(), r.text(), r.text()
	p.Header, p.Body = r.bytes(), r.bytes()
	return a, r.done("attempts")
}

func attemptKey(job, id int64) []byte { return key(num(job), num(id)) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodePayload writes a request into b, which has room for it. The headers and the body
// are kept as they are, with a checksum: the engine has none of its own.
func encodePayload(p *store.Payload) []byte {
	e := record(len(p.Method) + len(p.Target) + len(p.Header) + len(p.Body) + 40)
	sum := crc32.Update(crc32.Checksum(p.Header, castagnoli), castagnoli, p.Body)
	return e.text(p.Method, p.Target).int(int64(sum)).bytes(p.Header).bytes(p.Body).b
}

// decodePayload reads a request; its bytes are copies.
func decodePayload(b []byte) (p store.Payload, err error) {
	r := reading(b)
	p.Method, p.Target = r.text(), r.text()
	sum := uint32(r.int())
	p.Header, p.Body = r.bytes(), r.bytes()
	if got := crc32.Update(crc32.Checksum(p.Header, castagnoli), castagnoli, p.Body); got != sum {
		r.bad = true
	}
	return p, r.done("payloads")
}

// head is what a list and a worker need of a delivery.
func (x *tx) head(d *delivery) store.DeliveryHead {
	return store.DeliveryHead{
		ID: d.id, Source: x.name(d.source), Provider: x.name(d.provider), EventID: d.eventID, Made: d.made, Type: d.kind, Resource: d.resource,
		Version: d.version, Unit: d.unit, Test: d.test, ReceivedAt: engine.Instant(d.receivedAt), Size: int(d.size), Slot: int(d.slot), Part: int(d.part),
	}
}

// public is the job as the contract shows it.
func (x *tx) public(j *job) store.Job {
	out := store.Job{
		ID: j.id, Delivery: j.delivery, Destination: x.name(j.destination), Key: j.key, State: j.state, Attempts: int(j.attempts), Spent: int(j.spent),
		SettledAt: engine.Instant(j.settled), LastStatus: int(j.lastStatus), LastClass: j.lastClass, LastError: j.lastError, LastMicros: j.lastMicros,
		Reason: j.reason, Resend: j.resend, Note: j.note, LeaseToken: j.token,
		Order: j.order, Strict: j.strict, Moved: j.place != 0 && j.place != engine.Place(j.delivery), SupersededBy: j.supersededBy,
	}
	if j.turn == engine.Turn {
		out.TurnAt = engine.Instant(j.turnAt)
	}
	switch j.state {
	case store.Queued:
		if out.Waits = j.turn == engine.Waits; !out.Waits {
			out.DueAt = engine.Instant(j.due)
		}
	case store.Leased:
		out.LeaseOwner, out.LeaseUntil = j.owner, engine.Instant(j.until)
	}
	return out
}

// name is the name of a source, destination or provider.
func (x *tx) name(id int64) string {
	if s, ok := x.known[id]; ok {
		return s
	}
	if x.known == nil {
		x.known = map[int64]string{}
	}
	s := string(x.get(tNames, small(id)))
	x.known[id] = s
	return s
}

// named is the number of a name; 0 is none.
func (x *tx) named(name string) (id int64) {
	c := x.bucket(tNames).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if string(v) == name {
			return smallAt(k, 0)
		}
	}
	return 0
}
