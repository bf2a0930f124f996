package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"acuse/provider"
	"acuse/store"
)

// says makes a checker that always finds the same.
func says(res provider.Result) *checker {
	return &checker{receive: func(*provider.Request) (provider.Result, error) { return res, nil }}
}

// stored posts one request to a source that finds res, and returns what the store was
// asked to keep.
func stored(t *testing.T, res provider.Result, change func(*Source)) store.Arrival {
	t.Helper()
	s := signedSource("g")
	s.Checker = says(res)
	if change != nil {
		change(&s)
	}
	in := &inbox{}
	if w := post(newEdge(t, EdgeOptions{Inbox: in}, s), "/in/g", `[{"a":1},{"a":2}]`); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return in.all()[0]
}

func TestArrival(t *testing.T) {
	t.Parallel()
	whole := func(e provider.Event) provider.Result {
		e.Part = -1
		return provider.Result{Slot: 1, Events: []provider.Event{e}}
	}
	t.Run("an event without an id gets one of its own each time", func(t *testing.T) {
		t.Parallel()
		a, b := stored(t, whole(provider.Event{NoID: true}), nil).Events[0], stored(t, whole(provider.Event{NoID: true}), nil).Events[0]
		if !a.Made || !strings.HasPrefix(a.ID, "acuse-") || len(a.ID) < 20 || a.ID == b.ID {
			t.Errorf("%q %q", a.ID, b.ID)
		}
	})
	t.Run("the items of a batch keep their order, bytes and sizes", func(t *testing.T) {
		t.Parallel()
		a := stored(t, provider.Result{Events: []provider.Event{
			{ID: "e1", Part: 0, Bytes: []byte(`{"a":1}`)}, {ID: "e2", Part: 1, Bytes: []byte(`{"a":22}`)},
		}}, nil)
		if len(a.Events) != 2 || a.Events[0].ID != "e1" || a.Events[1].Part != 1 || a.Events[1].Size != 8 || a.Events[0].Digest == a.Events[1].Digest {
			t.Errorf("%+v", a.Events)
		}
		if a.Events[1].Jobs[0].Key != "g:e2:app" {
			t.Errorf("jobs %+v", a.Events[1].Jobs)
		}
	})
	t.Run("a quarantined request has no id and no jobs", func(t *testing.T) {
		t.Parallel()
		e := stored(t, provider.Result{Slot: 1, Quarantine: "no id at json:x", Events: []provider.Event{{Part: -1}}}, nil).Events[0]
		if e.ID != "" || e.Made || len(e.Jobs) != 0 || e.Quarantine != "no id at json:x" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("a body's digest is remembered for its own window", func(t *testing.T) {
		t.Parallel()
		window := func(s *Source) {
			s.Window = func(bodyHash bool) (time.Duration, bool) {
				if bodyHash {
					return time.Hour, false
				}
				return 9 * time.Hour, true
			}
		}
		if e := stored(t, whole(provider.Event{ID: "h", BodyHash: true}), window).Events[0]; e.Window != time.Hour || e.WithRow {
			t.Errorf("hash: %v", e.Window)
		}
		if e := stored(t, whole(provider.Event{ID: "h"}), window).Events[0]; e.Window != 9*time.Hour || !e.WithRow {
			t.Errorf("id: %v", e.Window)
		}
	})
	t.Run("test events are kept and not delivered where the source says so", func(t *testing.T) {
		t.Parallel()
		keep := func(s *Source) { s.TestEvents = "keep" }
		e := stored(t, whole(provider.Event{ID: "1", Test: true}), keep).Events[0]
		if len(e.Jobs) != 2 || e.Jobs[0].State != store.Filtered || e.Jobs[1].Note == "" {
			t.Errorf("%+v", e.Jobs)
		}
		if e := stored(t, whole(provider.Event{ID: "1"}), keep).Events[0]; e.Jobs[0].State != store.Queued {
			t.Errorf("a live event: %+v", e.Jobs)
		}
		if e := stored(t, whole(provider.Event{ID: "1", Test: true}), nil).Events[0]; e.Jobs[0].State != store.Queued {
			t.Errorf("delivered by default: %+v", e.Jobs)
		}
	})
	t.Run("the key names stand in the keys, not the names", func(t *testing.T) {
		t.Parallel()
		e := stored(t, whole(provider.Event{ID: "1"}), func(s *Source) { s.KeyName = "old name" }).Events[0]
		if e.Jobs[0].Key != "old%20name:1:app" || e.Jobs[1].Key != "old%20name:1:old-agent" || e.Jobs[1].Destination != "agent" {
			t.Errorf("%+v", e.Jobs)
		}
	})
	t.Run("more items than allowed are 413", func(t *testing.T) {
		t.Parallel()
		s := signedSource("g")
		s.Checker = says(provider.Result{Events: make([]provider.Event, maxItems+1)})
		if w := post(newEdge(t, EdgeOptions{Inbox: &inbox{}}, s), "/in/g", "[]"); w.Code != 413 {
			t.Errorf("%d", w.Code)
		}
	})
	t.Run("without authentication nothing is quarantined", func(t *testing.T) {
		t.Parallel()
		s := signedSource("g")
		s.Unsigned, s.Checker = true, says(provider.Result{Unverified: true, Quarantine: "no id", Events: []provider.Event{{Part: -1}}})
		if w := post(newEdge(t, EdgeOptions{Inbox: &inbox{}}, s), "/in/g", "{}"); w.Code != 400 {
			t.Errorf("%d", w.Code)
		}
	})
	t.Run("an empty batch is 200 and stores nothing", func(t *testing.T) {
		t.Parallel()
		s, in := signedSource("g"), &inbox{}
		s.Checker = says(provider.Result{Empty: true})
		w := post(newEdge(t, EdgeOptions{Inbox: in}, s), "/in/g", "[]")
		if w.Code != 200 || len(in.all()) != 0 {
			t.Errorf("%d, stored %d", w.Code, len(in.all()))
		}
	})
}

// docs/http.md H18.
func TestTheSignedURLIsTheConfiguredOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ public, target, want string }{
		{"", "/in/tw?x=1", ""},
		{"https://hooks.example.test:8443/in/tw", "/in/tw", "https://hooks.example.test:8443/in/tw"},
		{"https://hooks.example.test:8443/in/tw", "/in/tw?x=a%2Fb", "https://hooks.example.test:8443/in/tw?x=a%2Fb"},
		{"https://hooks.example.test:8443/in/tw?x=a%2Fb", "/in/tw?x=a%2Fb", "https://hooks.example.test:8443/in/tw?x=a%2Fb"},
		{"https://hooks.example.test/in/tw", "/in/tw/sms%20x?a", "https://hooks.example.test/in/tw/sms%20x?a"},
		{"https://hooks.example.test/in/tw/", "/in/tw/sms", "https://hooks.example.test/in/tw/sms"},
		{"https://hooks.example.test/in/tw", "/in/tw?", "https://hooks.example.test/in/tw?"},
	} {
		var got string
		s := signedSource("tw")
		s.PublicURL = c.public
		s.Checker = &checker{receive: func(r *provider.Request) (provider.Result, error) {
			got = r.URL
			return provider.Result{Empty: true}, nil
		}}
		post(newEdge(t, EdgeOptions{}, s), c.target, "", "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http")
		if got != c.want {
			t.Errorf("%q and %q: got %q, want %q", c.public, c.target, got, c.want)
		}
	}
}

