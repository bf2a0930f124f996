package effect

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"acuse/store"
)

// causes knows delivery 7, of event evt_1 at stripe.
type causes struct{}

func (causes) Cause(_ context.Context, delivery int64) (string, string, error) {
	if delivery != 7 {
		return "", "", store.ErrNotFound
	}
	return "stripe", "evt_1", nil
}

func (causes) DeliveryOf(_ context.Context, source, eventID string) (int64, error) {
	if source == "stripe" && eventID == "evt_1" {
		return 7, nil
	}
	return 0, nil
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestP10KeyOfAnActionIsWrittenDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		header  http.Header
		derived bool
		key     string
		origin  store.KeyOrigin
		bound   int64
		ignored bool
	}{
		{"event and action", header("Acuse-Event", "stripe:evt_1", "Acuse-Action", "refund"), true, "stripe:evt_1:refund", store.KeyOfEvent, 7, false},
		{"delivery and action", header("Acuse-Delivery", "7", "Acuse-Action", "refund"), true, "stripe:evt_1:refund", store.KeyOfEvent, 7, false},
		{"both", header("Acuse-Delivery", "7", "Acuse-Event", "stripe:evt_1", "Acuse-Action", "refund"), true, "stripe:evt_1:refund", store.KeyOfEvent, 7, false},
		{"an event that is not kept", header("Acuse-Event", "stripe:evt_9", "Acuse-Action", "refund"), true, "stripe:evt_9:refund", store.KeyOfEvent, 0, false},
		{"an event without a source", header("Acuse-Event", "ev1", "Acuse-Action", "charge"), true, "ev1:charge", store.KeyOfEvent, 0, false},
		{"colons in an event id", header("Acuse-Event", "s:urn:x", "Acuse-Action", "a b"), true, "s:urn%3Ax:a%20b", store.KeyOfEvent, 0, false},
		{"a derived key goes before the caller's own", header("Acuse-Event", "stripe:evt_1", "Acuse-Action", "refund", "Idempotency-Key", "random"), false, "stripe:evt_1:refund", store.KeyOfEvent, 7, true},
		{"task and step", header("Acuse-Task", "t1", "Acuse-Step", "3", "Idempotency-Key", "random"), false, "t1:3", store.KeyOfTask, 0, true},
		{"the event goes before the task", header("Acuse-Event", "stripe:evt_1", "Acuse-Action", "refund", "Acuse-Task", "t1", "Acuse-Step", "3"), false, "stripe:evt_1:refund", store.KeyOfEvent, 7, false},
		{"the caller's own", header("Idempotency-Key", "k1"), false, "k1", store.KeyGiven, 0, false},
		{"the caller's own, quoted", header("Idempotency-Key", `"k\"1"`), false, `k"1`, store.KeyGiven, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n, err := NameOf(t.Context(), c.header, c.derived, causes{})
			if err != nil {
				t.Fatal(err)
			}
			if n.Key != c.key || n.Origin != c.origin || n.Delivery != c.bound || n.Ignored != c.ignored {
				t.Errorf("got %+v", n)
			}
		})
	}
}

func TestANameThatCannotBeUsedSaysWhatToSend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		header  http.Header
		derived bool
		want    string
	}{
		{"nothing", header(), false, "Acuse-Action"},
		{"an empty key", header("Idempotency-Key", ""), false, "Acuse-Action"},
		{"an empty quoted key", header("Idempotency-Key", `""`), false, "Acuse-Action"},
		{"an event without its action", header("Acuse-Event", "stripe:evt_1"), false, "Acuse-Action"},
		{"an own key where keys are derived", header("Idempotency-Key", "k1"), true, "takes no Idempotency-Key"},
		{"two keys", header("Idempotency-Key", "a", "Idempotency-Key", "b"), false, "several"},
		{"a delivery that is no number", header("Acuse-Delivery", "x", "Acuse-Action", "refund"), false, "Acuse-Delivery is a number"},
		{"a delivery that is not there", header("Acuse-Delivery", "9", "Acuse-Action", "refund"), false, "no delivery #9"},
		{"a long key", header("Idempotency-Key", strings.Repeat("k", 256)), false, "longer than 255"},
		{"a key with a control character", header("Idempotency-Key", "a\x01"), false, "printable"},
		{"a person's address", header("Idempotency-Key", "ana@example.org-1"), false, "e-mail"},
		{"a person's address as an action", header("Acuse-Event", "ev1", "Acuse-Action", "mail ana@example.org"), false, "e-mail"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := NameOf(t.Context(), c.header, c.derived, causes{})
			var bad *KeyError
			if !errors.As(err, &bad) || !strings.Contains(bad.Detail, c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

func TestLooksLikeMail(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"ana@example.org": true, "x:ana%40example.org:y": true, "order-5@v2": false, "@example.org": false,
		"a@b": false, "a@b.c": false, "a@b.co": true, "k1": false, "pkg@1.2.3": false,
	} {
		if got := LooksLikeMail(key); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
}
