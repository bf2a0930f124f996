package alert

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"acuse/store"
)

// held is what store.Heads gives: those whose turn came before since.
type held []store.Head

func (h *held) Heads(_ context.Context, since time.Time, _ int) (out []store.Head, _ error) {
	for _, one := range *h {
		if !one.Since.After(since) {
			out = append(out, one)
		}
	}
	return out, nil
}

func TestAHeadThatWaits15MinutesIsToldOnceAndItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{notices: map[key]store.Notice{}}
		began := time.Now()
		list := &held{{Destination: "app", Order: "cus_secret", Since: began, Behind: 3}, {Destination: "app", Order: "cus_2", Since: began.Add(time.Minute), Behind: 1}}
		begin(t, w.alerter(t, Options{Orders: list, Link: "https://acuse.lan"}))
		time.Sleep(14*time.Minute + 50*time.Second)
		synctest.Wait()
		if got := w.got(); len(got) != 0 {
			t.Fatalf("told early: %q", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		got := w.got()
		if len(got) != 1 || !strings.Contains(got[0], "an event for app has held up others of its order since") || !strings.HasSuffix(got[0], "/destinations") || strings.Contains(got[0], "cus_") {
			t.Fatalf("told %q", got)
		}
		w.set(func() { *list = nil })
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := w.got(); len(got) != 1 || !strings.Contains(got[0], "no order of app is held up any more") {
			t.Errorf("told %q", got)
		}
	})
}
