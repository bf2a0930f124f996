package store

import (
	"strings"
	"time"
)

// Orderable tells whether version can be compared within its unit at all.
func Orderable(unit, version string) bool {
	switch unit {
	case "s", "ms", "int":
		return plainNumber(version)
	case "rfc3339":
		_, err := time.Parse(time.RFC3339Nano, version)
		return err == nil
	case "string":
		return strings.ContainsAny(version, "0123456789")
	}
	return false
}

// Newer tells whether version a is strictly greater than b. Both are of the same unit: s,
// ms and int are numbers, rfc3339 is an instant whatever its zone. A string is compared as
// text, and only with one of the same form: the same characters but for the digits, so that
// two ways of writing a time are never taken for an order.
func Newer(unit, a, b string) bool {
	if !Orderable(unit, a) || !Orderable(unit, b) {
		return false
	}
	switch unit {
	case "rfc3339":
		x, _ := time.Parse(time.RFC3339Nano, a)
		y, _ := time.Parse(time.RFC3339Nano, b)
		return x.After(y)
	case "string":
		return a > b && form(a) == form(b)
	}
	return compareNumbers(a, b) > 0
}

// plainNumber is digits, with a fraction or without.
func plainNumber(s string) bool {
	whole, fraction, point := strings.Cut(s, ".")
	return digits(whole) && (!point || digits(fraction))
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// compareNumbers compares plain numbers of any length.
func compareNumbers(a, b string) int {
	aw, af, _ := strings.Cut(a, ".")
	bw, bf, _ := strings.Cut(b, ".")
	aw, bw = strings.TrimLeft(aw, "0"), strings.TrimLeft(bw, "0")
	switch {
	case len(aw) != len(bw):
		return len(aw) - len(bw)
	case aw != bw:
		return strings.Compare(aw, bw)
	}
	return strings.Compare(strings.TrimRight(af, "0"), strings.TrimRight(bf, "0"))
}

// form is the text with 0 for each digit.
func form(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, s)
}
