package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

// unsigned compiles a source without authentication that has its own id rule.
func unsigned(t testing.TB, rule IDRule) *Checker {
	t.Helper()
	c, err := Custom().Compile(Settings{Unsigned: true, ID: &rule})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func idOf(t testing.TB, c *Checker, r *Request) string {
	t.Helper()
	res, err := c.Receive(r, caseNow)
	if err != nil {
		t.Fatalf("%q: %v", r.Body, err)
	}
	if len(res.Events) != 1 || !res.Unverified {
		t.Fatalf("%q: %+v", r.Body, res)
	}
	return res.Events[0].ID
}

// id-01: an id is the text in the body, digit for digit.
func TestP2NumbersKeepTheirText(t *testing.T) {
	t.Parallel()
	c := unsigned(t, IDRule{Template: "{json:id}"})
	for body, want := range map[string]string{
		`{"id":8202522731445525542}`: "8202522731445525542",
		`{"id":8202522731445525543}`: "8202522731445525543",
		`{"id":1}`:                   "1",
		`{"id":"1"}`:                 "1", // the rule: the text counts, not the type
		`{"id":"01"}`:                "01",
		`{"id":1.0}`:                 "1.0",
		`{"id":1e0}`:                 "1e0",
		`{"id":-0}`:                  "-0",
		`{"id":true}`:                "true",
		`{"id":123456789012345678901234567890.50}`: "123456789012345678901234567890.50",
		"\ufeff{ \"id\" :\t7 }":                    "7",
	} {
		if got := idOf(t, c, post([]byte(body))); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

func TestP2AnyNumberIsKeptDigitForDigit(t *testing.T) {
	t.Parallel()
	c := unsigned(t, IDRule{Template: "{json:a.0.id}"})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "n")
		res, err := c.Receive(post([]byte(`{"a":[{"id":`+n+`}]}`)), caseNow)
		if err != nil || res.Events[0].ID != n {
			t.Fatalf("%s: %v %+v", n, err, res)
		}
	})
}

// id-02: of a repeated key the first counts; case matters; escapes in names are decoded.
func TestP2RepeatedKeys(t *testing.T) {
	t.Parallel()
	c := unsigned(t, IDRule{Template: "{json:id}"})
	for body, want := range map[string]string{
		`{"id":"A","id":"B"}`:           "A",
		`{"id":"A","ID":"C"}`:           "A",
		`{"ID":"C","id":"A"}`:           "A",
		`{"i\u0064":"D"}`:               "D",
		`{"\u0069\u0064":"D","id":"E"}`: "D",
		`{"data":{"id":"X"},"id":"E"}`:  "E",
		`{"a":"\"id\":\"X\"","id":"E"}`: "E",
	} {
		if got := idOf(t, c, post([]byte(body))); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
	if _, err := c.Receive(post([]byte(`{"ID":"C"}`)), caseNow); reasonOf(err) != MalformedBody {
		t.Errorf("only another case: %v", err)
	}
}

// Nothing in a path but dots and digits has a meaning of its own.
func TestP2PathsHaveNoHiddenLanguage(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		`a\.b`:     `{"a":{"b":"wrong"},"a.b":"right"}`,
		`*`:        `{"x":"wrong","*":"right"}`,
		`a?`:       `{"ab":"wrong","a?":"right"}`,
		`#`:        `{"#":"right"}`,
		`@this`:    `{"@this":"right"}`,
		`@reverse`: `{"a":1,"@reverse":"right"}`,
		`!x`:       `{"!x":"right"}`,
		`a\|b`:     `{"a":{"b":"wrong"},"a|b":"right"}`,
		`é-ü`:      `{"é-ü":"right"}`,
		`0`:        `{"0":"right"}`,
		`a.1.b`:    `{"a":[0,{"b":"right"}]}`,
		`a b:c`:    `{"a b:c":"right"}`,
	} {
		c := unsigned(t, IDRule{Template: "{json:" + path + "}"})
		if got := idOf(t, c, post([]byte(body))); got != "right" {
			t.Errorf("%s in %s: %q", path, body, got)
		}
	}
}

