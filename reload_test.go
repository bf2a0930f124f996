package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"acuse/scripts/tools/load"
)

// TestReload: SIGHUP brings a new source and a new destination; a file with a mistake
// changes nothing, and the log says where the mistake is.
func TestReload(t *testing.T) {
	t.Parallel()
	one, two := newApp(t, nil), newApp(t, nil)
	conf := stripe("one") + "destinations:\n" + destination("one", one.URL)
	p := begin(t, conf)
	p.event("evt_1")
	until(t, "the first app has it", func() bool { return one.times("evt_1") == 1 })

	more := stripe("one", "two") + "  second:\n    provider: stripe\n    secrets: [\"" + load.Secret + "\"]\n    deliver_to: [two]\n" +
		"destinations:\n" + destination("one", one.URL) + destination("two", two.URL)
	p.post("second", load.Body("evt_2", time.Now())).is(t, 404)
	p.configure(more)
	p.hup("configuration reloaded")
	p.event("evt_2")
	p.post("second", load.Body("evt_3", time.Now())).is(t, 200, "accepted")
	until(t, "both apps have the second event", func() bool { return one.times("evt_2") == 1 && two.times("evt_2") == 1 })
	until(t, "the new source delivers", func() bool { return two.times("evt_3") == 1 })

	p.configure(strings.Replace(more, "deliver_to: [two]", "deliver_to: [nobody]\n    secret: planted-secret", 1))
	p.hup("the old one stays")
	log := p.log()
	for _, word := range []string{"sources.second.deliver_to[0]: there is no such destination", `sources.second.secret: unknown key`} {
		if !strings.Contains(log, word) {
			t.Errorf("the log does not say %q", word)
		}
	}
	if strings.Contains(log, "planted") {
		t.Error("the log quotes the value")
	}
	line := 0
	b, err := os.ReadFile(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range strings.Split(string(b), "\n") {
		if strings.Contains(text, "secret: planted") {
			line = i + 1
		}
	}
	if want := "acuse.yaml:" + strconv.Itoa(line) + ":"; !strings.Contains(log, want) {
		t.Errorf("the log does not say %s", want)
	}
	p.post("second", load.Body("evt_4", time.Now())).is(t, 200, "accepted")
	until(t, "the old configuration still delivers", func() bool { return two.times("evt_4") == 1 })

	// A destination that is taken out keeps its jobs, and gets them when it is back.
	p.configure(strings.ReplaceAll(conf, "deliver_to: [one]", "deliver_to: [late]") + "  late: {pull: {}}\n")
	p.hup("configuration reloaded")
	id := p.event("evt_5")
	p.configure(conf)
	p.hup("configuration reloaded")
	if d := p.delivery(id); d.State != "queued" || len(d.Jobs) != 1 {
		t.Errorf("the job of a removed destination: %s, %d jobs", d.State, len(d.Jobs))
	}
	p.configure(conf + "  late: {pull: {}}\n")
	p.hup("configuration reloaded")
	l := p.lease("late", 60)
	p.settle(l, "ack").is(t, 200)
	if l.Delivery != id {
		t.Errorf("leased delivery %d, want %d", l.Delivery, id)
	}
}

// hup lets acuse read its configuration again and waits for what it says of it.
func (p *place) hup(says string) {
	p.t.Helper()
	before := strings.Count(p.log(), says)
	if err := p.Signal(syscall.SIGHUP); err != nil {
		p.t.Fatal(err)
	}
	until(p.t, "the log says "+says, func() bool { return strings.Count(p.log(), says) > before })
}