func TestAnnouncedTestsGoWhereTheyAreSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{}
		var woken []string
		e := newEdge(t, EdgeOptions{Inbox: in, Wake: func(d []string) { woken = append(woken, d...) }}, signedSource("g"))
		e.Announce(Announcement{Source: "g", Body: []byte(`{"t":1}`), Destinations: []string{"agent", "elsewhere"}})
		e.Announce(Announcement{Source: "g", Body: []byte(`{"late":1}`)})
		postSigned(e, "/in/g", "other", "{}")
		postSigned(e, "/in/g", "t1", `{"t":1}`)
		postSigned(e, "/in/g", "t1", `{"t":1}`)
		time.Sleep(announceFor + time.Second)
		postSigned(e, "/in/g", "late", `{"late":1}`)

		all := in.all()
		if all[0].Events[0].Test || all[2].Events[0].Test || all[3].Events[0].Test {
			t.Error("an event that was not announced, or too long ago, is a test")
		}
		ours := all[1].Events[0]
		if !ours.Test || len(ours.Jobs) != 2 || ours.Jobs[0].Key != "g:t1:old-agent" || ours.Jobs[1].Key != "g:t1:elsewhere" {
			t.Errorf("the announced one: %+v", ours)
		}
		if got := strings.Join(woken, " "); got != "app agent agent elsewhere app agent" {
			t.Errorf("woken: %s", got)
		}
	})
}

