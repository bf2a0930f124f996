package config

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/gommon/bytes"
)

// The errors of a scalar say what is wanted, never what was given.
var (
	errDuration = errors.New(`a duration is wanted, such as "30s", "15m", "2h" or "7d"`)
	errSize     = errors.New(`a size is wanted, such as "512KiB" or "2GiB"`)
	errRate     = errors.New(`a rate is wanted, such as "5/s", "100/m" or "1000/h"`)
	errNumber   = errors.New("a whole number is wanted")
	errDecimal  = errors.New("a number is wanted, such as 0.1")
	errBool     = errors.New("true or false is wanted")
	errPrefix   = errors.New(`an address or network is wanted, such as "203.0.113.7" or "10.0.0.0/8"`)
	errURL      = errors.New(`an address is wanted, such as "https://hooks.example.org"`)
)

var durationForm = regexp.MustCompile(`^(?:(\d{1,5})d)?((?:\d{1,9}(?:\.\d{1,9})?(?:h|m|s|ms))*)$`)

// parseDuration reads Go's form with days in front: "90s", "1h30m", "7d".
func parseDuration(s string) (time.Duration, error) {
	m := durationForm.FindStringSubmatch(s)
	if m == nil || s == "" {
		return 0, errDuration
	}
	var d time.Duration
	if m[1] != "" {
		days, _ := strconv.Atoi(m[1]) // five digits
		d = time.Duration(days) * 24 * time.Hour
	}
	if m[2] != "" {
		rest, err := time.ParseDuration(m[2])
		if err != nil || rest > math.MaxInt64-d {
			return 0, errDuration
		}
		d += rest
	}
	return d, nil
}

// formatDuration is parseDuration's inverse, as people write it: "90d", "1h30m".
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// parseSize reads "512KiB", "1.5MB" or plain bytes. The library takes negative
// sizes and lets large ones wrap, so both are refused here.
func parseSize(s string) (Size, error) {
	n, err := bytes.Parse(s)
	if err != nil || n < 0 || n == math.MaxInt64 {
		return 0, errSize
	}
	return Size(n), nil
}

// String is the size as people write it, when it is a whole number of a unit.
func (s Size) String() string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	n, i := int64(s), 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n, i = n/1024, i+1
	}
	return strconv.FormatInt(n, 10) + units[i]
}

var rateForm = regexp.MustCompile(`^([1-9]\d{0,6})/([smh])$`)

func parseRate(s string) (Rate, error) {
	m := rateForm.FindStringSubmatch(s)
	if m == nil {
		return Rate{}, errRate
	}
	n, _ := strconv.Atoi(m[1]) // seven digits
	return Rate{N: n, Per: map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[m[2]]}, nil
}

// String is the rate as people write it.
func (r Rate) String() string {
	unit := map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[r.Per]
	if unit == "" {
		return ""
	}
	return fmt.Sprintf("%d/%s", r.N, unit)
}

func parsePrefix(s string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(s); err == nil && ip.Zone() == "" {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, errPrefix
	}
	return p.Masked(), nil
}

// setScalar parses s into v by v's type. The kinds of the struct are all here; one
// that is not makes the tests fail.
func setScalar(v reflect.Value, s string) (err error) {
	var x any
	switch v.Interface().(type) {
	case string, Secret, URL:
		v.SetString(s)
		return nil
	case bool:
		if s != "true" && s != "false" {
			return errBool
		}
		v.SetBool(s == "true")
		return nil
	case int:
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return errNumber
		}
		v.SetInt(n)
		return nil
	case float64:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return errDecimal
		}
		v.SetFloat(f)
		return nil
	case time.Duration:
		x, err = parseDuration(s)
	case Size:
		x, err = parseSize(s)
	case Rate:
		x, err = parseRate(s)
	case netip.Prefix:
		x, err = parsePrefix(s)
	default:
		return fmt.Errorf("config: no scalar: %s", v.Type())
	}
	if err == nil {
		v.Set(reflect.ValueOf(x))
	}
	return err
}

// checkTags holds the value to its field's range and words.
func checkTags(v reflect.Value, f reflect.StructTag) error {
	if words := f.Get("oneof"); words != "" {
		options := strings.Split(words, "|")
		for _, o := range options {
			if v.String() == o {
				return nil
			}
		}
		return fmt.Errorf("one of %s is wanted", strings.Join(options, ", "))
	}
	for _, end := range []struct {
		tag, word string
		sign      int
	}{{"min", "at least", -1}, {"max", "at most", 1}} {
		limit := f.Get(end.tag)
		if limit == "" {
			continue
		}
		l := reflect.New(v.Type()).Elem()
		if err := setScalar(l, limit); err != nil {
			return fmt.Errorf("config: tag %s: %w", end.tag, err)
		}
		if compare(v, l) == end.sign {
			return fmt.Errorf("%s %s is wanted", end.word, limit)
		}
	}
	return nil
}

func compare(a, b reflect.Value) int {
	x, y := 0.0, 0.0
	if a.CanFloat() {
		x, y = a.Float(), b.Float()
	} else {
		x, y = float64(a.Int()), float64(b.Int())
	}
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
