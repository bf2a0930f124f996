package bolt

import (
	"testing"
	"time"

	"acuse/store"
	"acuse/store/storetest"
)

var t0 = time.UnixMilli(1767225600000).UTC()

// opened opens a store of the test's own.
func opened(t testing.TB, dir string, o Options) *DB {
	t.Helper()
	db, err := Open(storetest.Background, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func arrival(source, id string, destinations ...string) store.Arrival {
	e := store.Event{ID: id, Type: "invoice.paid", Part: -1, Window: time.Hour}
	for _, d := range destinations {
		e.Jobs = append(e.Jobs, store.NewJob{Destination: d, Key: source + ":" + id + ":" + d, State: store.Queued})
	}
	return store.Arrival{Source: source, Provider: "stripe", ReceivedAt: t0, Method: "POST", Target: "/in/" + source, Body: []byte("{}"), Events: []store.Event{e}}
}

func accept(t testing.TB, db *DB, a store.Arrival) int64 {
	t.Helper()
	out, err := db.Accept(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Delivery
}
