package sqlite

import (
	"time"

	"acuse/store/engine"
)

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// blob makes nil an empty BLOB: the column is NOT NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func ms(t time.Time) int64 { return engine.Milli(t) }

func instant(n int64) time.Time { return engine.Instant(n) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
