package admin

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"acuse/store"
)

// ruled accepts an event with one job for app and returns its number.
func (w *world) ruled(t *testing.T, id, version string, job store.NewJob, at time.Time) int64 {
	t.Helper()
	job.Destination, job.Key = "app", "stripe:"+id+":app"
	out, err := w.db.Accept(t.Context(), store.Arrival{Source: "stripe", Provider: "stripe", ReceivedAt: at, Method: "POST", Target: "/in/stripe",
		Header: []byte("{}"), Body: []byte("{}"), Events: []store.Event{{ID: id, Type: "invoice.paid", Resource: "in_1", Version: version, Unit: "int", Part: -1,
			Window: time.Hour, Jobs: []store.NewJob{job}}}})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Delivery
}

func text(id int64) string { return strconv.FormatInt(id, 10) }

// shows wants every text on a page, in both languages.
func (w *world) shows(t *testing.T, c *client, path string, en, es []string) {
	t.Helper()
	for lang, wants := range map[string][]string{"en": en, "es": es} {
		c.lang = lang
		r := c.get(path)
		if r.Code != http.StatusOK {
			t.Fatalf("%s: %d", path, r.Code)
		}
		for _, want := range wants {
			if !strings.Contains(r.Body.String(), want) {
				t.Errorf("%s in %s: no %q", path, lang, want)
			}
		}
	}
}

func TestP6APageTellsRuleOrderAndVersion(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	c := w.owner(t)
	at := noon.Add(-time.Hour)
	page := func(id int64) string { return "/deliveries/" + text(id) }
	filter := func(n store.Note) string { n.Rule = `type == "x" and "<script>"`; return n.String() }

	filtered := w.ruled(t, "f", "", store.NewJob{State: store.Filtered, Note: filter(store.Note{Key: "filter"})}, at)
	w.shows(t, c, page(filtered), []string{`type == &#34;x&#34; and &#34;&lt;script&gt;&#34;`, "The filter of the destination said no."},
		[]string{"El filtro del destino dijo que no."})
	bySource := w.ruled(t, "s", "", store.NewJob{State: store.Filtered, Note: filter(store.Note{Key: "filter", Source: true})}, at)
	w.shows(t, c, page(bySource), []string{"The filter of the source said no."}, []string{"El filtro de la fuente dijo que no."})
	parked := w.ruled(t, "p", "", store.NewJob{State: store.Dead, Note: filter(store.Note{Key: "filter", Failed: "kind", Line: 1, Column: 6})}, at)
	w.shows(t, c, page(parked), []string{"filter failed at line 1, column 6: it works on something absent or of another kind.", "Dead"},
		[]string{"filter falló en la línea 1, columna 6: trabaja con algo que falta o es de otro tipo."})
	w.shows(t, c, "/dead", []string{"Its rule failed"}, []string{"Falló su regla"})
	for _, word := range []string{"steps", "time", "memory", "long", "kind", "result"} {
		for _, lang := range []string{"en", "es"} {
			l, err := loadLocale(lang, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			if v := l.ruleView(&store.Job{Note: store.Note{Key: "order_by", Failed: word}.String()}); strings.Contains(v.Why, "rule.word") {
				t.Errorf("%s: %s", lang, v.Why)
			}
		}
	}

	older := w.ruled(t, "v1", "1", store.NewJob{State: store.Queued, Latest: true}, at)
	newer := w.ruled(t, "v2", "2", store.NewJob{State: store.Queued, Latest: true}, at)
	w.shows(t, c, page(older), []string{"Superseded by", `href="/deliveries/` + text(newer) + `">#` + text(newer), "By #" + text(newer) + ", a newer version"},
		[]string{"Sustituido por", "Por #" + text(newer) + ", una versión más nueva"})

	var line []int64
	for _, id := range []string{"o1", "o2", "o3"} {
		line = append(line, w.ruled(t, id, "", store.NewJob{State: store.Queued, Order: "cus_<1>", Strict: true}, at))
	}
	w.shows(t, c, page(line[0]), []string{"cus_&lt;1&gt;", "Its turn since"}, []string{"Tiene el turno desde"})
	w.shows(t, c, page(line[2]), []string{"2 jobs are before it.", `>#` + text(line[0]) + `</a>`, "has the turn since", "Waits for its turn"},
		[]string{"Tiene 2 envíos delante.", "tiene el turno desde", "Espera su turno"})
	w.shows(t, c, "/destinations", []string{"for more than 15 minutes", "2 behind it", "cus_&lt;1&gt;"}, []string{"más de 15 minutos", "2 detrás"})
	if _, err := w.db.Resend(t.Context(), store.Resend{Delivery: line[1], By: store.Actor{Name: "ana"}, At: noon}); err != nil {
		t.Fatal(err)
	}
	w.shows(t, c, page(line[1]), []string{"went to the end"}, []string{"pasó al final"})
}

func TestTheAPITellsRuleOrderAndVersion(t *testing.T) {
	t.Parallel()
	w := seeded(t, 0)
	one := func(id int64) (d OneDelivery) {
		t.Helper()
		r := w.call(t, "GET", "/api/v1/deliveries/"+text(id), adminToken, "")
		if err := json.Unmarshal(r.Body.Bytes(), &d); err != nil || r.Code != http.StatusOK {
			t.Fatalf("%d %v", r.Code, err)
		}
		return d
	}
	f := one(w.ruled(t, "f", "", store.NewJob{State: store.Filtered, Note: store.Note{Rule: "test", Key: "filter", Failed: "kind", Line: 1, Column: 2}.String()}, noon)).Jobs[0]
	if *f.Rule != "test" || *f.RuleError != "filter 1:2 kind" || f.Order != nil {
		t.Errorf("%+v", f)
	}
	a, b := w.ruled(t, "a", "", store.NewJob{State: store.Queued, Order: "o"}, noon), w.ruled(t, "b", "", store.NewJob{State: store.Queued, Order: "o"}, noon)
	d := one(b)
	if j := d.Jobs[0]; !j.Waits || *j.Order != "o" || j.DueAt != nil || j.TurnAt != nil {
		t.Errorf("%+v", j)
	}
	if want := (OrderPlace{Job: d.Jobs[0].ID, Ahead: 1, Head: a, Since: stamp(noon), State: "queued", Behind: 1}); len(d.Orders) != 1 || *d.Orders[0].Since != *want.Since {
		t.Errorf("%+v", d.Orders)
	} else if d.Orders[0].Since = want.Since; d.Orders[0] != want {
		t.Errorf("%+v, want %+v", d.Orders[0], want)
	}
}
