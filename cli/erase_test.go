package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

func TestEraseShowsWhatGoesFirst(t *testing.T) {
	t.Parallel()
	s := start(t)
	var asked []bool
	s.mux.HandleFunc("POST /api/v1/erase", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Resource, Event, Source, Reason string
			DryRun                          bool `json:"dry_run"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		asked = append(asked, in.DryRun)
		n := 2
		if in.Event == "unknown" {
			n = 0
		}
		fmt.Fprintf(w, `{"dry_run":%v,"deliveries":%d,"shared":0,"cancelled":%d,"rejections":0,"bytes":%d,"traces":false}`, in.DryRun, n, n/2, n*1024)
	})
	s.run(t, "erase").want(t, 2, "", "name either --resource or --event")
	s.run(t, "erase", "--resource", "a", "--event", "b").want(t, 2, "", "name either --resource or --event")
	s.run(t, "erase", "--event", "unknown", "--yes").want(t, 0, "", "nothing is kept of it")
	asked = nil
	s.run(t, "erase", "--resource", "cus_1", "--dry-run").want(t, 0, "2 deliveries, 2 KiB; 1 unfinished or dead jobs end as cancelled\n")
	if len(asked) != 1 || !asked[0] {
		t.Errorf("a dry run asked %v", asked)
	}
	s.run(t, "erase", "--resource", "cus_1").want(t, 2, "") // nobody to ask
	asked = nil
	s.run(t, "erase", "--resource", "cus_1", "--yes").want(t, 0, "erased: 2 deliveries, 2 KiB; 1 unfinished or dead jobs end as cancelled\n", "backups made before still hold it")
	if len(asked) != 2 || !asked[0] || asked[1] {
		t.Errorf("asked %v, want a preview and then the act", asked)
	}
}
