package demo

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestBothLanguagesSayTheSame(t *testing.T) {
	t.Parallel()
	for key, text := range english {
		if strings.Count(text, "%") != strings.Count(spanish[key], "%") || spanish[key] == "" || spanish[key] == text {
			t.Errorf("%s: %q, %q", key, text, spanish[key])
		}
	}
	if len(english) != len(spanish) {
		t.Errorf("%d English words, %d Spanish", len(english), len(spanish))
	}
}

// ask sends one delivery to the app.
func ask(t *testing.T, url, key, event string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true // on a kept connection Go would send a cut request again by itself
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Acuse-Source", "s")
	req.Header.Set("Acuse-Event-Id", event)
	if res, err := http.DefaultClient.Do(req); err == nil { // the app breaks some connections on purpose
		res.Body.Close()
	}
}

func TestTheAppWorksOncePerKeyAndShowsASecondKey(t *testing.T) {
	t.Parallel()
	app := &App{}
	srv := httptest.NewServer(app)
	t.Cleanup(srv.Close)
	for range 6 { // it fails at most three times
		ask(t, srv.URL, "k1", "e1")
		ask(t, srv.URL, "k2", "e2")
		ask(t, srv.URL, "k3", "e2")
	}
	got := app.Tally()
	if got.Orders["s e1"] != 1 || got.Orders["s e2"] != 2 || got.Asked != 18 {
		t.Errorf("got %+v: want one order for e1, two for e2 (two keys)", got)
	}
}

func TestReportFindsEveryFault(t *testing.T) {
	t.Parallel()
	sender := func(change func(*Sent)) []*Sender {
		s := &Sender{Source: "s", sent: Sent{Acked: map[string]bool{"e1": true}, Accepted: 1}}
		change(&s.sent)
		return []*Sender{s}
	}
	none := func(*Sent) {}
	for name, c := range map[string]struct {
		senders []*Sender
		app     Tally
		dead    int64
		good    bool
	}{
		"all well":                {sender(none), Tally{Orders: map[string]int{"s e1": 1}}, 0, true},
		"an order is missing":     {sender(none), Tally{Orders: map[string]int{}}, 0, false},
		"an order is double":      {sender(none), Tally{Orders: map[string]int{"s e1": 2}}, 0, false},
		"an order nobody made":    {sender(none), Tally{Orders: map[string]int{"s e1": 1, "s e9": 1}}, 0, false},
		"a forged one passed":     {sender(func(s *Sent) { s.Passed = 1 }), Tally{Orders: map[string]int{"s e1": 1}}, 0, false},
		"one was never taken":     {sender(func(s *Sent) { s.Unsent = 1 }), Tally{Orders: map[string]int{"s e1": 1}}, 0, false},
		"a dead letter":           {sender(none), Tally{Orders: map[string]int{"s e1": 1}}, 1, false},
		"the app saw a bad sign":  {sender(none), Tally{BadSignatures: 1, Orders: map[string]int{"s e1": 1}}, 0, false},
		"the app saw no key":      {sender(none), Tally{NoKey: 1, Orders: map[string]int{"s e1": 1}}, 0, false},
		"nothing was sent at all": {nil, Tally{}, 0, false},
	} {
		if got := Compare(c.senders, c.app, 1, c.dead); got.Good() != c.good {
			t.Errorf("%s: good is %v: %+v", name, got.Good(), got)
		}
	}
}
