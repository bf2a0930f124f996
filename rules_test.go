package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// invoice is an event about one invoice, of a given second and amount.
func invoice(id, about string, at time.Time, amount int) []byte {
	return fmt.Appendf(nil, `{"id":%q,"object":"event","created":%d,"type":"invoice.updated","data":{"object":{"id":%q,"amount":%d}}}`, id, at.Unix(), about, amount)
}

func (p *place) invoice(id, about string, at time.Time, amount int) (delivery int64) {
	p.t.Helper()
	r := p.post("stripe", invoice(id, about, at, amount))
	r.is(p.t, 200, `"status":"accepted"`)
	var a answer
	r.read(p.t, &a)
	return a.Delivery
}

// TestP6FiltersThroughTheWholeProgram: what a rule stops is kept and shown with the rule's
// text, also once the configuration has changed; what it fails on is parked or delivered.
func TestP6FiltersThroughTheWholeProgram(t *testing.T) {
	t.Parallel()
	app := newApp(t, nil)
	conf := func(rule string) string {
		return stripe("app", "strict") + "destinations:\n  app:\n    url: " + app.URL + "\n    filter: " + rule +
			"\n  strict:\n    pull: {}\n    filter: {when: body.data.object.amount.cents > 1, on_error: park}\n"
	}
	p := begin(t, conf("body.data.object.amount >= 1000"))
	small, large := p.invoice("evt_small", "in_1", time.Now(), 999), p.invoice("evt_large", "in_1", time.Now(), 1000)
	until(t, "the large one is delivered", func() bool { return app.times("evt_large") == 1 })
	p.configure(conf("body.data.object.amount >= 5"))
	p.hup("configuration reloaded")
	if d := p.delivery(small); d.Jobs[0].State != "filtered" || app.times("evt_small") != 0 {
		t.Errorf("%+v", d.Jobs)
	}
	p.api("GET", fmt.Sprint("/api/v1/deliveries/", small), nil).is(t, 200, `"rule":"body.data.object.amount \u003e= 1000"`, `"rule_error":"filter 1:25 kind"`)
	p.cli("show", fmt.Sprint(small)).is(t, 0, "rule  body.data.object.amount >= 1000", "failed: filter 1:25 kind")
	if d := p.delivery(large); d.Jobs[1].State != "dead" {
		t.Errorf("not parked: %+v", d.Jobs)
	}
	p.configure(conf("amount > 1"))
	s := p.cli("check")
	s.is(t, 1, "destinations.app.filter: line 1, column 1: unknown name amount")
}

// TestOrderAndVersionsForPullWorkers: one event of a resource at a time, in their order; a
// poll that waits wakes when the one before is through; a newer version replaces one that
// still waits.
func TestOrderAndVersionsForPullWorkers(t *testing.T) {
	t.Parallel()
	p := begin(t, stripe("agent")+"destinations:\n  agent:\n    pull: {}\n    order_by: resource\n    latest_only: [\"invoice.*\"]\n")
	now := time.Now()
	first := p.invoice("evt_1", "in_1", now, 1)
	head := p.lease("agent", 60)
	second := p.invoice("evt_2", "in_1", now.Add(time.Second), 2)
	third := p.invoice("evt_3", "in_1", now.Add(2*time.Second), 3)
	same := p.invoice("evt_4", "in_1", now.Add(2*time.Second), 4)
	if got := []string{p.delivery(first).State, p.delivery(second).State, p.delivery(third).State, p.delivery(same).State}; fmt.Sprint(got) != "[leased superseded queued queued]" {
		t.Fatalf("states %v", got)
	}
	p.cli("show", fmt.Sprint(second)).is(t, 0, fmt.Sprintf("superseded by #%d", third))
	p.cli("show", fmt.Sprint(same)).is(t, 0, fmt.Sprintf("order  in_1, 2 before it, #%d is first (running)", first))
	p.api("POST", "/api/v1/jobs/lease", map[string]any{"destination": "agent", "max": 10}).is(t, 200, `{"jobs":[]}`)
	got := make(chan lease)
	go func() { got <- p.lease("agent", 60) }()
	until(t, "the worker waits", func() bool {
		return strings.Contains(string(p.must("GET", "http://"+p.Admin+"/metrics", nil).Body), "acuse_pull_waiting 1")
	})
	p.settle(head, "ack").is(t, 200)
	next := <-got
	if next.Delivery != third {
		t.Errorf("#%d after #%d", next.Delivery, first)
	}
	p.cli("cancel", fmt.Sprint(same), "--yes")
	p.settle(next, "ack").is(t, 200)
	p.event("evt_other") // of another resource: the lane goes on
	if l := p.lease("agent", 60); l.EventID != "evt_other" {
		t.Errorf("leased %s", l.EventID)
	}
}

// TestCancellingAHeadWakesItsLane: nobody else would look.
func TestCancellingAHeadWakesItsLane(t *testing.T) {
	t.Parallel()
	app := newApp(t, failing(1))
	p := begin(t, stripe("app")+"destinations:\n  app:\n    url: "+app.URL+"\n    order_by: resource\n    retry: {schedule: [1h], jitter: 0}\n")
	head := p.invoice("evt_a", "in_1", time.Now(), 1)
	until(t, "it waits for its retry", func() bool { d := p.delivery(head); return d.State == "queued" && len(d.Attempts) == 1 })
	next := p.invoice("evt_b", "in_1", time.Now(), 2)
	if d := p.delivery(next); d.State != "queued" || len(d.Attempts) != 0 {
		t.Fatalf("%+v", d)
	}
	p.api("POST", fmt.Sprintf("/api/v1/deliveries/%d/cancel", head), map[string]string{}).is(t, 200)
	until(t, "the next one is sent", func() bool { return len(p.delivery(next).Attempts) == 1 })
}
