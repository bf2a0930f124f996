package bolt

import (
	"testing"
	"time"

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
