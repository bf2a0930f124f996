package effect

import (
	"slices"
	"strings"
	"testing"
)

func call(method, path, query, contentType, body string, more ...string) *Call {
	h := header(more...)
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	return &Call{Method: method, Path: path, Query: query, Header: h, Body: []byte(body)}
}

const (
	asJSON = "application/json"
	asForm = "application/x-www-form-urlencoded"
)

func TestP10FingerprintIsWhatACallMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		a, b    *Call
		same    bool
		differs []string
	}{
		{"spaces and order of JSON", call("POST", "/r", "", asJSON, `{"amount":5,"a":[1,2]}`), call("POST", "/r", "", asJSON+"; charset=utf-8", ` {"a": [1, 2], "amount": 5 }`), true, nil},
		{"escapes of JSON", call("POST", "/r", "", asJSON, `{"a":"\u00e9"}`), call("POST", "/r", "", asJSON, `{"a":"é"}`), true, nil},
		{"another amount", call("POST", "/r", "", asJSON, `{"amount":5}`), call("POST", "/r", "", asJSON, `{"amount":6}`), false, []string{"body.amount"}},
		{"the text of a number counts", call("POST", "/r", "", asJSON, `{"amount":5}`), call("POST", "/r", "", asJSON, `{"amount":5.0}`), false, []string{"body.amount"}},
		{"twenty digits", call("POST", "/r", "", asJSON, `{"id":12345678901234567890}`), call("POST", "/r", "", asJSON, `{"id":12345678901234567891}`), false, []string{"body.id"}},
		{"a number and its text", call("POST", "/r", "", asJSON, `{"id":1}`), call("POST", "/r", "", asJSON, `{"id":"1"}`), false, []string{"body.id"}},
		{"order of an array", call("POST", "/r", "", asJSON, `[1,2]`), call("POST", "/r", "", asJSON, `[2,1]`), false, []string{"body[0]", "body[1]"}},
		{"a member more, deep", call("POST", "/r", "", asJSON, `{"a":{"b":1}}`), call("POST", "/r", "", asJSON, `{"a":{"b":1,"c":2}}`), false, []string{"body.a.c"}},
		{"a key twice is compared by bytes", call("POST", "/r", "", asJSON, `{"a":1,"a":2}`), call("POST", "/r", "", asJSON, `{"a":2}`), false, []string{"body"}},
		{"broken JSON is compared by bytes", call("POST", "/r", "", asJSON, `{"a":`), call("POST", "/r", "", asJSON, `{"a": `), false, []string{"body"}},
		{"half a pair of an escape", call("POST", "/r", "", asJSON, `"\ud800"`), call("POST", "/r", "", asJSON, `"\ufffd"`), false, []string{"body"}},
		{"null and nothing", call("POST", "/r", "", asJSON, `null`), call("POST", "/r", "", asJSON, ``), false, []string{"body"}},
		{"order of a form", call("POST", "/r", "", asForm, `charge=ch_1&amount=5`), call("POST", "/r", "", asForm, `amount=5&charge=ch%5F1`), true, nil},
		{"order of one name's values in a form", call("POST", "/r", "", asForm, `e=1&e=2`), call("POST", "/r", "", asForm, `e=2&e=1`), false, []string{"body.e"}},
		{"another form", call("POST", "/r", "", asForm, `charge=ch_1&amount=5`), call("POST", "/r", "", asForm, `charge=ch_2&amount=5&x=1`), false, []string{"body.charge", "body.x"}},
		{"order of a query", call("POST", "/r", "a=1&b=2", "", ""), call("POST", "/r", "b=2&a=1", "", ""), true, nil},
		{"another query", call("POST", "/r", "a=1", "", ""), call("POST", "/r", "a=2", "", ""), false, []string{"query.a"}},
		{"another path", call("POST", "/r", "", "", "x"), call("POST", "/s", "", "", "x"), false, []string{"path"}},
		{"another method", call("POST", "/r", "", "", "x"), call("PUT", "/r", "", "", "x"), false, []string{"method"}},
		{"a named header", call("POST", "/r", "", "", "x", "Stripe-Account", "a"), call("POST", "/r", "", "", "x", "Stripe-Account", "b"), false, []string{"header Stripe-Account"}},
		{"another header", call("POST", "/r", "", "", "x", "User-Agent", "a"), call("POST", "/r", "", "", "x", "User-Agent", "b"), true, nil},
		{"plain text by bytes", call("POST", "/r", "", "text/plain", "a b"), call("POST", "/r", "", "text/plain", "a  b"), false, []string{"body"}},
		{"a form and JSON", call("POST", "/r", "", asForm, "{}"), call("POST", "/r", "", asJSON, "{}"), false, []string{"body"}},
		{"multipart under two boundaries", parts("b1", "5", "x"), parts("b2", "5", "x"), true, nil},
		{"multipart with another part", parts("b1", "5", "x"), parts("b1", "6", "x"), false, []string{"body"}},
		{"multipart with another file", parts("b1", "5", "x"), parts("b1", "5", "y"), false, []string{"body"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			headers := []string{"stripe-account"}
			if same := c.a.Fingerprint(headers) == c.b.Fingerprint(headers); same != c.same {
				t.Errorf("same is %v", same)
			}
			if got := c.a.Differs(c.b, headers); !slices.Equal(got, c.differs) {
				t.Errorf("differs in %q, want %q", got, c.differs)
			}
		})
	}
}

