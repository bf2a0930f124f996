package storetest

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"acuse/store"
)

// Contents is a dump in a form that compares: a line for each record.
func Contents(t testing.TB, s store.Dumper) (lines []string) {
	t.Helper()
	for _, r := range dump(t, s) {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	return lines
}

func dump(t testing.TB, s store.Dumper) (list []store.Record) {
	t.Helper()
	if err := s.Dump(t.Context(), func(r store.Record) error {
		list = append(list, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// RunDump runs the cases of store.Dumper.
func RunDump(t *testing.T, open Opener) { runList(t, open, dumpTests) }

// reader is next of a Load.
func reader(list []store.Record) func() (store.Record, error) {
	return func() (store.Record, error) {
		if len(list) == 0 {
			return store.Record{}, io.EOF
		}
		r := list[0]
		list = list[1:]
		return r, nil
	}
}

// everything puts at least one record of each kind into the store.
func (e *env) everything() {
	ctx := e.Context()
	e.done(arrival("s", "delivered"))
	e.accepted(arrival("s", "dead"))
	e.dead(t0)
	e.accepted(revive(arrival("s", "revived")))
	e.dead(t0)
	e.accept(revive(arrival("s", "revived")))
	e.settle(e.lease(t0), store.Queued, t0)
	e.accept(arrival("batch", "a", "b"))
	e.leases(e.query("app", t0))
	q := arrival("s", "")
	q.Events[0].Quarantine, q.Events[0].Jobs = "no id", nil
	e.accept(q)
	e.accept(to(arrival("s", "\xffnobody")))
	e.purge(rule(0))
	a := windowed(later(arrival("s", "gone"), -40*day), 400*day)
	e.done(a)
	e.purge(rule(0))
	_, err := e.s.Resend(ctx, store.Resend{Delivery: 1, AsNew: true, By: ana, At: at(time.Hour), NewKeys: func(ev, d string) string { return ev + d }})
	e.ok(err)
	e.ok(e.s.Reject(ctx, store.Rejection{Source: "s", Reason: "r", At: t0, Body: []byte{0, 255}, Header: []byte(`{}`), Count: 1}))
	e.ok(e.s.Reject(ctx, store.Rejection{Source: "s", Reason: "unread", At: t0}))
	e.ok(e.s.PutUser(ctx, store.User{Name: "ana", Role: "owner", Password: "x", Language: "es", CreatedAt: t0}))
	e.ok(e.s.PutToken(ctx, store.Token{ID: "t", Name: "ci", Hash: []byte("h"), Scopes: []string{"read"}, CreatedAt: t0}))
	e.ok(e.s.PutSession(ctx, store.Session{ID: "s", User: "ana", Data: []byte("d"), Expires: at(time.Hour)}))
	e.ok(e.s.PutNotice(ctx, store.Notice{Rule: "dead", Subject: "app", Since: t0, Count: 1}))
	e.ok(e.s.PutSetting(ctx, "node", "abc"))
}

// other is a second, empty store of the same engine.
func (e *env) other() *env {
	o := &env{T: e.T, dir: e.TempDir(), open: e.open}
	o.start()
	return o
}

func imported(e *env, i store.Import) store.Imported {
	e.Helper()
	out, err := e.s.Import(e.Context(), i)
	e.ok(err)
	return out
}

// exported is what an export tells of a delivery.
func (e *env) exported(id int64) store.Import {
	e.Helper()
	i := store.Import{Delivery: e.delivery(id), Attempts: e.attempts(id), Digest: 1, Expires: at(30 * day), At: at(time.Hour)}
	p, err := e.s.Payload(e.Context(), id)
	e.ok(err)
	i.Payload = &p
	return i
}

var dumpTests = []test{
	{"", "a dump loaded into an empty store is the same store", func(e *env) {
		e.everything()
		want := Contents(e, e.s)
		kinds := map[string]bool{}
		for _, line := range want {
			var r map[string]any
			e.ok(json.Unmarshal([]byte(line), &r))
			for k, v := range r {
				if v != nil {
					kinds[k] = true
				}
			}
		}
		same(e, "kinds of record", len(kinds), 14)
		o := e.other()
		e.ok(o.s.Load(e.Context(), reader(dump(e, e.s))))
		got := Contents(e, o.s)
		for i := range min(len(got), len(want)) {
			same(e, fmt.Sprint("record ", i), got[i], want[i])
		}
		same(e, "records", len(got), len(want))
		a, err := e.s.Counts(e.Context())
		e.ok(err)
		b, err := o.s.Counts(e.Context())
		e.ok(err)
		same(e, "counts", b, a)
		o.sound()
		for range 2 {
			same(e, "totals", fmt.Sprintf("%+v", o.totals()), fmt.Sprintf("%+v", e.totals()))
			same(e, "a repeat", o.accept(arrival("s", "delivered"))[0], e.accept(arrival("s", "delivered"))[0])
			same(e, "a repeat of one that is gone", o.accept(arrival("s", "gone"))[0], e.accept(arrival("s", "gone"))[0])
			o.reopen()
		}
		same(e, "next number", o.accepted(arrival("s", "next")), e.accepted(arrival("s", "next")))
		o.purge(rule(1000 * day))
		o.sound()
	}},
	{"", "a dump is of one moment, whatever comes in meanwhile", func(e *env) {
		for i := range 50 {
			e.done(arrival("s", fmt.Sprint(i)))
		}
		deliveries, jobs := 0, 0
		e.ok(e.s.Dump(e.Context(), func(r store.Record) error {
			if r.Delivery != nil {
				if deliveries++; deliveries == 1 {
					e.done(arrival("new", "during"))
				}
			}
			if r.Job != nil {
				jobs++
			}
			return nil
		}))
		same(e, "deliveries and jobs", fmt.Sprint(deliveries, jobs), "50 50")
	}},
	{"", "an error ends a dump and a load; a store that holds something is not loaded into", func(e *env) {
		e.everything()
		n := 0
		e.is(e.s.Dump(e.Context(), func(store.Record) error { n++; return io.ErrShortWrite }), io.ErrShortWrite)
		same(e, "emitted", n, 1)
		e.is(e.s.Load(e.Context(), reader(nil)), store.ErrState)
		o := e.other()
		e.is(o.s.Load(e.Context(), func() (store.Record, error) { return store.Record{}, io.ErrUnexpectedEOF }), io.ErrUnexpectedEOF)
	}},
	{"", "an import into an empty store keeps the number, claims the key, brings attempts and bytes", func(e *env) {
		for range 3 {
			e.done(arrival("s", fmt.Sprint("n", e.totals().Deliveries)))
		}
		want := e.exported(3)
		o := e.other()
		same(e, "imported", imported(o, want), store.Imported{Delivery: 3, Kept: true})
		got := o.exported(3)
		got.Delivery.Jobs[0].ID, got.Delivery.Jobs[0].LeaseToken = want.Delivery.Jobs[0].ID, want.Delivery.Jobs[0].LeaseToken
		for i := range got.Attempts {
			got.Attempts[i].ID, got.Attempts[i].Job = want.Attempts[i].ID, want.Attempts[i].Job
		}
		same(e, "delivery", fmt.Sprintf("%+v", got.Delivery), fmt.Sprintf("%+v", want.Delivery))
		same(e, "attempts", fmt.Sprintf("%+v", got.Attempts), fmt.Sprintf("%+v", want.Attempts))
		same(e, "body", string(got.Payload.Body), string(want.Payload.Body))
		same(e, "a repeat", o.accept(arrival("s", "n2"))[0], store.Outcome{Kind: store.Duplicate, Delivery: 3})
		same(e, "again", imported(o, want), store.Imported{Delivery: 3, Duplicate: true})
		same(e, "the next number", o.accepted(arrival("s", "x")), 4)
		o.sound()
		o.reopen()
		o.sound()
	}},
	{"", "an import into a store with other numbers gives a new one", func(e *env) {
		e.done(arrival("s", "a"))
		one := e.exported(1)
		o := e.other()
		o.done(arrival("t", "x"))
		same(e, "imported", imported(o, one), store.Imported{Delivery: 2})
		same(e, "event id", o.delivery(2).EventID, "a")
		one.Delivery.EventID, one.Delivery.ID = "far", 900
		same(e, "above all", imported(o, one), store.Imported{Delivery: 900, Kept: true})
		same(e, "the next number", o.accepted(arrival("t", "y")), 901)
		o.sound()
	}},
	{"", "what was unfinished is imported as cancelled, or queued on demand", func(e *env) {
		e.accepted(to(arrival("s", "a"), "app", "crm"))
		e.lease(t0)
		one := e.exported(1)
		o := e.other()
		same(e, "imported", imported(o, one), store.Imported{Delivery: 1, Kept: true, Cancelled: 2})
		o.state(1, store.StateCancelled)
		same(e, "its attempt", o.attempts(1)[0].Outcome, store.Interrupted)
		o.idle("app", at(day))
		_, err := o.resend(1, at(2*time.Hour))
		e.ok(err)
		o.lease(at(2 * time.Hour))
		o.sound()

		again := e.other()
		one.Requeue = true
		same(e, "imported", imported(again, one), store.Imported{Delivery: 1, Kept: true})
		l := again.lease(at(time.Hour))
		same(e, "key", l.Key, "s:a:app")
		same(e, "body", string(l.Payload.Body), string(arrival("s", "a").Body))
		again.sound()
	}},
	{"", "an import without payload, from quarantine, or without id", func(e *env) {
		i := store.Import{Delivery: e.delivery(e.done(arrival("s", "a"))), Expires: at(day), At: t0}
		o := e.other()
		i.Delivery.Jobs = slices.Clone(i.Delivery.Jobs)
		imported(o, i)
		same(e, "payload gone", o.delivery(1).PayloadGone, true)
		i.Delivery.EventID = ""
		_, err := o.s.Import(e.Context(), i)
		e.is(err, store.ErrRefused)
		i.Delivery.State, i.Delivery.Quarantine, i.Delivery.Jobs = store.StateQuarantined, "no id", nil
		imported(o, i)
		same(e, "quarantined", o.totals().Quarantined, 1)
		o.sound()
	}},
}
