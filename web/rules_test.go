package web

import (
	"net/http"
	"strings"
	"testing"

	"acuse/provider"
	"acuse/rule"
	"acuse/store"
)

func ruleOf(t testing.TB, text string) *rule.Rule {
	t.Helper()
	r, err := rule.Compile(text, rule.EventNames)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRulesDecideOverEachJob(t *testing.T) {
	t.Parallel()
	one := func(e provider.Event) provider.Result {
		e.ID, e.Part, e.Type, e.Resource = "e1", -1, "invoice.paid", "in_1"
		return provider.Result{Slot: 1, Events: []provider.Event{e}}
	}
	filter := func(text string, park bool) *Filter { return &Filter{Rule: ruleOf(t, text), Park: park} }
	note := func(text, key string, source bool, failed string, line, column int) string {
		return store.Note{Rule: text, Key: key, Source: source, Failed: failed, Line: line, Column: column}.String()
	}
	for name, c := range map[string]struct {
		change func(s *Source)
		event  provider.Event
		want   [2]store.NewJob // of app and agent; only State, Note, Order, Strict and Latest are compared
	}{
		"a destination's filter lets its own jobs through or not": {
			func(s *Source) {
				s.Destinations[0].Filter = filter(`type == "invoice.paid"`, false)
				s.Destinations[1].Filter = filter(`type == "other"`, false)
			}, provider.Event{}, [2]store.NewJob{{State: store.Queued}, {State: store.Filtered, Note: note(`type == "other"`, "filter", false, "", 0, 0)}},
		},
		"the source's filter decides for all, and first": {
			func(s *Source) {
				s.Filter = filter(`len(body) == 3`, true)
				s.Destinations[1].Filter = filter(`type == "other"`, false)
			}, provider.Event{}, [2]store.NewJob{
				{State: store.Filtered, Note: note(`len(body) == 3`, "filter", true, "", 0, 0)}, {State: store.Filtered, Note: note(`len(body) == 3`, "filter", true, "", 0, 0)}},
		},
		"a rule that fails delivers or parks, and the job says where it failed": {
			func(s *Source) {
				s.Destinations[0].Filter = filter(`body.a > 1`, false)
				s.Destinations[1].Filter = filter(`body.a > 1`, true)
			}, provider.Event{}, [2]store.NewJob{
				{State: store.Queued, Note: note(`body.a > 1`, "filter", false, "kind", 1, 6)}, {State: store.Dead, Note: note(`body.a > 1`, "filter", false, "kind", 1, 6)}},
		},
		"the order is the resource, or what an expression gives": {
			func(s *Source) {
				s.Destinations[0].Order = &Order{Strict: true}
				s.Destinations[1].Order = &Order{By: ruleOf(t, `body[1].a`)}
			}, provider.Event{}, [2]store.NewJob{{State: store.Queued, Order: "in_1", Strict: true}, {State: store.Queued, Order: "2"}},
		},
		"an order that cannot be told is none, and the job says so": {
			func(s *Source) {
				s.Destinations[0].Order = &Order{By: ruleOf(t, `body[1].b`)}
				s.Destinations[1].Order = &Order{By: ruleOf(t, `body[0]`)}
			}, provider.Event{}, [2]store.NewJob{{State: store.Queued}, {State: store.Queued, Note: note(`body[0]`, "order_by", false, "result", 1, 1)}},
		},
		"a filtered job keeps its order for a resend, and replaces nothing": {
			func(s *Source) {
				s.Destinations[0].Filter, s.Destinations[0].Order = filter(`test`, false), &Order{}
				s.Destinations[0].LatestOnly = Types{"*"}
			}, provider.Event{Supersedes: true}, [2]store.NewJob{{State: store.Filtered, Note: note(`test`, "filter", false, "", 0, 0), Order: "in_1"}, {State: store.Queued}},
		},
		"the types of latest_only are superseded, where the provider's versions do that": {
			func(s *Source) {
				s.Destinations[0].LatestOnly = Types{"x", "invoice.*"}
				s.Destinations[1].LatestOnly = Types{"customer.*"}
			}, provider.Event{Supersedes: true}, [2]store.NewJob{{State: store.Queued, Latest: true}, {State: store.Queued}},
		},
		"counters and ids never supersede": {
			func(s *Source) { s.Destinations[0].LatestOnly = Types{"*"} }, provider.Event{}, [2]store.NewJob{{State: store.Queued}, {State: store.Queued}},
		},
		"a test event that is kept asks no rule": {
			func(s *Source) { s.TestEvents, s.Filter = "keep", filter(`false`, false) }, provider.Event{Test: true}, [2]store.NewJob{
				{State: store.Filtered, Note: "test event, and test_events is keep"}, {State: store.Filtered, Note: "test event, and test_events is keep"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jobs := stored(t, one(c.event), c.change).Events[0].Jobs
			for i, got := range jobs {
				got.Destination, got.Key = "", ""
				if got != c.want[i] {
					t.Errorf("job %d: %+v, want %+v", i, got, c.want[i])
				}
			}
		})
	}
}

func TestRulesSeeTheItemOfABatch(t *testing.T) {
	t.Parallel()
	a := stored(t, provider.Result{Events: []provider.Event{
		{ID: "e1", Part: 0, Bytes: []byte(`{"a":1}`)}, {ID: "e2", Part: 1, Bytes: []byte(`{"a":2}`)},
	}}, func(s *Source) {
		s.Filter = &Filter{Rule: ruleOf(t, `body.a == 2 and method == "POST" and headers["x-sig"] == ""`)}
	})
	if a.Events[0].Jobs[0].State != store.Filtered || a.Events[1].Jobs[0].State != store.Queued {
		t.Errorf("%+v", a.Events)
	}
}

func TestARuleAppliesToWhatIsReleased(t *testing.T) {
	t.Parallel()
	s := signedSource("g")
	s.Filter = &Filter{Rule: ruleOf(t, `body.a == 2`)}
	src := newSource(s, newEdge(t, EdgeOptions{Inbox: null{}}).set)
	for body, want := range map[string]store.JobState{`{"a":1}`: store.Filtered, `{"a":2}`: store.Queued} {
		ev, ok, err := identify(src, store.Payload{Method: "POST", Target: "/in/g", Header: []byte(`{"X-Id":["e1"]}`), Body: []byte(body)})
		if err != nil || !ok || ev.Jobs[0].State != want {
			t.Errorf("%s: %+v %v %v", body, ev.Jobs, ok, err)
		}
	}
}

func TestTypePatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "x", true}, {"a*", "abc", true}, {"a*", "ba", false}, {"*c", "abc", true}, {"*c", "abcd", false},
		{"a*c", "ac", true}, {"a*c", "a", false}, {"a*b*c", "aXbYc", true}, {"a*b*c", "aXc", false}, {"a*a", "a", false}, {"", "", true}, {"", "a", false}, {"a.b", "axb", false},
	} {
		if got := fits(c.pattern, c.text); got != c.want {
			t.Errorf("%q %q: %v", c.pattern, c.text, got)
		}
	}
}

