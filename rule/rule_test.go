package rule

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func event(body string) *Event {
	return &Event{
		Source: "stripe", Method: "POST", ID: "evt_1", Type: "invoice.paid", Resource: "in_1",
		Header: http.Header{"X-Github-Event": {"push"}, "Accept": {"a", "b"}}, Body: []byte(body),
	}
}

func compile(t *testing.T, text string) *Rule {
	t.Helper()
	r, err := Compile(text, EventNames)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

func TestARuleDecidesOverTheEvent(t *testing.T) {
	t.Parallel()
	const body = `{"amount": 1200, "ok": true, "name": "Ana", "nothing": null, "price": 0.1,
		"items": [{"sku": "a", "n": 2}, {"sku": "b", "n": 3}], "big": 12345678901234567890, "int": 9007199254740993,
		"deep": 0.1234567890123456789, "huge": 1e400, "twice": "first", "twice": "second"}`
	for text, want := range map[string]bool{
		`type == "invoice.paid"`:                    true,
		`type startsWith "invoice."`:                true,
		`type in ["a", "b"]`:                        false,
		`source == "stripe" and method == "POST"`:   true,
		`event_id == "evt_1" && resource == "in_1"`: true,
		`not test`:                                           true,
		`size > 100`:                                         true,
		`headers["X-GitHub-Event"] == "push"`:                true,
		`headers["x-github-event"] == "push"`:                true,
		`headers.Accept == "a, b"`:                           true,
		`"X-GitHub-EVENT" in headers`:                        true,
		`"X-Other" in headers`:                               false,
		`get(headers, "X-GitHub-Event") == "push"`:           true,
		`headers["X-Other"] == ""`:                           true,
		`body.amount >= 1000`:                                true,
		`body.amount + 1 == 1201`:                            true,
		`body.name + "!" == "Ana!"`:                          true,
		`body.ok`:                                            true,
		`body.nothing == nil`:                                true,
		`body.absent == nil`:                                 true,
		`body.absent?.deeper == nil`:                         true,
		`body.price == 0.1`:                                  true,
		`any(body.items, .sku == "b")`:                       true,
		`all(body.items, # .n > 2)`:                          false,
		`count(body.items, .n > 1) == 2`:                     true,
		`sum(map(body.items, .n)) == 5`:                      true,
		`len(filter(body.items, .n > 2)) == 1`:               true,
		`body.int == 9007199254740993`:                       true,
		`body.int == 9007199254740992`:                       false,
		`body.big == "12345678901234567890"`:                 true,
		`body.deep == "0.1234567890123456789"`:               true,
		`body.huge == "1e400"`:                               true,
		`body.twice == "first"`:                              true,
		`body.name matches "^A.a$"`:                          true,
		`lower(body.name) contains "an"`:                     true,
		`let one_of = body.items[0]; one_of.n == 2`:          true,
		`split(body.name, "n")[0] == "A"`:                    true,
		`body.items[0].n in 1..3`:                            true,
		`find(body.items, .sku == "c") == nil`:               true,
		`(body.name ?? "") != "" ? body.ok : false`:          true,
		"type == \"invoice.paid\" and\n  body.amount > 1000": true,
	} {
		got, err := event(body).Decide(compile(t, text))
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestABodyThatIsNoJSONIsNil(t *testing.T) {
	t.Parallel()
	r := compile(t, `body == nil`)
	for _, body := range []string{"", "a=1&b=2", "{", `{"a":1} x`, `{"a" 1}`, "[1,]", "nul", "\xff", strings.Repeat("[", 2000) + strings.Repeat("]", 2000)} {
		if got, err := event(body).Decide(r); err != nil || !got {
			t.Errorf("%.20q: %v, %v", body, got, err)
		}
	}
	for _, body := range []string{"1", `"a"`, "[]", "{}", "false", ` {"a":1} `} {
		if got, err := event(body).Decide(r); err != nil || got {
			t.Errorf("%q: %v, %v", body, got, err)
		}
	}
}

func TestAWrongRuleIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                       "line 1, column 1: the rule is empty",
		`type = "a"`:                             "line 1, column 6: ",
		`type == "a" and`:                        "line 1, column 15: ",
		"type == \"a\" and\n  kind == \"b\"":     "line 2, column 3: unknown name kind",
		`size == "1"`:                            "line 1, column 6: invalid operation: == (mismatched types int and string)",
		`now() > 1`:                              "line 1, column 1: unknown name now",
		`repeat("a", 5) == ""`:                   "line 1, column 1: unknown name repeat",
		`uniq(body) == nil`:                      "line 1, column 1: unknown name uniq",
		`sort(body) == nil`:                      "line 1, column 1: unknown name sort",
		`type matches resource`:                  "line 1, column 6: matches wants a pattern that stands in the rule",
		`type matches "("`:                       "line 1, column 6: error parsing regexp",
		`size ** 9 == 1`:                         "line 1, column 6: powers are not known",
		`$env["type"] == "a"`:                    "line 1, column 1: $env is not known; name the values themselves",
		`filter(body, .name + "x")`:              "",
		`len(type, type) == 1`:                   "line 1, column 1: ",
		`body.id == 123456789012345678901`:       "line 1, column ",
		`any(body.items, "x")`:                   "line 1, column 17: predicate should return boolean (got string)",
		strings.Repeat("test or ", 300) + "test": "line 1, column ",
		strings.Repeat(" ", 5000) + "test":       "line 1, column 1: the rule has 5004 bytes",
	} {
		_, err := Compile(text, EventNames)
		if want == "" {
			continue
		}
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v; want %s", text, err, want)
		}
	}
}

