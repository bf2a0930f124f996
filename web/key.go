package web

import "acuse/store"

// Key is the idempotency key of a job: "stripe:evt_1:app", for every attempt, every
// resend and after every restart; see store.Key.
//
// source and destination are the key names: those stay when the config renames.
func Key(source, eventID, destination string) string {
	return store.Key(source, eventID, destination)
}

// key is Key over parts that are escaped already but for the event id, which is the
// only one that changes from request to request.
func key(prefix, eventID, suffix string) string {
	b := make([]byte, 0, len(prefix)+len(eventID)+len(suffix)+16)
	b = append(b, prefix...)
	b = store.AppendKeyPart(b, eventID)
	b = append(b, suffix...)
	return store.ShortKey(b)
}

func escape(s string) string { return string(store.AppendKeyPart(nil, s)) }
