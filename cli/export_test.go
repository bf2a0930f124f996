package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExportIsWholeOrSaysThatItIsNot(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.mux.HandleFunc("GET /api/v1/export", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Query().Get("format")+" "+r.URL.Query().Get("source")+"\n")
		if r.URL.Query().Get("source") == "cut" {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	s.run(t, "export").want(t, 0, "jsonl \n")
	s.run(t, "export", "--format", "csv", "--source", "stripe").want(t, 0, "csv stripe\n")
	s.run(t, "export", "--format", "xml").want(t, 2, "", "--format is jsonl or csv")
	s.run(t, "export", "--source", "cut").want(t, 1, "jsonl cut\n", "the export is not whole")
}

func TestImportSaysWhatItDid(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.mux.HandleFunc("POST /api/v1/import", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Error(err, r.Header)
		}
		answer := `{"imported":2,"renumbered":1,"duplicates":3,"cancelled":1,"lines":5,"error":""}`
		if strings.Contains(string(b), "bad") {
			answer = `{"imported":1,"renumbered":0,"duplicates":0,"cancelled":0,"lines":2,"error":"line 2: not valid"}`
		}
		if r.URL.Query().Get("requeue") == "true" {
			answer = `{"imported":7,"renumbered":0,"duplicates":0,"cancelled":0,"lines":7,"error":""}`
		}
		_, _ = io.WriteString(w, answer)
	})
	file := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(t, "import", file).want(t, 0, "2 imported, 1 of them under a new number, 3 known already\n", "1 unfinished jobs ended as cancelled")
	s.run(t, "import", file, "--requeue").want(t, 0, "7 imported, 0 of them under a new number, 0 known already\n")
	s.run(t, "import", filepath.Join(t.TempDir(), "none")).want(t, 3, "", "none")
	call(t, Options{Env: []string{"ACUSE_DATA_DIR=" + s.dir}, Stdin: strings.NewReader("bad\n")}, "import", "-").
		want(t, 5, "1 imported, 0 of them under a new number, 0 known already\n", "the import stopped at line 2: not valid", "mend the line")
}