func TestAnErrorSaysWhereAndNeverQuotesAValue(t *testing.T) {
	t.Parallel()
	const body = `{"name": "secret-value", "list": [1, "secret-value"], "n": 3, "flag": "secret-value"}`
	for text, want := range map[string]string{
		`body.name > 3`:                 "line 1, column 11: it works on something absent or of another kind",
		`body.absent > 3`:               "line 1, column 13: it works on something absent or of another kind",
		`body.absent.deeper == 1`:       "line 1, column 13: it works on something absent or of another kind",
		"test or\n  int(body.name) > 1": "line 2, column 3: it works on something absent or of another kind",
		`body.flag`:                     "the rule gave a text, neither true nor false",
		`body.absent`:                   "the rule gave nothing (null, or a field that is absent), neither true nor false",
		`body.list`:                     "the rule gave a list, neither true nor false",
		`body`:                          "the rule gave an object, neither true nor false",
		`body.n`:                        "the rule gave a number, neither true nor false",
		`any(body.list, # > 2)`:         "line 1, column 18: it works on something absent or of another kind",
		`any(body.list, #)`:             "it works on something absent or of another kind",
	} {
		_, err := event(body).Decide(compile(t, text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

func TestWhatWouldRunLongIsEndedByABound(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	list.WriteString(`{"a": [0`)
	for range 2000 {
		list.WriteString(",1")
	}
	list.WriteString(`], "text": "` + strings.Repeat("x", 300_000) + `"}`)
	for text, want := range map[string]*bound{
		`any(body.a, any(body.a, any(body.a, # == 7)))`:                   errSteps,
		`len(1..100000000) > 1`:                                           errMemory,
		`len(map(1..150000, map(1..150000, #))) > 1`:                      errMemory,
		`let a = body.text + body.text; let b = a + a; len(b + b) > 1`:    errMemory,
		`body.text matches "x+y"`:                                         errMatched,
		`len(split(body.text, "")) > 1`:                                   errMatched,
		`all(1..1000, none(body.a, any(body.a, body.text contains "y")))`: nil, // steps or time, as the machine is
	} {
		began := time.Now()
		_, err := event(list.String()).Decide(compile(t, text))
		var e *Error
		if !errors.As(err, &e) || e.Word == "kind" || want != nil && (e.Word != want.word || !strings.Contains(err.Error(), want.text)) {
			t.Errorf("%s: %v; want %v", text, err, want)
		}
		if took := time.Since(began); took > 10*time.Second { // far above maxTime: this is a bound, not a speed
			t.Errorf("%s: %v", text, took)
		}
	}
}

func TestTheClockEndsWhatTheStepsDoNot(t *testing.T) {
	t.Parallel()
	b := &budget{began: time.Now().Add(-time.Second)}
	for range 15 {
		if err := b.step(); err != nil {
			t.Fatalf("before it looked: %v", err)
		}
	}
	if err := b.step(); err != error(errTime) {
		t.Errorf("%v, want %v", err, errTime)
	}
}

func TestAValueIsText(t *testing.T) {
	t.Parallel()
	const body = `{"id": "cus_1", "n": 42, "f": 1.5, "yes": true, "null": null, "big": 12345678901234567890, "o": {}, "long": "` + "LONG" + `"}`
	long := strings.Replace(body, "LONG", strings.Repeat("x", 2000), 1)
	for text, want := range map[string]string{
		`body.id`: "cus_1", `resource`: "in_1", `body.n`: "42", `body.f`: "1.5", `body.yes`: "true", `body.null`: "", `body.absent`: "",
		`body.big`: "12345678901234567890", `source + "/" + body.id`: "stripe/cus_1", `string(body.n) + "a"`: "42a",
	} {
		if got, err := event(long).Value(compile(t, text)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`body.o`, `body`, `body.long`, `body.absent.deeper`} {
		if got, err := event(long).Value(compile(t, text)); err == nil {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// The body is parsed at most once a request, and not at all by rules that do not name it.
func TestTheBodyIsParsedOnceAndOnlyWhenNamed(t *testing.T) {
	t.Parallel()
	e := event(`{"a": 1}`)
	if _, err := e.Decide(compile(t, `type == "x"`)); err != nil || e.parsed {
		t.Fatalf("parsed %v, %v", e.parsed, err)
	}
	r := compile(t, `body.a == 1`)
	for range 2 {
		if yes, err := e.Decide(r); !yes || err != nil {
			t.Fatal(yes, err)
		}
		e.Body = nil // what is parsed already stays
	}
}

func TestARuleIsRunByManyAtOnce(t *testing.T) {
	t.Parallel()
	r := compile(t, `any(body.items, .n + 1 == 3) and headers.accept + "" != ""`)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			for range 200 {
				if yes, err := event(`{"items": [{"n": 1}, {"n": 2}]}`).Decide(r); err != nil || !yes {
					errs <- errors.Join(err, errors.New("not yes"))
					return
				}
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzRule(f *testing.F) {
	f.Add(`any(body.a, # > 1)`, `{"a":[1,2]}`)
	f.Add(`headers["X"] matches "a+" or body.b + "x" in ["x"]`, `{"b":1e5}`)
	f.Add(`let x = 1..9; sum(x) == size`, `[1.0, 12345678901234567890, -0]`)
	f.Fuzz(func(t *testing.T, text, body string) {
		r, err := Compile(text, EventNames)
		if err != nil {
			return
		}
		began := time.Now()
		_, _ = event(body).Decide(r)
		_, _ = event(body).Value(r)
		if took := time.Since(began); took > 20*time.Second {
			t.Fatalf("%v", took)
		}
	})
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		"0": 0, "-0": 0.0, "7": 7, "9223372036854775807": 9223372036854775807, "9223372036854775808": "9223372036854775808", "9223372036854775808.0": "9223372036854775808.0", "18446744073709552000": 18446744073709552000.0,
		"9223372036854775809": "9223372036854775809", "1.0": 1.0, "1e2": 100.0, "0.1": 0.1, "1e400": "1e400", "1e-400": "1e-400", "0e999999999": 0.0,
		"0.30000000000000004": 0.30000000000000004, "0.300000000000000041": "0.300000000000000041", "123456789012345e-330": "123456789012345e-330",
		"1e-999999999": "1e-999999999", "1" + strings.Repeat("0", 500): "1" + strings.Repeat("0", 500),
	} {
		if got := number(text); got != want {
			t.Errorf("%.40s: %v (%T), want %v (%T)", text, got, got, want, want)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	r, err := Compile(`type startsWith "invoice." and body.data.object.amount >= 1000`, EventNames)
	if err != nil {
		b.Fatal(err)
	}
	body := `{"id":"evt_1","type":"invoice.paid","data":{"object":{"amount":2000,"lines":[` + strings.Repeat(`{"a":"bcdefgh","n":12},`, 50) + `{}]}}}`
	b.ReportAllocs()
	for b.Loop() {
		if yes, err := event(body).Decide(r); !yes || err != nil {
			b.Fatal(yes, err)
		}
	}
}
