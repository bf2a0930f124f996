package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"acuse/scripts/tools/load"
)

// TestBothEnginesCarryTheMainJob: the path of an event and a restart in between, over
// each engine; and no engine begins an archive beside the other one's.
func TestBothEnginesCarryTheMainJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ engine, file, other string }{{"sqlite", "acuse.db", "bbolt"}, {"bbolt", "acuse.bolt", "sqlite"}} {
		t.Run(c.engine, func(t *testing.T) {
			t.Parallel()
			app := newApp(t, nil)
			yaml := stripe("app") + "destinations:\n" + destination("app", app.URL)
			p := begin(t, "store: "+c.engine+"\n"+yaml)
			body := load.Body("evt_1", time.Now())
			p.post("stripe", body).is(t, 200, `"status":"accepted"`)
			until(t, "the app has the event", func() bool { return app.times("evt_1") > 0 })
			p.api("GET", "/api/v1/status", nil).is(t, 200, `"engine":"`+c.engine+`"`)
			if _, err := os.Stat(filepath.Join(p.Dir, "data", c.file)); err != nil {
				t.Error(err)
			}
			p.Kill()
			p.start()
			p.post("stripe", body).is(t, 200, `"status":"duplicate"`)
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
			p.configure("store: " + c.other + "\n" + yaml)
			if err := p.Start(); err == nil {
				t.Fatal("the other engine began an empty archive")
			}
			if want := "holds the archive of the other engine"; !strings.Contains(p.log(), want) {
				t.Errorf("the log does not say %q", want)
			}
		})
	}
}
