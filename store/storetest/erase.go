package storetest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"acuse/store"
)

// RunErase runs the cases of store.Eraser. forget makes the engine drop what it may keep
// of removed bytes: a compaction, where it needs one; nil: it keeps none.
func RunErase(t *testing.T, open Opener, forget func(t *testing.T, s store.Store)) {
	runList(t, open, eraseTests(forget))
}

func (e *env) erase(q store.Erasure) store.Erased {
	e.Helper()
	q.By, q.At, q.Reason = ana, at(time.Hour), "asked"
	out, err := e.s.Erase(e.Context(), q)
	e.ok(err)
	return out
}

// holding makes an event of a resource whose body, headers and target hold the secret.
func holding(id, resource, secret string) store.Arrival {
	a := arrival("s", id)
	a.Events[0].Resource = resource
	a.Body = []byte(strings.Repeat("x", 9000) + secret + strings.Repeat("y", 9000))
	a.Header = []byte(`{"X-Name":["` + secret + `"]}`)
	a.Target = "/in/s?name=" + secret
	return a
}

// lookFor fails when a file of the data folder holds the text.
func (e *env) lookFor(secret string) (found []string) {
	e.Helper()
	entries, err := os.ReadDir(e.dir)
	e.ok(err)
	for _, f := range entries {
		b, err := os.ReadFile(filepath.Join(e.dir, f.Name()))
		e.ok(err)
		if bytes.Contains(b, []byte(secret)) {
			found = append(found, f.Name())
		}
	}
	return found
}

func eraseTests(forget func(t *testing.T, s store.Store)) []test {
	return []test{
		{"", "an erased resource is nowhere any more, and its repeats are duplicates still", func(e *env) {
			const secret = "maria.perez@example.org"
			first := e.accepted(holding("evt_1", secret, secret))
			l := e.lease(t0)
			s := outcome(l, store.Queued, t0)
			s.Result.Body, s.Result.Error, s.Result.Header = []byte("no such user "+secret), "said "+secret, []byte(`{"X":["`+secret+`"]}`)
			e.ok(e.s.Settle(e.Context(), s))
			second := e.done(holding("evt_2", secret, secret))
			other := e.done(holding("evt_3", "in_2", "somebody"))
			e.ok(e.s.Reject(e.Context(), store.Rejection{Source: "s", Reason: "r", At: t0, Body: []byte("a " + secret), Header: []byte(`{}`)}))
			e.ok(e.s.Reject(e.Context(), store.Rejection{Source: "s", Reason: "other", At: t0, Body: []byte("b"), Header: []byte(`{}`)}))
			if len(e.lookFor(secret)) == 0 {
				e.Fatal("the search finds nothing before either")
			}
			want := store.Erased{Deliveries: 2, Cancelled: 1, Rejections: 1}
			q := store.Erasure{Resource: secret}
			q.DryRun = true
			preview := e.erase(q)
			same(e, "preview, but for the bytes", store.Erased{Deliveries: preview.Deliveries, Cancelled: preview.Cancelled, Rejections: preview.Rejections}, want)
			e.state(first, store.StateQueued)
			q.DryRun = false
			same(e, "erased as previewed", e.erase(q), preview)
			if preview.Bytes < 2*18_000 {
				e.Fatalf("%d bytes", preview.Bytes)
			}
			for _, id := range []int64{first, second} {
				d := e.delivery(id)
				same(e, "payload", d.PayloadGone, true)
				same(e, "what is left", d.Resource+d.Version+d.Remote, "")
				same(e, "type", d.Type, "invoice.paid")
				_, err := e.s.Payload(e.Context(), id)
				e.is(err, store.ErrPayloadGone)
				trail, err := e.s.Trail(e.Context(), id)
				e.ok(err)
				same(e, "act", trail[len(trail)-1].Act, "erase")
			}
			e.state(first, store.StateCancelled)
			e.state(second, store.StateDelivered)
			same(e, "attempts stay", len(e.attempts(first)), 1)
			same(e, "their errors do not", e.attempts(first)[0].Error+string(e.attempts(first)[0].Body), "")
			e.idle("app", at(day))
			_, err := e.resend(first, at(day))
			e.is(err, store.ErrPayloadGone)
			same(e, "a repeat", e.accept(holding("evt_1", "x", "y"))[0], store.Outcome{Kind: store.Duplicate, Delivery: first})
			p, err := e.s.Payload(e.Context(), other)
			e.ok(err)
			if !bytes.Contains(p.Body, []byte("somebody")) {
				e.Fatal("the other's payload")
			}
			list, err := e.s.RejectionList(e.Context(), "", 0, 10)
			e.ok(err)
			same(e, "rejections", len(list), 1)
			same(e, "again", e.erase(q), store.Erased{})
			e.sound()
			if forget != nil {
				forget(e.T, e.s)
			}
			if found := e.lookFor(secret); len(found) > 0 {
				e.Fatalf("%v still hold it", found)
			}
			e.reopen()
			e.sound()
		}},
		{"", "an erased event takes its copies along, and only those of the source named", func(e *env) {
			id := e.done(arrival("s", "evt_1"))
			elsewhere := e.done(arrival("t", "evt_1"))
			similar := e.done(arrival("s", "evt_1~x"))
			out, err := e.s.Resend(e.Context(), store.Resend{Delivery: id, AsNew: true, By: ana, At: t0, NewKeys: func(ev, d string) string { return ev + d }})
			e.ok(err)
			got := e.erase(store.Erasure{EventID: "evt_1", Source: "s"})
			same(e, "deliveries", got.Deliveries, 2)
			same(e, "shared", got.Shared, 0)
			same(e, "the copy", e.delivery(out.Delivery).PayloadGone, true)
			for _, kept := range []int64{elsewhere, similar} {
				_, err := e.s.Payload(e.Context(), kept)
				e.ok(err)
			}
			same(e, "of any source", e.erase(store.Erasure{EventID: "evt_1"}).Deliveries, 1)
			e.sound()
		}},
		{"", "what a batch shares goes for all its items; leases under way are lost", func(e *env) {
			a := arrival("s", "a", "b", "c")
			a.Events[1].Resource = "theirs"
			out := e.accept(a)
			leases := e.leases(e.query("app", t0))
			got := e.erase(store.Erasure{Resource: "theirs"})
			same(e, "deliveries", got.Deliveries, 1)
			same(e, "shared", got.Shared, 2)
			same(e, "cancelled", got.Cancelled, 3)
			same(e, "the others keep their resource", e.delivery(out[0].Delivery).Resource, "in_1")
			for _, l := range leases {
				e.is(e.s.Settle(e.Context(), outcome(l, store.Delivered, t0)), store.ErrLeaseLost)
			}
			same(e, "leased", e.totals().Leased, 0)
			e.sound()
			e.purge(rule(100 * day))
			e.sound()
		}},
		{"", "an erasure names a resource or an event", func(e *env) {
			for _, q := range []store.Erasure{{}, {Resource: "a", EventID: "b"}, {Source: "s"}} {
				_, err := e.s.Erase(e.Context(), q)
				e.is(err, store.ErrRefused)
			}
		}},
	}
}
