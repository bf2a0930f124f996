package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"acuse/config"
	"acuse/store"
)

func TestBothLanguagesHaveTheSameWords(t *testing.T) {
	t.Parallel()
	gap := regexp.MustCompile(`%[a-zA-Z]`)
	for key, en := range english {
		es, ok := spanish[key]
		if !ok {
			t.Errorf("%s is not in Spanish", key)
			continue
		}
		if e, s := strings.Join(gap.FindAllString(en, -1), " "), strings.Join(gap.FindAllString(es, -1), " "); e != s {
			t.Errorf("%s: gaps %q and %q", key, e, s)
		}
	}
	for key := range spanish {
		if _, ok := english[key]; !ok {
			t.Errorf("%s is not in English", key)
		}
	}
}

func TestEveryWordThatIsUsedIsThere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	use := regexp.MustCompile(`\ba(?:pp)?\.(w|f|n)\("([a-z_.0-9]+)"[,)]`)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range use.FindAllStringSubmatch(string(b), -1) {
			keys := []string{m[2]}
			if m[1] == "n" {
				keys = []string{m[2] + ".one", m[2] + ".other"}
			}
			for _, key := range keys {
				if _, ok := english[key]; !ok {
					t.Errorf("%s: no word %s", file, key)
				}
			}
		}
	}
}

func TestEveryCommandShowsTwoExamplesFirst(t *testing.T) {
	t.Parallel()
	lang := ""
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Name() == "completion" { // of cobra's own
			return
		}
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if len(lines) < 4 || !strings.HasPrefix(lines[0], "  acuse ") || !strings.HasPrefix(lines[1], "  acuse ") || lines[2] != "" {
			t.Errorf("%s: %q", c.CommandPath(), out.String()[:min(120, out.Len())])
		}
		if lang == "es" {
			for _, word := range []string{"Usage", "Flags", "Examples", "help for", "Available", "default", "Use \"", "for more"} {
				if strings.Contains(out.String(), word) {
					t.Errorf("%s: %q in the Spanish help", c.CommandPath(), word)
				}
			}
		}
		if strings.Contains(out.String(), "[cmd.") || strings.Contains(out.String(), "[flag.") {
			t.Errorf("%s: a word is missing", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	for _, lang = range []string{"en", "es"} {
		visit(New(Options{Env: []string{"ACUSE_LANG=" + lang}}))
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "en"},
		{map[string]string{"LANG": "es_AR.UTF-8"}, "es"},
		{map[string]string{"LANG": "es_ES", "LC_ALL": "C"}, "en"},
		{map[string]string{"LANG": "en_US", "LC_ALL": "es_MX"}, "es"},
		{map[string]string{"LANG": "es_ES", "LC_ALL": "es_ES", "ACUSE_LANG": "en"}, "en"},
		{map[string]string{"ACUSE_LANG": "es"}, "es"},
	} {
		if got := Language(c.env); got != c.want {
			t.Errorf("%v: %s", c.env, got)
		}
	}
}

func TestExitCodesOfWrongUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"lst"}, `unknown command "lst"; did you mean "list"?`},
		{[]string{"list", "--stat", "dead"}, "unknown flag: --stat"},
		{[]string{"list", "extra"}, "the arguments do not fit"},
		{[]string{"show"}, "the arguments do not fit: acuse show DELIVERY"},
		{[]string{"token", "mint"}, `unknown command "mint"`},
		{[]string{"list", "--since", "yesterday"}, "--since is no time"},
		{[]string{"list", "--limit", "0"}, "--limit is at least 1"},
		{[]string{"resend"}, "name deliveries, or filter them"},
		{[]string{"resend", "--destination", "app"}, "name deliveries, or filter them"},
		{[]string{"resend", "1", "--state", "dead"}, "not both"},
		{[]string{"token", "create", "ci"}, "name at least one --scope"},
		{[]string{"release"}, "name deliveries, or a source"},
		{[]string{"user", "add", "ana"}, "no password on standard input"},
	} {
		r := call(t, Options{}, c.args...)
		if r.code != 2 || !strings.Contains(r.err, c.want) || !strings.HasPrefix(r.err, "acuse: ") || !strings.Contains(r.err, "\n  help: acuse") {
			t.Errorf("%v: exit %d, %q", c.args, r.code, r.err)
		}
		if r.out != "" {
			t.Errorf("%v prints %q on standard output", c.args, r.out)
		}
	}
}

func TestNotRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{{"list"}, {"status"}, {"show", "1"}, {"body", "1"}, {"tail"}, {"resend", "1"}, {"cancel", "1"}, {"dead"}, {"rejections"},
		{"release", "1"}, {"test", "stripe"}, {"token", "list"}, {"user", "list"}, {"setup-link"}, {"backup", filepath.Join(dir, "new")}, {"health"}} {
		r := call(t, Options{Env: []string{"ACUSE_DATA_DIR=" + dir}}, args...)
		r.want(t, 4, "", "acuse: acuse is not running (no socket in "+dir+"). Start it with: acuse serve\n")
	}
	long := filepath.Join(dir, strings.Repeat("long/", 30)) // a socket has no room there
	call(t, Options{Env: []string{"ACUSE_DATA_DIR=" + long}}, "status").want(t, 4, "", "acuse: acuse is not running (no socket in "+long)
	call(t, Options{Env: []string{"ACUSE_DATA_DIR=" + dir, "LC_ALL=es_ES.UTF-8"}}, "list").want(t, 4, "", "acuse no está en marcha (no hay socket en "+dir)
}

func TestTheSocketIsFound(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /readyz", 200, `{"status":"ready"}`)
	conf := filepath.Join(t.TempDir(), "acuse.yaml")
	if err := os.WriteFile(conf, []byte("data_dir: "+s.dir+"\nsources: {a: {secrets: [\"${NOT_HERE}\"]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, Options{}, "health", "--config", conf).want(t, 0, "well: events are taken\n")
	call(t, Options{}, "health", "--data-dir", s.dir).want(t, 0, "well: events are taken\n")
	call(t, Options{Env: []string{"ACUSE_DATA_DIR=/nowhere"}}, "health", "--data-dir", s.dir).want(t, 0, "well: events are taken\n")
	elsewhere := t.TempDir() // a data folder whose socket lies in another place
	if err := os.WriteFile(filepath.Join(elsewhere, "socket"), []byte(filepath.Join(s.dir, "acuse.sock")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, Options{Env: []string{"ACUSE_DATA_DIR=" + elsewhere}}, "health").want(t, 0, "well: events are taken\n")
}

func TestHealthIsBad(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.answer("GET /readyz", 503, problemOf("storage", "Service Unavailable", "free space is under the floor"))
	s.run(t, "health").want(t, 1, "", "acuse: storage does not take writes now\n  free space, then see: acuse status\n")
}

func TestServeChecksWhatItStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := filepath.Join(dir, "acuse.yaml")
	if err := os.WriteFile(conf, []byte("sources:\n  stripe:\n    provider: stripe\n    secret: whsec_SECRET\n    deliver_to: [app]\ndestinations:\n  app: {pull: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Serve: func(context.Context, ServeOptions) error { t.Error("it serves"); return nil }}
	for _, args := range [][]string{{"serve", "--config", conf}, {"check", "--config", conf}, {"config", "show", "--config", conf}} {
		r := call(t, o, args...)
		r.want(t, 1, "", `acuse: `+conf+`:4: sources.stripe.secret: unknown key; did you mean "secrets"?`, "     4 |     secret: …", "\n  fix the line and run: acuse check\n")
		if strings.Contains(r.err, "SECRET") {
			t.Errorf("%v tells a value: %s", args, r.err)
		}
	}
	call(t, o, "serve", "--config", filepath.Join(dir, "none.yaml")).want(t, 3, "", "none.yaml is not there")
}

func TestServeTellsWhoHasTheFolder(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "acuse.yaml")
	if err := os.WriteFile(conf, []byte("sources: {a: {unsigned: true, deliver_to: [b]}}\ndestinations: {b: {pull: {}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err        error
		lang, want string
	}{
		{&store.Locked{Dir: "/data", Process: "4711"}, "en", "acuse: the data folder /data is in use by another acuse (process id 4711)\n  stop that one first, or give this one a folder of its own: acuse serve --data-dir FOLDER\n"},
		{fmt.Errorf("open: %w", &store.Locked{Dir: "/data"}), "es", "acuse: la carpeta de datos /data la usa otro programa\n  detener primero ese otro, o dar a este una carpeta propia: acuse serve --data-dir CARPETA\n"},
	} {
		o := Options{Env: []string{"ACUSE_LANG=" + c.lang}, Serve: func(context.Context, ServeOptions) error { return c.err }}
		if r := call(t, o, "serve", "--config", conf); r.code != 1 || !strings.HasSuffix(r.err, "\n"+c.want) {
			t.Errorf("%d %q, want %q", r.code, r.err, c.want)
		}
	}
}

func TestServeHandsOverWhatItRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := filepath.Join(dir, "acuse.yaml")
	if err := os.WriteFile(conf, []byte("sources: {a: {unsigned: true, deliver_to: [b]}}\ndestinations: {b: {pull: {}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	served := false
	o := Options{
		Serve: func(_ context.Context, s ServeOptions) error {
			served = true
			if s.FirstRun || s.Config.DataDir != filepath.Join(dir, "state") || s.Language != "es" {
				t.Errorf("%+v", s)
			}
			again, _, err := s.Load()
			if err != nil || again.Sources["a"] == nil {
				t.Errorf("read again: %v", err)
			}
			return nil
		},
		Check: func(c *config.Config) ([]config.Warning, config.Problems) {
			return []config.Warning{{Problem: c.Problem("sources.a", "looked at")}}, nil
		},
		Env: []string{"ACUSE_LANG=es"},
	}
	call(t, o, "serve", "--config", conf, "--data-dir", filepath.Join(dir, "state")).want(t, 0, "", "aviso: "+conf+":1: sources.a: looked at")
	if !served {
		t.Error("it did not serve")
	}
	call(t, o, "check", "--config", conf).want(t, 0, conf+": todo bien: 1 fuente, 1 destino\n")
	o.Check = func(c *config.Config) ([]config.Warning, config.Problems) {
		return nil, config.Problems{c.Problem("sources.a.provider", "there is no such provider")}
	}
	call(t, o, "check", "--config", conf).want(t, 1, "", conf+":1: sources.a.provider: there is no such provider")
}

func TestTheFirstRunWritesACommentedFileOnce(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	a := newApp(Options{Stderr: &errs, Env: []string{"LANG=es"}})
	a.configFile = filepath.Join(t.TempDir(), "acuse.yaml")
	first, load, err := a.firstRun(false)
	if err != nil || !first {
		t.Fatal(first, err)
	}
	b, err := os.ReadFile(a.configFile)
	if err != nil || !bytes.Equal(b, config.Example("es")) {
		t.Errorf("written: %v, %s", err, b)
	}
	if _, _, err := load(); err != nil {
		t.Errorf("what it wrote is not valid: %v", err)
	}
	if err := os.WriteFile(a.configFile, []byte("name: mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, load, err = a.firstRun(false)
	if c, _, lerr := load(); first || err != nil || lerr != nil || c.Name != "mine" {
		t.Errorf("a file that is there: first %v, %v, %v", first, err, lerr)
	}
	a.configFile = filepath.Join(t.TempDir(), "no", "such", "folder", "acuse.yaml")
	first, load, err = a.firstRun(false)
	if c, _, lerr := load(); !first || err != nil || lerr != nil || c.Listen != ":8080" {
		t.Errorf("where nothing can be written: first %v, %v, %v", first, err, lerr)
	}
}

func TestVersionAndConfigShow(t *testing.T) {
	t.Parallel()
	r := call(t, Options{Version: "1.2.0", Commit: "0123456789abcdef"}, "version")
	if r.code != 0 || !strings.HasPrefix(r.out, "acuse 1.2.0 (0123456789ab), go1.") {
		t.Errorf("%+v", r)
	}
	conf := filepath.Join(t.TempDir(), "acuse.yaml")
	if err := os.WriteFile(conf, []byte("sources: {a: {provider: x, secrets: [SECRET], deliver_to: [b]}}\ndestinations: {b: {pull: {}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"config", "show", "--config", conf}, {"config", "show", "--json", "--config", conf}} {
		r := call(t, Options{}, args...)
		if r.code != 0 || strings.Contains(r.out, "SECRET") || !strings.Contains(r.out, "[hidden]") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestConfigExampleIsTheFirstFile(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{"en", "es"} {
		call(t, Options{Env: []string{"LANG=" + lang}}, "config", "example").want(t, 0, string(config.Example(lang)))
	}
}

func TestHelpOfACommandByItsName(t *testing.T) {
	t.Parallel()
	flag, word := call(t, Options{}, "source", "capture", "-h"), call(t, Options{}, "help", "source", "capture")
	if flag.code != 0 || word.code != 0 || flag.out != word.out || !strings.Contains(flag.out, "--confirm") {
		t.Errorf("%+v\n%+v", flag, word)
	}
	call(t, Options{}, "help", "resned").want(t, 2, "", `unknown command "resned"; did you mean "resend"?`)
}