func TestAnAnnouncedRequestMakesAllItsEventsTests(t *testing.T) {
	t.Parallel()
	in := &inbox{}
	s := signedSource("g")
	e := newEdge(t, EdgeOptions{Inbox: in}, s)
	e.Announce(Announcement{Source: "g", Body: []byte(`{"batch":1}`), Destinations: []string{"elsewhere"}})
	postSigned(e, "/in/g", "a", `{"batch":2}`)
	postSigned(e, "/in/g", "b", `{"batch":1}`)
	postSigned(e, "/in/g", "c", `{"batch":1}`)
	all := in.all()
	if len(all) != 3 || all[0].Events[0].Test || all[2].Events[0].Test {
		t.Fatalf("another body, or a second request with the same, is a test: %+v", all)
	}
	if ours := all[1].Events[0]; !ours.Test || len(ours.Jobs) != 1 || ours.Jobs[0].Key != "g:b:elsewhere" {
		t.Errorf("the announced one: %+v", ours)
	}
}

func TestAnnouncementsAreBounded(t *testing.T) {
	t.Parallel()
	e := newEdge(t, EdgeOptions{})
	for i := range 2 * maxAnnounced {
		e.Announce(Announcement{Source: "g", Body: []byte(itoa(i))})
	}
	if n := len(e.announced.list); n > maxAnnounced {
		t.Errorf("%d are kept", n)
	}
	if e.announced.find("g", []byte(itoa(2*maxAnnounced-1)), time.Now()) == nil {
		t.Error("the latest is gone")
	}
}

// docs/http.md H17, the clock rule: while the clock is not set, a request whose only fault is its time
// is asked to come again; once it is, the fault counts.
func TestClockThatIsNotSet(t *testing.T) {
	t.Parallel()
	build := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	refusal := provider.TimestampFuture
	s := signedSource("g")
	s.Checker = &checker{receive: func(*provider.Request) (provider.Result, error) {
		if refusal == "" {
			return provider.Result{Events: []provider.Event{{ID: "1", Part: -1}}}, nil
		}
		return provider.Result{}, &provider.Refusal{Reason: refusal, Signed: true}
	}}
	var now time.Time
	alerts := 0
	e := newEdge(t, EdgeOptions{Inbox: &inbox{}, BuildTime: build, Newest: build.Add(time.Hour), Now: func() time.Time { return now }, Alert: func() { alerts++ }}, s)
	for _, c := range []struct {
		name   string
		now    time.Time
		reason provider.Reason
		want   int
	}{
		{"before the build", time.Unix(0, 0), provider.TimestampFuture, 503},
		{"before the build, too old", time.Unix(0, 0), provider.TimestampExpired, 503},
		{"before the build, another fault", time.Unix(0, 0), provider.SignatureMismatch, 401},
		{"61 s behind the newest event", build.Add(time.Hour - 61*time.Second), provider.TimestampFuture, 503},
		{"59 s behind it", build.Add(time.Hour - 59*time.Second), provider.TimestampFuture, 401},
		{"set", build.Add(2 * time.Hour), provider.TimestampFuture, 401},
		{"set, and nothing wrong", build.Add(2 * time.Hour), "", 200},
		{"stepped back behind what was just stored", build.Add(2*time.Hour - 61*time.Second), provider.TimestampFuture, 503},
	} {
		now, refusal = c.now, c.reason
		w := post(e, "/in/g", "{}")
		if w.Code != c.want || (w.Header().Get("Retry-After") != "") != (c.want == 503) {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.want)
		}
		if e.ClockSet() != (c.want != 503 && c.now.After(build)) {
			t.Errorf("%s: ClockSet %v", c.name, e.ClockSet())
		}
	}
	if alerts != 4 {
		t.Errorf("%d alerts, want one for each 503", alerts)
	}
}

func TestRateOfASourceCountsVerifiedRequestsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := signedSource("g")
		s.Rate = 2
		e := newEdge(t, EdgeOptions{Inbox: &inbox{}}, s)
		for range 20 {
			post(e, "/in/g", "{}", "X-Sig", "forged")
		}
		for i, want := range []int{200, 200, 429} {
			w := postSigned(e, "/in/g", itoa(i), "{}")
			if w.Code != want || (w.Header().Get("Retry-After") == "1") != (want == 429) {
				t.Errorf("request %d: %d", i, w.Code)
			}
		}
		time.Sleep(time.Second)
		if w := postSigned(e, "/in/g", "later", "{}"); w.Code != 200 {
			t.Errorf("a second later: %d", w.Code)
		}
	})
}

func TestAFloodOfForgeriesIsTurnedAwayUnreadAndSignedOnesPass(t *testing.T) {
	t.Parallel()
	checked := 0
	s := signedSource("g")
	s.Checker = &checker{receive: func(r *provider.Request) (provider.Result, error) {
		checked++
		return (&checker{secret: "s3cret"}).Receive(r, time.Time{})
	}}
	e := newEdge(t, EdgeOptions{Inbox: &inbox{}, TrustedProxies: prefixes("192.0.2.0/24")}, s)
	turned := 0
	for range 500 {
		if post(e, "/in/g", "{}", "X-Sig", "forged", "X-Forwarded-For", "198.51.100.9").Code == 429 {
			turned++
		}
	}
	if checked > 300 || turned < 200 {
		t.Errorf("%d were checked, %d turned away", checked, turned)
	}
	if w := post(e, "/in/g", "{}", "X-Sig", sign("s3cret", []byte("{}")), "X-Forwarded-For", "203.0.113.7"); w.Code != 200 {
		t.Errorf("a signed one from elsewhere: %d", w.Code)
	}
	w := post(e, "/in/g", "{}", "X-Sig", "forged", "X-Forwarded-For", "198.51.100.9")
	if w.Code != 429 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
}

func TestMissesAreShownToTheOwner(t *testing.T) {
	t.Parallel()
	e := newEdge(t, EdgeOptions{}, signedSource("stripe"))
	post(e, "/in/Stripe?token=x", "{}")
	post(e, "/stripe", "{}")
	post(e, "/in/st%72ipe/a/b", "{}")
	post(e, "/in/strpe", "{}")
	post(e, "/in/strpe", "{}")
	do(e, "GET", "/favicon.ico", "")
	post(e, "/"+strings.Repeat("x", 500), "{}")
	got, err := json.Marshal(e.Misses())
	if err != nil {
		t.Fatal(err)
	}
	list := e.Misses()
	if len(list) != 5 || list[1].Path != "/in/strpe" || list[1].Count != 2 || list[1].Source != "" ||
		list[4].Source != "stripe" || list[3].Source != "stripe" || list[2].Source != "stripe" || len(list[0].Path) > 80 {
		t.Errorf("%s", got)
	}
	if strings.Contains(string(got), "token") || strings.Contains(string(got), "favicon") {
		t.Errorf("%s", got)
	}
	for i := range 3 * maxMisses {
		post(e, "/in/"+itoa(i), "{}")
	}
	if n := len(e.Misses()); n != maxMisses {
		t.Errorf("%d are kept", n)
	}
}

func TestSourcesAreReplacedAtOnce(t *testing.T) {
	t.Parallel()
	e := newEdge(t, EdgeOptions{Inbox: &inbox{}}, signedSource("a"))
	e.SetSources([]Source{signedSource("b")})
	if w := postSigned(e, "/in/a", "1", "{}"); w.Code != http.StatusNotFound {
		t.Errorf("the old one: %d", w.Code)
	}
	if w := postSigned(e, "/in/b", "1", "{}"); w.Code != http.StatusOK {
		t.Errorf("the new one: %d", w.Code)
	}
}