// TestNoRuleCostsNothing: a source without rules makes its jobs with as many allocations as
// if there were none in the language.
func TestNoRuleCostsNothing(t *testing.T) {
	src := newSource(signedSource("g"), newEdge(t, EdgeOptions{Inbox: null{}}).set)
	in, header, body := &provider.Event{ID: "e", Type: "t", Part: -1}, http.Header{"X-Sig": {"x"}}, []byte(strings.Repeat("{", 1500))
	ev := src.event(in, body)
	ev.Jobs = src.jobs(ev.ID, false)
	if n := testing.AllocsPerRun(100, func() { src.rule(&ev, in, "POST", header, body) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRules(b *testing.B) {
	body := []byte(`{"id":"evt_1","type":"invoice.paid","data":{"object":{"amount":2000,"pad":"` + strings.Repeat("x", 1400) + `"}}}`)
	in, header := &provider.Event{ID: "e", Type: "invoice.paid", Part: -1}, http.Header{"X-Sig": {"x"}}
	for _, c := range []struct{ name, text string }{{"none", ""}, {"by type", `type startsWith "invoice."`}, {"by body", `body.data.object.amount >= 1000`}} {
		b.Run(c.name, func(b *testing.B) {
			s := signedSource("g")
			if c.text != "" {
				s.Filter = &Filter{Rule: ruleOf(b, c.text)}
			}
			src := newSource(s, newEdge(b, EdgeOptions{Inbox: null{}}).set)
			ev := src.event(in, body)
			ev.Jobs = src.jobs(ev.ID, false)
			b.ReportAllocs()
			for b.Loop() {
				src.rule(&ev, in, "POST", header, body)
			}
		})
	}
}
