package engine

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"acuse/store"
)

// EraseSubject names what was erased in the audit log: the event id stays known, a
// resource may be a person's and is told by its digest.
func EraseSubject(q *store.Erasure) string {
	what := "event " + q.EventID
	if q.Resource != "" {
		what = fmt.Sprintf("resource sha256:%x", sha256.Sum256([]byte(q.Resource)))[:32]
	}
	return strings.TrimSpace(what + " " + q.Source)
}

// Set is a set of numbers.
func Set(ids []int64) map[int64]bool {
	m := make(map[int64]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m
}
