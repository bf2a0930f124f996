// Package effect is the outbound half: an agent's call to the outside (a refund, a mail, a
// ticket) runs at most once for each idempotency key. It knows keys, fingerprints, what an
// answer means, and how a call is run on the server's own context; the engine's constraint
// in package store decides who may run.
package effect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"acuse/store"
)

// The request headers that name an action. They never go out.
const (
	HeaderEvent    = "Acuse-Event"    // "stripe:evt_1": the source's key name and the event id
	HeaderDelivery = "Acuse-Delivery" // 10482, as the app received it
	HeaderJob      = "Acuse-Job"      // the job, as a pull consumer leased it
	HeaderAttempt  = "Acuse-Attempt"
	HeaderAction   = "Acuse-Action" // "refund"
	HeaderTask     = "Acuse-Task"   // with Acuse-Step, where no event is the cause
	HeaderStep     = "Acuse-Step"
	HeaderKey      = "Idempotency-Key"
)

// Name is what a caller called its action.
type Name struct {
	Key    string // "stripe:evt_1:refund"
	Origin store.KeyOrigin
	Action string // Acuse-Action; empty: none was given
	// The cause, as far as it is known.
	Delivery, Job int64
	Attempt       int
	Task, Step    string
	// Ignored says that the caller's own key was given too, and not used.
	Ignored bool
}

// KeyError tells a caller what is wrong with the name of its action and what to do.
type KeyError struct{ Detail string }

func (e *KeyError) Error() string { return e.Detail }

// howToName ends every message about a missing key.
const howToName = "Send Acuse-Event (such as stripe:evt_1) or Acuse-Delivery together with Acuse-Action (such as refund); " +
	"or Acuse-Task together with Acuse-Step; or an Idempotency-Key of your own"

const howToDerive = "Send Acuse-Event (such as stripe:evt_1) or Acuse-Delivery together with Acuse-Action (such as refund); " +
	"or Acuse-Task together with Acuse-Step. This scope takes no Idempotency-Key of the caller's own"

// Causes finds the delivery that an action names.
type Causes interface {
	// Cause finds a delivery by its number: the source's key name and the event id.
	Cause(ctx context.Context, delivery int64) (source, eventID string, err error)
	// DeliveryOf finds the number of an event's delivery; 0: none is kept.
	DeliveryOf(ctx context.Context, source, eventID string) (int64, error)
}

// NameOf reads the name of an action from a request's headers: an event or a delivery with
// an action, else a task with a step, else the caller's own key where derived is false. The
// error is a *KeyError when the caller can mend it.
func NameOf(ctx context.Context, h http.Header, derived bool, causes Causes) (Name, error) {
	n := Name{
		Action: h.Get(HeaderAction), Task: h.Get(HeaderTask), Step: h.Get(HeaderStep),
	}
	own, err := ownKey(h)
	if err != nil {
		return n, err
	}
	if err := n.readCause(h); err != nil {
		return n, err
	}
	event := h.Get(HeaderEvent)
	switch {
	case (event != "" || n.Delivery != 0) && n.Action != "":
		n.Origin, n.Ignored = store.KeyOfEvent, own != ""
		n.Key, err = n.keyOfEvent(ctx, event, causes)
	case n.Task != "" && n.Step != "":
		n.Origin, n.Ignored = store.KeyOfTask, own != ""
		n.Key = store.Key(n.Task, n.Step)
	case own != "" && !derived:
		n.Origin, n.Key = store.KeyGiven, own
	case derived:
		err = &KeyError{howToDerive}
	default:
		err = &KeyError{howToName}
	}
	if err == nil {
		err = n.check()
	}
	return n, err
}

func (n *Name) readCause(h http.Header) (err error) {
	if n.Delivery, err = number(h, HeaderDelivery); err != nil {
		return err
	}
	if n.Job, err = number(h, HeaderJob); err != nil {
		return err
	}
	attempt, err := number(h, HeaderAttempt)
	n.Attempt = int(min(attempt, 1<<30))
	return err
}

func number(h http.Header, name string) (int64, error) {
	v := strings.TrimPrefix(h.Get(name), "#")
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1 {
		return 0, &KeyError{name + " is a number, such as 10482"}
	}
	return n, nil
}

// keyOfEvent derives the key of an event's action and finds the delivery it belongs to.
// Acuse-Event holds what is before the first colon as the source; without a colon the
// value is the event id alone, and the effect is bound to no delivery.
func (n *Name) keyOfEvent(ctx context.Context, event string, causes Causes) (string, error) {
	source, id, whole := strings.Cut(event, ":")
	if event == "" {
		var err error
		source, id, err = causes.Cause(ctx, n.Delivery)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return "", &KeyError{fmt.Sprintf("there is no delivery #%d (any more): send Acuse-Event instead of Acuse-Delivery", n.Delivery)}
		case err != nil:
			return "", err
		}
		return store.Key(source, id, n.Action), nil
	}
	if !whole {
		return store.Key(event, n.Action), nil
	}
	if n.Delivery == 0 {
		var err error
		if n.Delivery, err = causes.DeliveryOf(ctx, source, id); err != nil {
			return "", err
		}
	}
	return store.Key(source, id, n.Action), nil
}

// ownKey is the caller's own key: bare, or quoted as a structured field is.
func ownKey(h http.Header) (string, error) {
	values := h.Values(HeaderKey)
	if len(values) > 1 {
		return "", &KeyError{"there are several Idempotency-Key headers: send one"}
	}
	if len(values) == 0 {
		return "", nil
	}
	v := strings.TrimSpace(values[0])
	if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
		v = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(v[1 : len(v)-1])
	}
	return v, nil
}

// check refuses names that cannot be kept or that carry a person's address outside.
func (n *Name) check() error {
	for _, p := range []struct{ name, value string }{
		{HeaderAction, n.Action}, {HeaderTask, n.Task}, {HeaderStep, n.Step}, {HeaderKey, n.Key},
	} {
		switch {
		case len(p.value) > store.MaxKey:
			return &KeyError{fmt.Sprintf("%s is longer than %d characters", p.name, store.MaxKey)}
		case !printable(p.value):
			return &KeyError{p.name + " holds characters outside printable ASCII"}
		}
	}
	if LooksLikeMail(n.Key) {
		return &KeyError{"the key looks like an e-mail address, and keys are seen by the upstream: use an id instead"}
	}
	return nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// LooksLikeMail tells whether a key holds an address such as ana@example.org, plain or
// percent-encoded.
func LooksLikeMail(key string) bool {
	key = strings.ReplaceAll(strings.ReplaceAll(key, "%40", "@"), "%2E", ".")
	for rest := key; ; {
		before, after, found := strings.Cut(rest, "@")
		if !found {
			return false
		}
		host := after[:len(after)-len(strings.TrimLeft(after, hostChars))]
		dot := strings.LastIndexByte(strings.TrimRight(host, "."), '.')
		if before != "" && !strings.HasSuffix(before, ":") && dot > 0 && len(host)-dot > 2 {
			return true
		}
		rest = after
	}
}

const hostChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
