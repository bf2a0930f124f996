package bolt

import (
	"os"
	"syscall"
	"testing"

	"acuse/store"
)

// TestP1FailedWriteReportsNothingWritten swaps the file under the engine for a device
// that is always full, in the middle of the work, and back.
func TestP1FailedWriteReportsNothingWritten(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir(), Options{})
	accept(t, db, arrival("s", "first", "app"))
	device, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	fd := int(db.handle.Fd())
	good, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	swap := func(from int) {
		if err := syscall.Dup3(from, fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	swap(int(device.Fd()))
	for range 2 {
		if _, err := db.Accept(t.Context(), arrival("s", "second", "app")); !isErr(err, store.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		db.space.Forget()
	}
	if db.Health().Writable {
		t.Error("health says writable after a failed commit")
	}
	if d, err := db.Delivery(t.Context(), 1); err != nil || d.EventID != "first" {
		t.Errorf("reads go on: %v", err)
	}
	swap(good)
	if err := syscall.Close(good); err != nil {
		t.Fatal(err)
	}
	db.space.Forget()
	if id := accept(t, db, arrival("s", "second", "app")); id != 2 || !db.Health().Writable {
		t.Errorf("number %d, health %+v", id, db.Health())
	}
	totals, err := db.Totals(t.Context())
	if err != nil || totals.Queued != 2 || totals.Deliveries != 2 {
		t.Errorf("totals: %+v %v", totals, err)
	}
	sound(t, db)
}
