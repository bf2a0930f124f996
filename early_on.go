//go:build ackearly

package main

import (
	"context"

	"acuse/store"
)

// earlyInbox acknowledges before the commit. It exists to show that scripts/crash
// notices such a build; nothing else may use the tag.
type earlyInbox struct{ store.Inbox }

func inbox(s store.Store) store.Inbox { return earlyInbox{s} }

func (e earlyInbox) Accept(_ context.Context, a store.Arrival) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(a.Events))
	for i := range out {
		out[i].Kind = store.Accepted
	}
	go e.Inbox.Accept(context.Background(), a)
	return out, nil
}