func parts(boundary, amount, file string) *Call {
	body := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n" + amount +
		"\r\n--" + boundary + "\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n" + file +
		"\r\n--" + boundary + "--\r\n"
	return call("POST", "/r", "", "multipart/form-data; boundary="+boundary, body)
}

func TestCardIsTheExactBytes(t *testing.T) {
	t.Parallel()
	a, b := call("POST", "/r", "", asJSON, `{"a":1}`), call("POST", "/r", "", asJSON, `{ "a":1}`)
	if a.Card() == b.Card() {
		t.Error("two bodies, one card")
	}
	if a.Fingerprint(nil) != b.Fingerprint(nil) {
		t.Error("one meaning, two fingerprints")
	}
}

func TestNoDifferenceNamesAValue(t *testing.T) {
	t.Parallel()
	a := call("POST", "/r", "q=secret1", asJSON, `{"amount":"secret2"}`, "X", "secret3")
	b := call("PUT", "/s", "q=other", asJSON, `{"amount":"other"}`, "X", "other")
	for _, d := range a.Differs(b, []string{"x"}) {
		if strings.Contains(d, "secret") {
			t.Errorf("%q", d)
		}
	}
}

func TestManyDifferencesAreCut(t *testing.T) {
	t.Parallel()
	a, b := "{", "{"
	for c := 'a'; c <= 'z'; c++ {
		a += `"` + string(c) + `":1,`
		b += `"` + string(c) + `":2,`
	}
	got := call("POST", "/r", "", asJSON, a+`"z9":0}`).Differs(call("POST", "/r", "", asJSON, b+`"z9":0}`), nil)
	if len(got) != maxDiffers+1 || got[maxDiffers] != "…" {
		t.Errorf("%q", got)
	}
}

func FuzzFingerprint(f *testing.F) {
	f.Add(asJSON, `{"a":1}`, `{"a": 1}`)
	f.Add(asForm, `a=1&b=2`, `b=2&a=1`)
	f.Add("multipart/form-data; boundary=b", "--b\r\n\r\nx\r\n--b--", "--b--")
	f.Fuzz(func(t *testing.T, contentType, a, b string) {
		x, y := call("POST", "/r", "", contentType, a), call("POST", "/r", "", contentType, b)
		same := x.Fingerprint(nil) == y.Fingerprint(nil)
		if a == b && !same {
			t.Fatal("one body, two fingerprints")
		}
		if differs := x.Differs(y, nil); (len(differs) == 0) != same {
			t.Fatalf("same is %v, differs in %q", same, differs)
		}
	})
}
