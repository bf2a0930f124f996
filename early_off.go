//go:build !ackearly

package main

import "acuse/store"

// inbox is what the edge writes to: the store itself.
func inbox(s store.Store) store.Inbox { return s }
