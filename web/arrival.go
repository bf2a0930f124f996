package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"time"

	"acuse/provider"
	"acuse/store"
)

// maxItems is how many events a request may hold.
const maxItems = 1000

// arrival is what the store is asked to keep of a verified request.
func (e *Edge) arrival(v *visit) store.Arrival {
	src := v.source
	a := store.Arrival{
		Source:     src.Name,
		Provider:   src.Provider,
		ReceivedAt: v.now,
		Method:     v.request.Method,
		Target:     v.request.Target,
		Header:     store.EncodeHeader(v.request.Header),
		Body:       v.request.Body,
		Slot:       v.result.Slot,
		Events:     make([]store.Event, len(v.result.Events)),
	}
	if v.remote.IsValid() {
		a.Remote = v.remote.String()
	}
	v.lanes = src.lanes
	for i := range v.result.Events {
		in, ev := &v.result.Events[i], &a.Events[i] // in place: no event of its own for the heap
		*ev = src.event(in, v.request.Body)
		if ev.Made && v.makeID != nil {
			ev.ID = v.makeID(i)
		}
		if ev.Quarantine = v.result.Quarantine; ev.Quarantine != "" {
			ev.ID, ev.Made = "", false
		} else if v.test != nil { // a batch of ours is a test as a whole
			ev.Test = true
			ev.Jobs = src.testJobs(ev.ID, v.test.destinations)
			v.lanes = v.test.destinations
		} else {
			ev.Jobs = src.jobs(ev.ID, ev.Test)
			src.rule(ev, in, v.request.Method, v.request.Header, v.request.Body)
		}
	}
	a.AckMicros = time.Since(v.start).Microseconds()
	return a
}

// event is what the store keeps of one identified event, without its jobs.
func (s *source) event(in *provider.Event, body []byte) store.Event {
	bytes := body
	if in.Part >= 0 {
		bytes = in.Bytes
	}
	sum := sha256.Sum256(bytes)
	out := store.Event{
		ID: in.ID, Type: in.Type, Resource: in.Resource, // long ones are digests already
		Version: in.Version, Unit: in.Unit, Test: in.Test,
		Part: in.Part, Size: len(bytes), Digest: int64(binary.BigEndian.Uint64(sum[:8])),
		Window: s.windowID.length, WithRow: s.windowID.withRow, Revive: s.Revive,
	}
	if in.BodyHash {
		out.Window, out.WithRow = s.windowHash.length, s.windowHash.withRow
	}
	if in.NoID || in.ID == "" {
		out.ID, out.Made = "acuse-"+rand.Text(), true
	}
	return out
}

// jobs are one for each of the source's destinations.
func (s *source) jobs(eventID string, test bool) []store.NewJob {
	state, note := store.Queued, ""
	if test && s.TestEvents == "keep" {
		state, note = store.Filtered, "test event, and test_events is keep"
	}
	jobs := make([]store.NewJob, len(s.lanes))
	for i, name := range s.lanes {
		jobs[i] = store.NewJob{Destination: name, Key: key(s.keyPrefix, eventID, s.keySuffix[i]), State: state, Note: note}
	}
	return jobs
}

// rule lets the rules of the source and its destinations decide over the event's jobs. Where
// none is configured it costs nothing; the body is parsed at most once.
func (s *source) rule(e *store.Event, in *provider.Event, method string, header http.Header, body []byte) {
	if s.rules == nil || len(e.Jobs) == 0 {
		return
	}
	j := s.judge(e, in, method, header, body)
	for i := range e.Jobs {
		if e.Jobs[i].State == store.Queued {
			j.apply(&e.Jobs[i], s.rules[i])
		}
	}
}

// testJobs are those of a test of ours: for the destinations it was announced with,
// under the same key names as a real event.
func (s *source) testJobs(eventID string, destinations []string) []store.NewJob {
	jobs := make([]store.NewJob, len(destinations))
	for i, name := range destinations {
		suffix := ":" + escape(name)
		for k, lane := range s.lanes {
			if lane == name {
				suffix = s.keySuffix[k]
			}
		}
		jobs[i] = store.NewJob{Destination: name, Key: key(s.keyPrefix, eventID, suffix), State: store.Queued}
	}
	return jobs
}