// id-03: an id is not cut, not folded, not parsed; a long one is kept by its digest.
func TestP2NULAndLongIDs(t *testing.T) {
	t.Parallel()
	g, h := unsigned(t, IDRule{Template: "{json:id}"}), unsigned(t, IDRule{Template: "{header:X-Id}"})
	for body, want := range map[string]string{
		`{"id":"a\u0000b"}`:                           "a\x00b",
		`{"id":"a"}`:                                  "a",
		`{"id":"a\u0000c","diff":"x\u0000"}`:          "a\x00c",
		`{"id":"` + strings.Repeat("k", MaxID) + `"}`: strings.Repeat("k", MaxID),
	} {
		if got := idOf(t, g, post([]byte(body))); got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
	long := strings.Repeat("k", 9999)
	a, b := idOf(t, g, post([]byte(`{"id":"`+long+`k"}`))), idOf(t, g, post([]byte(`{"id":"`+long+`z"}`)))
	sum := sha256.Sum256([]byte(long + "k"))
	if a == b || a != "sha256:"+hex.EncodeToString(sum[:]) || a != KeptID(long+"k") || KeptID(a) != a {
		t.Errorf("two long ids: %q %q", a, b)
	}
	for _, id := range []string{"../../etc/passwd", "a b%2Fc?d#e"} {
		if got := idOf(t, h, post([]byte("{}"), "X-Id", id)); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	if _, err := h.Receive(post([]byte("{}"), "X-Id", ""), caseNow); reasonOf(err) != MalformedBody {
		t.Errorf("an empty id: %v", err)
	}
}

// An empty id is no id, and neither is a template of which nothing but its own text is left.
func TestP2EmptyIDsAreNoIDs(t *testing.T) {
	t.Parallel()
	p := mustParse(t, `{"name":"x","auth":{"kind":"none"},"id":{"key":["{header:X-Id}","{json:a}:{json:b}"]},"response":{"success":"2xx"}}`)
	c, err := p.Compile(Settings{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{}`, `{"a":"","b":""}`, `{"a":null,"b":1}`, `{"a":{},"b":[]}`, ``, `not JSON`, `{"a":1,"b":2`} {
		res, err := c.Receive(post([]byte(body), "X-Id", ""), caseNow)
		if err != nil || !res.Events[0].NoID || res.Events[0].ID != "" {
			t.Errorf("%q: %v %+v", body, err, res)
		}
	}
}

func mustParse(t testing.TB, text string) *Provider {
	t.Helper()
	c, err := Load(fstest.MapFS{"x.json": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := c.Get("x")
	return p
}

const grid = `{"name":"x","auth":{"kind":"none"},"id":{"key":"{body|sha256}"},"response":{"success":"2xx"},
	"batch":{"items":"json:%s","id":"{item:sg_event_id}","type":"{item:event}"}}`

// id-04: each item is an event of its own, in order; without an id it is its bytes.
func TestP2BatchItems(t *testing.T) {
	t.Parallel()
	c, err := mustParse(t, fmt.Sprintf(grid, "")).Compile(Settings{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	body := unbase64(t, "W3siZXZlbnQiOiJkZWxpdmVyZWQiLCJpZCI6IlgiLCJzZ19ldmVudF9pZCI6ImUxIn0seyJldmVudCI6Im9wZW4iLCJpZCI6IlgiLCJzZ19ldmVudF9pZCI6ImUyIn0seyJldmVudCI6ImJvdW5jZSIsImlkIjoiWSJ9XQ==")
	first, err := c.Receive(post(body), caseNow)
	if err != nil || len(first.Events) != 3 {
		t.Fatalf("%v %+v", err, first)
	}
	sum := sha256.Sum256([]byte(`{"event":"bounce","id":"Y"}`))
	for i, want := range []string{"e1", "e2", hex.EncodeToString(sum[:])} {
		e := first.Events[i]
		if e.ID != want || e.Part != i || e.BodyHash != (i == 2) || !bytes.Contains(body, e.Bytes) || len(e.Bytes) == 0 {
			t.Errorf("item %d: %+v", i, e)
		}
	}
	again, err := c.Receive(post(body), caseNow)
	if err != nil || again.Events[2].ID != first.Events[2].ID {
		t.Errorf("the same bytes again: %v %+v", err, again)
	}
	if res, err := c.Receive(post([]byte(" [] ")), caseNow); err != nil || !res.Empty || len(res.Events) != 0 {
		t.Errorf("an empty batch: %v %+v", err, res)
	}
	equal, err := c.Receive(post([]byte(`[{"a":1},{"a":1},{"a":1 }]`)), caseNow)
	if err != nil || equal.Events[0].ID == equal.Events[1].ID || equal.Events[1].ID != equal.Events[0].ID+"-2" || equal.Events[2].ID == equal.Events[0].ID {
		t.Errorf("equals: %v %+v", err, equal)
	}
}

func TestABatchOfTooManyItemsIsRefused(t *testing.T) {
	t.Parallel()
	c, err := mustParse(t, fmt.Sprintf(grid, "a.*.b")).Compile(Settings{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	body := func(n int) []byte {
		return []byte(`{"a":[{"b":[` + strings.TrimSuffix(strings.Repeat(`1,`, n-1), ",") + `]},{"b":[2]}]}`)
	}
	if res, err := c.Receive(post(body(maxItems)), caseNow); err != nil || len(res.Events) != 1 {
		t.Errorf("%d items: %v", maxItems, err)
	}
	if _, err := c.Receive(post(body(maxItems+1)), caseNow); reasonOf(err) != TooLarge {
		t.Errorf("%d items: %v", maxItems+1, err)
	}
}

// Where an envelope cannot be made around one item, the request is one event whose id
// is that of its items: the same items are the same event, others are another.
func TestP2AWholeBatchIsOneEvent(t *testing.T) {
	t.Parallel()
	deep, err := mustParse(t, fmt.Sprintf(grid, "a.*.b")).Compile(Settings{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	flat, err := mustParse(t, fmt.Sprintf(grid, "")).Compile(Settings{Unsigned: true, Batch: "whole"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		c                *Checker
		one, same, else1 string
	}{
		"several array levels": {deep, `{"a":[{"b":[{"sg_event_id":"1"}]},{"b":[{"sg_event_id":"2"}]}]}`,
			`{"try":2,"a":[{"b":[{"sg_event_id":"1"},{"sg_event_id":"2"}]}]}`, `{"a":[{"b":[{"sg_event_id":"12"}]}]}`},
		"batch: whole": {flat, `[{"sg_event_id":"1"},{"sg_event_id":"2"}]`, `[{"sg_event_id":"1"}, {"sg_event_id":"2"}]`, `[{"sg_event_id":"2"},{"sg_event_id":"1"}]`},
	} {
		get := func(b string) Event {
			res, err := tc.c.Receive(post([]byte(b)), caseNow)
			if err != nil || len(res.Events) != 1 || res.Events[0].Part != -1 || string(res.Events[0].Bytes) != b {
				t.Fatalf("%s: %v %+v", name, err, res)
			}
			return res.Events[0]
		}
		a, b, c := get(tc.one), get(tc.same), get(tc.else1)
		if a.ID != b.ID || a.ID == c.ID || a.NoID || a.BodyHash {
			t.Errorf("%s: %q %q %q", name, a.ID, b.ID, c.ID)
		}
	}
}

// An item's body is the original envelope with this item alone, byte for byte.
func TestItemKeepsTheEnvelope(t *testing.T) {
	t.Parallel()
	for path, bodies := range map[string][2]string{
		"":    {"\ufeff [ {\"a\": 1.0} ,{\"b\":\"]\"}\n]\n", "\ufeff [{\"b\":\"]\"}]\n"},
		"d.e": {`{"x":"é]", "d" : {"e":[ {"a":1} , {"b":"]"} ], "f":[1]} }`, `{"x":"é]", "d" : {"e":[{"b":"]"}], "f":[1]} }`},
	} {
		c, err := mustParse(t, fmt.Sprintf(grid, path)).Compile(Settings{Unsigned: true})
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(bodies[0])
		got, err := c.Item(body, 1)
		if err != nil || string(got) != bodies[1] {
			t.Errorf("%q: %v %q", path, err, got)
		}
		if string(body) != bodies[0] {
			t.Error("the body was written to")
		}
		res, err := c.Receive(post(got), caseNow)
		if err != nil || len(res.Events) != 1 || string(res.Events[0].Bytes) != `{"b":"]"}` {
			t.Errorf("%q: received again: %v %+v", path, err, res)
		}
		if whole, err := c.Item(body, -1); err != nil || string(whole) != bodies[0] {
			t.Errorf("part -1: %v", err)
		}
		if _, err := c.Item(body, 2); err == nil {
			t.Error("part 2 of two items")
		}
	}
}

func TestItemsOfAnyBatchComeBackAlone(t *testing.T) {
	t.Parallel()
	c, err := mustParse(t, fmt.Sprintf(grid, "events")).Compile(Settings{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 8).Draw(t, "texts")
		items := make([]map[string]string, len(texts))
		for i, s := range texts {
			items[i] = map[string]string{"v": s}
		}
		body, _ := json.Marshal(map[string]any{"a": "]", "events": items, "z": []int{1}})
		res, err := c.Receive(post(body), caseNow)
		if err != nil || len(res.Events) != len(items) {
			t.Fatalf("%v %+v", err, res)
		}
		ids := map[string]bool{}
		for i, e := range res.Events {
			ids[e.ID] = true
			one, err := c.Item(body, i)
			if err != nil {
				t.Fatal(err)
			}
			again, err := c.Receive(post(one), caseNow)
			if err != nil || len(again.Events) != 1 || !bytes.Equal(again.Events[0].Bytes, e.Bytes) {
				t.Fatalf("%s: %v %+v", one, err, again)
			}
		}
		if len(ids) != len(items) {
			t.Fatalf("%d ids for %d items", len(ids), len(items))
		}
	})
}

// id-06: header names ignore case and are matched whole; of a repeated one the first counts.
func TestP2HeaderIDs(t *testing.T) {
	t.Parallel()
	c := unsigned(t, IDRule{Template: "{header:X-Msg-Id}"})
	for want, header := range map[string][]string{
		"1":    {"x-msg-id", "1"},
		"2":    {"X-Msg-Id", "2", "X-Msg-Id", "3"},
		"1, 2": {"X-Msg-Id", "1, 2"},
	} {
		if got := idOf(t, c, post([]byte(`{}`), header...)); got != want {
			t.Errorf("%v: %q", header, got)
		}
	}
	if _, err := c.Receive(post([]byte(`{}`), "Orig-X-Msg-Id", "1"), caseNow); reasonOf(err) != MalformedBody {
		t.Errorf("a name that ends alike: %v", err)
	}
}

// Two lists of parts never give one id.
func TestP2JoinedIDsNeverMeet(t *testing.T) {
	t.Parallel()
	c := unsigned(t, IDRule{Join: []string{"{json:a}", "{json:b}"}})
	part := rapid.OneOf(rapid.StringMatching(`[a:%2\-]{1,6}`), rapid.StringN(1, 12, -1))
	rapid.Check(t, func(t *rapid.T) {
		get := func(a, b string) string {
			body, _ := json.Marshal(map[string]string{"a": a, "b": b})
			res, err := c.Receive(post(body), caseNow)
			if err != nil {
				t.Fatal(err)
			}
			return res.Events[0].ID
		}
		a, b, x, y := part.Draw(t, "a"), part.Draw(t, "b"), part.Draw(t, "x"), part.Draw(t, "y")
		if same := a == x && b == y; same != (get(a, b) == get(x, y)) {
			t.Fatalf("(%q,%q) and (%q,%q)", a, b, x, y)
		}
	})
	if got := idOf(t, c, post([]byte(`{"a":"evt 1","b":"x:y"}`))); got != "evt%201:x%3Ay" {
		t.Errorf("got %q", got)
	}
	if _, err := c.Receive(post([]byte(`{"a":"1"}`)), caseNow); reasonOf(err) != MalformedBody {
		t.Errorf("a part is missing: %v", err)
	}
}

// A verified request that the source's own rule cannot read is kept for a person; an
// unproven one is refused.
func TestP6WhatCannotBeIdentifiedIsQuarantined(t *testing.T) {
	t.Parallel()
	secret := []string{"s"}
	own := checker(t, "github", Settings{Secrets: secret, ID: &IDRule{Template: "{json:nope}"}})
	body := []byte(`{"action":"opened"}`)
	r := post(body, "X-GitHub-Event", "issues", "X-GitHub-Delivery", "d", "X-Hub-Signature-256", "sha256="+hexHMAC("s", body))
	res, err := own.Receive(r, caseNow)
	if err != nil || res.Quarantine == "" || len(res.Events) != 1 || res.Events[0].ID != "" || res.Events[0].NoID || res.Events[0].Type != "issues.opened" || res.Slot != 1 {
		t.Errorf("own id: %v %+v", err, res)
	}
	if res := checker(t, "github", Settings{Secrets: secret}).Identify(r); res.Quarantine != "" || res.Events[0].ID != "d" {
		t.Errorf("identified again with other settings: %+v", res)
	}
	if res := own.Identify(r); res.Quarantine == "" {
		t.Errorf("identified again with the same settings: %+v", res)
	}
	body = []byte(`{"events":"none"}`)
	r = post(body, "Webhook-Signature", hexHMAC("s", body))
	if res, err = checker(t, "gocardless", Settings{Secrets: secret}).Receive(r, caseNow); err != nil || res.Quarantine == "" || len(res.Events) != 1 {
		t.Errorf("a batch that is none: %v %+v", err, res)
	}
	open := checker(t, "gocardless", Settings{Unsigned: true})
	if _, err = open.Receive(r, caseNow); reasonOf(err) != MalformedBody {
		t.Errorf("the same without authentication: %v", err)
	}
	item := checker(t, "gocardless", Settings{Secrets: secret, ID: &IDRule{Template: "{item:uid}"}})
	body = []byte(`{"events":[{"uid":"1"},{"id":"2"}]}`)
	r = post(body, "Webhook-Signature", hexHMAC("s", body))
	if res, err = item.Receive(r, caseNow); err != nil || res.Quarantine == "" || len(res.Events) != 1 || res.Events[0].Part != -1 {
		t.Errorf("an item that the source's rule cannot read: %v %+v", err, res)
	}
}

func TestARequiredIDIsMalformedBody(t *testing.T) {
	t.Parallel()
	c, err := mustParse(t, `{"name":"x","auth":{"kind":"token","from":"query:k"},"id":{"key":"{form:id}","required":true},"response":{"success":"2xx"}}`).Compile(Settings{Secrets: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	r := post([]byte("other=1"), "Content-Type", "application/x-www-form-urlencoded")
	r.Target = "/in/x?k=s"
	if _, err := c.Receive(r, caseNow); reasonOf(err) != MalformedBody {
		t.Errorf("got %v", err)
	}
}

// A million brackets must neither pass for JSON nor take the stack.
func TestDeepJSONIsNotRead(t *testing.T) {
	t.Parallel()
	c := unsigned(t, IDRule{First: []string{"{json:id}", "{header:X-Id}"}})
	for _, body := range []string{strings.Repeat("[", 4<<20), strings.Repeat(`{"id":`, 1<<20), `{"id":1,"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`} {
		if got := idOf(t, c, post([]byte(body), "X-Id", "h")); got != "h" {
			t.Errorf("%.20s: %q", body, got)
		}
	}
}
