package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"acuse/access"
)

// capturing is a world whose source "stripe" takes its secret from a handshake.
func capturing(t *testing.T) (*world, *CaptureState) {
	t.Helper()
	w := seeded(t, 1)
	state := &CaptureState{}
	w.admin.opt.Sources = func() []Source {
		list := worldSources()
		for i := range list {
			list[i].Captures = list[i].Name == "stripe"
		}
		return list
	}
	w.admin.opt.Capture = func(_ context.Context, source, act string) (CaptureState, error) {
		switch {
		case source != "stripe":
			return CaptureState{}, ErrNoCapture
		case act == "await":
			*state = CaptureState{Value: "came while waiting", From: "192.0.2.1", At: noon}
		case act == "open":
			*state = CaptureState{Until: noon.Add(10 * time.Minute)}
		case act == "confirm" && state.Value == "":
			return CaptureState{}, ErrNothingCaptured
		case act == "confirm" && state.From == "192.0.2.9":
			out := *state
			out.Snippet = "sources:\n  stripe: <more>\n"
			return out, nil
		case act == "confirm", act == "discard":
			*state = CaptureState{}
		}
		return *state, nil
	}
	return w, state
}

func TestASecretFromAHandshakeIsShownUntilItIsDecided(t *testing.T) {
	t.Parallel()
	w, state := capturing(t)
	c := w.owner(t)
	page := func(want ...string) string {
		t.Helper()
		body := c.get("/sources/stripe").Body.String()
		for _, word := range want {
			if !strings.Contains(body, word) {
				t.Errorf("no %q in\n%s", word, body)
			}
		}
		return body
	}
	act := func(name string) {
		t.Helper()
		if r := c.post("/sources/stripe/capture", url.Values{"action": {name}}); r.Code != http.StatusSeeOther || r.Header().Get("Location") != "/sources/stripe#capture" {
			t.Fatalf("%s: %d %s", name, r.Code, r.Header())
		}
	}
	if body := page(`name="action" value="open"`); strings.Contains(body, `value="confirm"`) {
		t.Error("there is nothing to confirm yet")
	}
	act("confirm")
	page("Not done: nothing came yet. Open the window")
	act("open")
	page("Open; ends", "Close the window")
	*state = CaptureState{Value: "<shown-in-clear>", From: "192.0.2.1", At: noon}
	page("&lt;shown-in-clear&gt;", "192.0.2.1", `value="confirm"`, `value="discard"`)
	if r := c.get("/sources/bot"); strings.Contains(r.Body.String(), `id="capture"`) {
		t.Error("another source captures nothing")
	}
	act("confirm")
	if body := page("Confirmed."); strings.Contains(body, "shown-in-clear") {
		t.Error("it is shown after it was decided")
	}
	*state = CaptureState{Value: "s", From: "192.0.2.9", At: noon}
	if r := c.post("/sources/stripe/capture", url.Values{"action": {"confirm"}}); r.Code != http.StatusOK || !strings.Contains(r.Body.String(), "stripe: &lt;more&gt;") {
		t.Errorf("where the folder cannot be written: %d %s", r.Code, r.Body)
	}
}

func TestCaptureByTheAPI(t *testing.T) {
	t.Parallel()
	w, state := capturing(t)
	for _, c := range []struct {
		source, body, want string
		status             int
	}{
		{"stripe", `{"action":"confirm"}`, "nothing-captured", 409},
		{"stripe", `{"action":"open"}`, `"open_until":"2026-11-30T14:15:00.000Z","value":null`, 200},
		{"stripe", `{"action":"look"}`, "action", 400},
		{"bot", `{"action":"open"}`, "", 404},
	} {
		r := w.call(t, "POST", "/api/v1/sources/"+c.source+"/capture", adminToken, c.body)
		if r.Code != c.status || !strings.Contains(r.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s", c.source, c.body, r.Code, r.Body)
		}
	}
	*state = CaptureState{Value: "v", From: "192.0.2.1", At: noon}
	if r := w.call(t, "POST", "/api/v1/sources/stripe/capture", adminToken, `{"action":"discard"}`); r.Code != 200 || strings.Contains(r.Body.String(), `"v"`) {
		t.Errorf("%d %s", r.Code, r.Body)
	}
}

func TestACaptureIsWaitedForByTheAPI(t *testing.T) {
	t.Parallel()
	w, state := capturing(t)
	*state = CaptureState{Until: noon.Add(time.Minute)}
	for _, c := range []struct {
		source, query, want string
		status              int
	}{
		{"stripe", "", `"value":null`, 200},
		{"stripe", "?wait_seconds=60", `"value":"came while waiting"`, 200},
		{"stripe", "?wait_seconds=61", "wait_seconds", 400},
		{"stripe", "?wait_seconds=-1", "wait_seconds", 400},
		{"bot", "", "", 404},
	} {
		r := w.call(t, "GET", "/api/v1/sources/"+c.source+"/capture"+c.query, adminToken, "")
		if r.Code != c.status || !strings.Contains(r.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s", c.source, c.query, r.Code, r.Body)
		}
	}
	reader, _, err := w.tokens.Create(t.Context(), "reader", "", []string{access.Read}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.call(t, "GET", "/api/v1/sources/stripe/capture", reader, ""); r.Code != 403 || strings.Contains(r.Body.String(), "came while") {
		t.Errorf("a secret for who may only read: %d %s", r.Code, r.Body)
	}
}
