package provider

import (
	"net/http"
	"strconv"
	"time"
)

// timestampRule says which signed text tells the time and how old it may be.
type timestampRule struct {
	from   []*template
	unit   string
	past   time.Duration // -1: not checked
	future time.Duration // -1: not checked
}

func parseTimestamp(path string, f *timestampFile) (*timestampRule, error) {
	if f == nil {
		return nil, nil
	}
	from, err := parseTemplates(join(path, "from"), f.From, inMessage)
	if err != nil {
		return nil, err
	}
	if len(from) == 0 {
		return nil, at(join(path, "from"), "missing")
	}
	switch f.Unit {
	case "s", "ms", "auto", "rfc3339", "http-date":
	default:
		return nil, at(join(path, "unit"), "unknown unit %q", f.Unit)
	}
	t := &timestampRule{from: from, unit: f.Unit, past: -1, future: -1}
	if f.Tolerance != nil {
		t.past = time.Duration(*f.Tolerance) * time.Second
		t.future = t.past
	}
	if f.Future.given {
		t.future = -1
		if f.Future.value != nil {
			t.future = time.Duration(*f.Future.value) * time.Second
		}
	}
	if t.past < -1 || t.future < -1 {
		return nil, at(path, "negative tolerance")
	}
	return t, nil
}

// with replaces the tolerance by a source's own, both ways.
func (t *timestampRule) with(tolerance time.Duration) *timestampRule {
	if t == nil || tolerance == 0 {
		return t
	}
	out := *t
	out.past, out.future = tolerance, tolerance
	return &out
}

// judge checks the time of a request whose signature is good already.
func (t *timestampRule) judge(in *input) *Refusal {
	if t == nil {
		return nil
	}
	for _, from := range t.from {
		out, missing := from.append(in.buf[:0], in)
		in.buf = out
		if missing != nil {
			continue
		}
		at, ok := parseTime(string(out), t.unit)
		if !ok {
			return &Refusal{Reason: MalformedHeader, Detail: from.text, Signed: true}
		}
		skew := in.now.Sub(at)
		switch {
		case t.past >= 0 && skew > t.past:
			return &Refusal{Reason: TimestampExpired, Detail: from.text, Skew: skew, Allowed: t.past, Signed: true}
		case t.future >= 0 && skew < -t.future: // not -skew: the farthest one has no negative
			return &Refusal{Reason: TimestampFuture, Detail: from.text, Skew: skew, Allowed: t.future, Signed: true}
		}
		return nil
	}
	return &Refusal{Reason: MissingHeader, Detail: t.from[0].text, Signed: true}
}

// parseTime reads a signed time. Numbers are whole; ones too large to be a time are
// as far away as a time can be.
func parseTime(s, unit string) (time.Time, bool) {
	switch unit {
	case "rfc3339":
		at, err := time.Parse(time.RFC3339, s)
		return at, err == nil
	case "http-date":
		at, err := http.ParseTime(s)
		return at, err == nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	if unit == "auto" {
		if unit = "s"; n >= 1e11 {
			unit = "ms"
		}
	}
	const far = int64(1) << 40 // seconds, 34 000 years
	if unit == "ms" {
		n = min(max(n, -far), far*1000)
		return time.UnixMilli(n), true
	}
	return time.Unix(min(max(n, -far), far), 0), true
}

// formatTime writes a time as the provider would.
func formatTime(at time.Time, unit string) string {
	switch unit {
	case "rfc3339":
		return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	case "http-date":
		return at.UTC().Format(http.TimeFormat)
	case "ms":
		return strconv.FormatInt(at.UnixMilli(), 10)
	}
	return strconv.FormatInt(at.Unix(), 10)
}
