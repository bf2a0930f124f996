package rule

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strconv"
	"strings"
)

// parseJSON reads a body; nil when it is not one JSON document. No digit is lost: a number
// is an int or a float64 where that gives its digits back, else the text of its digits. Of
// a name that stands twice in an object the first counts, as it does for the event's id.
func parseJSON(body []byte) any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := document(d, 0)
	if err != nil {
		return nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil // something follows
	}
	return v
}

// maxDepth of lists and objects in each other.
const maxDepth = 1000

var errDepth = errors.New("nested too deep")

func document(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		return number(t.String()), nil
	case json.Delim:
		if depth++; depth > maxDepth {
			return nil, errDepth
		}
		if t == '{' {
			return object(d, depth)
		}
		return list(d, depth)
	}
	return t, nil // a text, true, false, null
}

func object(d *json.Decoder, depth int) (any, error) {
	m := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := document(d, depth)
		if err != nil {
			return nil, err
		}
		if _, before := m[t.(string)]; !before {
			m[t.(string)] = v
		}
	}
	_, err := d.Token()
	return m, err
}

func list(d *json.Decoder, depth int) (any, error) {
	l := []any{}
	for d.More() {
		v, err := document(d, depth)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	_, err := d.Token()
	return l, err
}

// number is an int, a float64 or, where neither gives the digits back, the text.
func number(text string) any {
	if n, err := strconv.Atoi(text); err == nil && text != "-0" {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !sameNumber(text, f) {
		return text
	}
	return f
}

// exactDigits is how many a float64 always gives back.
const exactDigits = 15

// longNumber is where comparing exactly would cost more than such a number is worth.
const longNumber = 400

// sameNumber tells whether f, written as short as it can be, is the number of the text.
func sameNumber(text string, f float64) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
	switch {
	case digits == "":
		return f == 0
	case f == 0:
		return false // too small
	case len(digits) <= exactDigits && f > 1e-300 || len(digits) <= exactDigits && f < -1e-300:
		return true
	case len(text) > longNumber:
		return false
	}
	want, ok1 := new(big.Rat).SetString(text)
	got, ok2 := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return ok1 && ok2 && want.Cmp(got) == 0
}
