package sqlite

import (
	"testing"
	"time"

	"acuse/store"
)

func TestSmoke(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.UnixMilli(1767225600000).UTC()
	a := store.Arrival{Source: "stripe", Provider: "stripe", ReceivedAt: now, Method: "POST", Target: "/in/stripe", Body: nil, Events: []store.Event{
		{ID: "evt_1", Part: -1, Window: time.Hour, Jobs: []store.NewJob{{Destination: "app", Key: "k", State: store.Queued}}},
	}}
	out, err := db.Accept(t.Context(), a)
	t.Log(out, err)
	out, err = db.Accept(t.Context(), a)
	t.Log(out, err)
	l, err := db.Lease(t.Context(), store.LeaseQuery{Destination: "app", Owner: "n1/http", Max: 3, TTL: time.Minute, Now: now})
	t.Logf("%+v %v", l, err)
	err = db.Settle(t.Context(), store.Settlement{Job: 1, Token: l[0].Token, At: now, State: store.Delivered, Result: store.Result{Outcome: store.Succeeded, Status: 200}})
	t.Log(err)
	list, next, err := db.Deliveries(t.Context(), store.DeliveryFilter{})
	t.Logf("%+v %v %v", list, next, err)
	for _, f := range []store.DeliveryFilter{{State: "delivered"}, {State: "dead"}, {State: "cancelled"}, {State: "filtered"}, {State: "leased"}, {State: "queued"}, {State: "superseded"}, {State: "quarantined"}, {Query: "evt_1"}, {Query: "#1"}, {Since: now, Until: now.Add(time.Second)}, {Source: "stripe", Answer: "2xx"}} {
		list, next, err := db.Deliveries(t.Context(), f)
		t.Logf("%+v: %d %v %v", f, len(list), next, err)
	}
	t.Log(db.Totals(t.Context()))
	t.Log(db.DeadGroups(t.Context()))
	t.Log(db.Attempts(t.Context(), 1))
	t.Log(db.Neighbours(t.Context(), 1, store.DeliveryFilter{}))
	t.Log(db.Resend(t.Context(), store.Resend{Delivery: 1, At: now}))
	t.Log(db.Check(t.Context(), true))
	t.Logf("%+v", db.Health())
	t.Log(db.Reject(t.Context(), store.Rejection{Source: "x", Reason: "y", At: now}))
	t.Log(db.RejectionList(t.Context(), "", 0, 10))
	t.Log(db.Trail(t.Context(), 1))
	t.Log(db.Backup(t.Context(), t.TempDir()+"/b.db"))
	_, err = Open(t.Context(), db.dir, Options{})
	t.Log(err)
}
