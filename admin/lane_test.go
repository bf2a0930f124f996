package admin

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"acuse/store"
)

// lane and laneAct stand for the queue.
func (w *world) lane(name string) LaneState {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.lanes[name]; ok {
		return s
	}
	return LaneState{Concurrency: 4, Sends: 4, Pull: name == "agent"}
}

func (w *world) laneAct(_ context.Context, name, act string) (bool, error) {
	s := w.lane(name)
	if name != "app" && name != "agent" {
		return false, store.ErrNotFound
	}
	was := !s.Paused.IsZero()
	switch {
	case act == "pause":
		s.Paused = w.now()
	case act == "resume":
		s.Paused = time.Time{}
	case was:
		return false, ErrPaused
	case s.Down.IsZero():
		return false, ErrNotDown
	default:
		s.ProbeAt = w.now()
	}
	w.stands(name, s)
	return was != (act == "pause"), nil
}

func (w *world) stands(name string, s LaneState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lanes == nil {
		w.lanes = map[string]LaneState{}
	}
	w.lanes[name] = s
}

func TestThePageOfADestinationTellsHowItStands(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	w.stands("app", LaneState{Down: noon.Add(-2 * time.Hour), Class: "refused", Probes: 7, ProbeAt: noon.Add(20 * time.Second), Concurrency: 4, Sends: 4, Rate: 5, MaxAge: 48 * time.Hour})
	w.shows(t, c, "/destinations", []string{">Down<", `href="/destinations/app"`}, []string{">Caído<"})
	w.shows(t, c, "/destinations/app", []string{"Down since", "Connection refused", "7 probes came to nothing; the next in 20", "Probe now", "5 a second"},
		[]string{"Caído desde", "Conexión rechazada", "7 sondeos sin resultado; el siguiente en 20", "Sondear ahora", "5 por segundo"})
	w.shows(t, c, w.path("retry"), []string{"Waits: the destination is down"}, []string{"Espera: el destino está caído"})
	w.stands("app", LaneState{Down: noon, Status: 503, Class: "status", Probing: true})
	w.shows(t, c, "/destinations/app", []string{"A probe is under way"}, []string{"Hay un sondeo en curso"})
	w.stands("app", LaneState{HoldUntil: noon.Add(time.Minute), Concurrency: 4, Sends: 1})
	w.shows(t, c, "/destinations/app", []string{"It answered 429", "1 of 4 requests"}, []string{"Respondió 429", "1 de 4 peticiones"})
	w.stands("app", LaneState{Paused: noon.Add(-time.Hour), Concurrency: 4, Sends: 4})
	w.shows(t, c, "/destinations/app", []string{"Paused since", "Resume"}, []string{"En pausa desde", "Reanudar"})
	w.shows(t, c, w.path("retry"), []string{"Waits: the destination is paused"}, []string{"Espera: el destino está en pausa"})
	if r := c.get("/destinations/nowhere"); r.Code != http.StatusNotFound {
		t.Errorf("a destination that is not there: %d", r.Code)
	}
}

func TestPausingIsWrittenDownAndNeedsTheRight(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	for _, act := range []string{"pause", "resume", "probe"} {
		r := c.post("/destinations/app", url.Values{"action": {act}})
		if r.Code != http.StatusSeeOther || r.Header().Get("Location") != "/destinations/app" {
			t.Fatalf("%s: %d %s", act, r.Code, r.Header().Get("Location"))
		}
	}
	if r := c.post("/destinations/app", url.Values{"action": {"burn"}}); r.Code != http.StatusNotFound {
		t.Errorf("an act that is none: %d", r.Code)
	}
	log, err := w.db.AuditLog(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var acts []string
	for _, e := range log {
		if strings.HasPrefix(e.Act, "destination.") {
			acts = append(acts, e.By.Name+" "+e.Act+" "+e.Subject)
		}
	}
	if got := strings.Join(acts, ", "); got != "ana destination.resume app, ana destination.pause app" {
		t.Errorf("audit: %s", got)
	}
	viewer := w.person(t, "vera", "viewer")
	if r := viewer.post("/destinations/app", url.Values{"action": {"pause"}}); r.Code != http.StatusForbidden {
		t.Errorf("a viewer paused it: %d", r.Code)
	}
	if body := viewer.get("/destinations/app").Body.String(); strings.Contains(body, `value="pause"`) {
		t.Error("a viewer sees the button")
	}
}
