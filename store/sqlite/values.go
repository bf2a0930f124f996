package sqlite

import (
	"time"
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

// ms is t in unix milliseconds; 0 for the zero time.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant reads what ms wrote.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
