package command

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"acuse/queue/forward"
	"acuse/store"
)

// Delivery is what a command learns of the event it is run for.
type Delivery struct {
	ID             int64
	Source         string
	EventID        string
	Type           string
	Resource       string
	Attempt        int
	ReceivedAt     time.Time
	Resend, Test   bool
	IdempotencyKey string
	Destination    string
	Method         string
}

// FromLease is the delivery of a lease.
func FromLease(l store.Lease) Delivery {
	d := l.Delivery
	return Delivery{ID: d.ID, Source: d.Source, EventID: d.EventID, Type: d.Type, Resource: d.Resource, Attempt: l.Attempt, ReceivedAt: d.ReceivedAt,
		Resend: l.Resend, Test: d.Test, IdempotencyKey: l.Key, Destination: l.Destination, Method: l.Payload.Method}
}

// Variables are d and the headers as variables of an environment. Each of d is always
// there, if empty. Bytes outside printable ASCII are percent-encoded, as in the headers
// that an app gets. header may be changed.
func Variables(d Delivery, header http.Header) []string {
	var out []string
	set := func(name, value string) { out = append(out, "ACUSE_"+name+"="+forward.Escape(value)) }
	set("DELIVERY", strconv.FormatInt(d.ID, 10))
	set("SOURCE", d.Source)
	set("EVENT_ID", d.EventID)
	set("EVENT_TYPE", d.Type)
	set("RESOURCE", d.Resource)
	set("ATTEMPT", strconv.Itoa(d.Attempt))
	set("RECEIVED_AT", d.ReceivedAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	set("RESEND", strconv.FormatBool(d.Resend))
	set("TEST", strconv.FormatBool(d.Test))
	set("IDEMPOTENCY_KEY", d.IdempotencyKey)
	set("DESTINATION", d.Destination)
	set("METHOD", d.Method)
	return append(out, headerVariables(forward.Passed(header))...)
}

// headerVariables make ACUSE_HEADER_STRIPE_SIGNATURE of Stripe-Signature; several
// values are joined with ", ". A name with anything but letters, digits and "-" is left
// out: Stripe_Signature would pass for the header that was verified.
func headerVariables(h http.Header) (out []string) {
	for name, values := range h {
		if strings.Trim(name, "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
			continue
		}
		value := strings.ReplaceAll(strings.Join(values, ", "), "\x00", "")
		out = append(out, "ACUSE_HEADER_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+value)
	}
	slices.Sort(out)
	return out
}
