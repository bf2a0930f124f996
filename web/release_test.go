package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"acuse/provider"
	"acuse/store"
)

// cell keeps quarantined deliveries in memory.
type cell struct {
	list     []store.Delivery
	payloads map[int64]store.Payload
	claimed  map[string]bool
	released map[int64]store.Event
}

func (c *cell) QuarantinedAfter(_ context.Context, source string, after int64, limit int) (out []store.Delivery, err error) {
	for _, d := range c.list {
		if d.ID > after && d.Quarantine != "" && (source == "" || d.Source == source) && len(out) < min(limit, 2) {
			out = append(out, d)
		}
	}
	return out, nil
}

func (c *cell) Release(_ context.Context, id int64, e store.Event, by store.Actor, _ time.Time) (store.Outcome, error) {
	if by.Name != "ana" {
		return store.Outcome{}, errors.New("nobody")
	}
	c.released[id] = e
	if c.claimed[e.ID] {
		return store.Outcome{Kind: store.Duplicate, Delivery: 1}, nil
	}
	c.claimed[e.ID] = true
	return store.Outcome{Kind: store.Accepted, Delivery: id}, nil
}

func (c *cell) Delivery(_ context.Context, id int64) (store.Delivery, error) {
	for _, d := range c.list {
		if d.ID == id {
			return d, nil
		}
	}
	return store.Delivery{}, store.ErrNotFound
}

func (c *cell) Payload(_ context.Context, id int64) (store.Payload, error) {
	p, ok := c.payloads[id]
	if !ok {
		return p, store.ErrPayloadGone
	}
	return p, nil
}

func (c *cell) Deliveries(_ context.Context, f store.DeliveryFilter) (list []store.Delivery, next int64, err error) {
	list = append(list, store.Delivery{DeliveryHead: store.DeliveryHead{ID: 50, Source: f.Source, EventID: "e9", Type: f.Query}}) // of that type
	if c.claimed[f.Query] {
		list = append(list, store.Delivery{DeliveryHead: store.DeliveryHead{ID: 51, Source: f.Source, EventID: f.Query}})
	}
	return list, 0, nil
}

// byHeader identifies by X-Id; "two" is a batch of two, and no header stays doubtful.
type byHeader struct{ checker }

func (b *byHeader) Identify(r *provider.Request) provider.Result {
	switch id := r.Header.Get("X-Id"); id {
	case "":
		return provider.Result{Quarantine: "no X-Id", Events: []provider.Event{{Part: -1}}}
	case "two":
		return provider.Result{Events: []provider.Event{{ID: "a", Part: 0, Bytes: []byte("1")}, {ID: "b", Part: 1, Bytes: []byte("2")}}}
	default:
		return provider.Result{Events: []provider.Event{{ID: id, Type: "t", Part: -1}}}
	}
}

func newCell(ids ...string) *cell {
	c := &cell{payloads: map[int64]store.Payload{}, claimed: map[string]bool{"taken": true}, released: map[int64]store.Event{}}
	for i, id := range ids {
		n := int64(i + 1)
		c.list = append(c.list, store.Delivery{DeliveryHead: store.DeliveryHead{ID: n, Source: "g"}, Quarantine: "no id"})
		h := http.Header{}
		if id != "" {
			h.Set("X-Id", id)
		}
		c.payloads[n] = store.Payload{Method: "POST", Target: "/in/g", Header: store.EncodeHeader(h), Body: []byte("{}"), Part: -1}
	}
	return c
}

func TestReleaseIdentifiesWithTheConfigOfNow(t *testing.T) {
	t.Parallel()
	ana := store.Actor{Name: "ana"}
	begin := func(c *cell) (*Releaser, *[]string) {
		s := signedSource("g")
		s.Checker = &byHeader{}
		woken := &[]string{}
		e := newEdge(t, EdgeOptions{Wake: func(d []string) { *woken = append(*woken, d...) }}, s)
		return NewReleaser(e, c), woken
	}
	t.Run("all of a source: released, found to be duplicates, or left", func(t *testing.T) {
		t.Parallel()
		c := newCell("e1", "", "taken", "e4", "two")
		delete(c.payloads, 4) // purged
		r, woken := begin(c)
		released, duplicates, err := r.Release(t.Context(), "g", nil, false, ana)
		if err != nil || released != 2 || duplicates != 1 {
			t.Fatalf("%d %d %v", released, duplicates, err)
		}
		e := c.released[1]
		if e.ID != "e1" || e.Part != -1 || e.Size != 2 || len(e.Jobs) != 2 || e.Jobs[0].Key != "g:e1:app" || e.Quarantine != "" {
			t.Errorf("%+v", e)
		}
		if two := c.released[5]; len(two.ID) != len("batch:")+64 || two.Part != -1 || two.Size != 2 {
			t.Errorf("a batch is one delivery: %+v", two)
		}
		if len(c.released) != 3 || len(*woken) != 2 {
			t.Errorf("released %d, woken %v", len(c.released), *woken)
		}
	})
	t.Run("a dry run tells what would come of it and writes nothing", func(t *testing.T) {
		t.Parallel()
		c := newCell("e1", "", "e3", "taken", "e1")
		r, woken := begin(c)
		released, duplicates, err := r.Release(t.Context(), "", nil, true, ana)
		if err != nil || released != 2 || duplicates != 2 || len(c.released) != 0 || len(*woken) != 0 {
			t.Errorf("%d, %d, %v, written %d, woken %v", released, duplicates, err, len(c.released), *woken)
		}
	})
	t.Run("chosen ones only", func(t *testing.T) {
		t.Parallel()
		c := newCell("e1", "e2", "e3")
		r, _ := begin(c)
		if released, _, err := r.Release(t.Context(), "", []int64{2}, false, ana); err != nil || released != 1 || c.released[2].ID != "e2" {
			t.Errorf("%d %v", released, err)
		}
	})
	t.Run("one that is not quarantined, or of another source, or unknown, is an error", func(t *testing.T) {
		t.Parallel()
		c := newCell("e1", "e2")
		c.list[1].Quarantine = ""
		r, _ := begin(c)
		for _, x := range []struct {
			source string
			id     int64
			want   error
		}{{"", 2, store.ErrState}, {"other", 1, store.ErrState}, {"", 9, store.ErrNotFound}} {
			if _, _, err := r.Release(t.Context(), x.source, []int64{x.id}, false, ana); !errors.Is(err, x.want) {
				t.Errorf("%+v: %v", x, err)
			}
		}
	})
	t.Run("deliveries of a source that is gone stay", func(t *testing.T) {
		t.Parallel()
		c := newCell("e1")
		c.list[0].Source = "gone"
		r, _ := begin(c)
		if released, duplicates, err := r.Release(t.Context(), "", nil, false, ana); err != nil || released+duplicates != 0 {
			t.Errorf("%d %d %v", released, duplicates, err)
		}
	})
	t.Run("an error says which", func(t *testing.T) {
		t.Parallel()
		r, _ := begin(newCell("e1"))
		_, _, err := r.Release(t.Context(), "", nil, false, store.Actor{})
		if fmt.Sprint(err) != "release 1: nobody" {
			t.Errorf("%v", err)
		}
	})
}
