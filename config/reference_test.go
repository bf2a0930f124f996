package config

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/config.md anew")

const reference = "../docs/reference/config.md"

// TestReference holds docs/reference/config.md to the struct: go generate writes it.
func TestReference(t *testing.T) {
	want := makeReference(t)
	if *update {
		if err := os.WriteFile(reference, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the struct says: run go generate ./config", reference)
	}
}

// The keys of the language as the design lists them, so that none is lost.
var designKeys = strings.Fields(`
	data_dir store listen public_url admin admin.listen sources destinations effects alerts alerts[].url
	name language retention dead_retention min_free egress trusted_proxies base_path agents agents.listen tls backup log
	sources.NAME.provider sources.NAME.secrets sources.NAME.more_secrets sources.NAME.deliver_to sources.NAME.params
	sources.NAME.id sources.NAME.dedup_window sources.NAME.max_body sources.NAME.tolerance sources.NAME.reject_status
	sources.NAME.response sources.NAME.filter sources.NAME.batch sources.NAME.unsigned sources.NAME.auth sources.NAME.type
	sources.NAME.resource sources.NAME.allow_ips sources.NAME.test_events sources.NAME.duplicates_of_dead sources.NAME.mask
	sources.NAME.public_url sources.NAME.rate sources.NAME.key_name
	destinations.NAME.url destinations.NAME.exec destinations.NAME.pull destinations.NAME.pull.lease destinations.NAME.method
	destinations.NAME.headers destinations.NAME.signature destinations.NAME.secret destinations.NAME.idempotency_header
	destinations.NAME.timeout destinations.NAME.concurrency destinations.NAME.rate destinations.NAME.retry
	destinations.NAME.retry.schedule destinations.NAME.retry.jitter destinations.NAME.retry.give_up_on
	destinations.NAME.hard_limit destinations.NAME.max_age destinations.NAME.filter destinations.NAME.order_by
	destinations.NAME.strict destinations.NAME.latest_only destinations.NAME.key_name destinations.NAME.dir
	destinations.NAME.user destinations.NAME.env
	effects.NAME.base_url effects.NAME.headers effects.NAME.allow effects.NAME.listen effects.NAME.keys effects.NAME.pass
	effects.NAME.forward_headers effects.NAME.fingerprint_headers effects.NAME.upstream_key_header
	effects.NAME.upstream_key_life effects.NAME.on_5xx effects.NAME.expiry effects.NAME.probe effects.NAME.limit
	effects.NAME.approval effects.NAME.approval_timeout effects.NAME.timeout effects.NAME.max_body effects.NAME.replies`)

func TestEveryKeyOfTheDesignIsKnown(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	walk(reflect.TypeFor[Config](), func(path string, _ reflect.Type, _ reflect.StructField) { known[path] = true })
	for _, key := range designKeys {
		if !known[key] {
			t.Errorf("%s is not known", key)
		}
	}
}

// TestTagsCanBeRead sets every default and compares with every limit once, which
// panics or fails for a tag with a slip in it.
func TestTagsCanBeRead(t *testing.T) {
	t.Parallel()
	walk(reflect.TypeFor[Config](), func(path string, _ reflect.Type, f reflect.StructField) {
		typ := f.Type
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		v := reflect.New(typ).Elem()
		if typ.Kind() == reflect.Struct && !setters[typ] {
			setDefaults(v)
			return
		}
		if typ.Kind() == reflect.Slice {
			v = reflect.New(typ.Elem()).Elem()
		}
		for _, tag := range []string{"default", "min", "max"} {
			for _, w := range strings.Fields(f.Tag.Get(tag)) {
				if err := setScalar(v, w); err != nil {
					t.Errorf("%s: tag %s: %v", path, tag, err)
				} else if err := checkTags(v, f.Tag); err != nil {
					t.Errorf("%s: tag %s: %v", path, tag, err)
				}
			}
		}
	})
}

func makeReference(t *testing.T) []byte {
	t.Helper()
	comments := fieldComments(t)
	var b bytes.Buffer
	b.WriteString(referenceHead)
	walk(reflect.TypeFor[Config](), func(path string, owner reflect.Type, f reflect.StructField) {
		comment := comments[owner.Name()+"."+f.Name]
		if comment == "" {
			t.Errorf("%s has no comment", path)
		}
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", path, comment)
		if facts := facts(f); facts != "" {
			fmt.Fprintf(&b, "\n%s\n", facts)
		}
	})
	return b.Bytes()
}

func facts(f reflect.StructField) string {
	var out []string
	if w := f.Tag.Get("oneof"); w != "" {
		out = append(out, "One of `"+strings.ReplaceAll(w, "|", "`, `")+"`.")
	}
	if d := f.Tag.Get("default"); d != "" {
		if f.Type.Kind() == reflect.Slice {
			d = "[" + strings.Join(strings.Fields(d), ", ") + "]"
		}
		out = append(out, "Default: `"+d+"`.")
	}
	if lo, hi := f.Tag.Get("min"), f.Tag.Get("max"); lo != "" {
		out = append(out, fmt.Sprintf("From `%s` to `%s`.", lo, hi))
	}
	if f.Tag.Get("later") != "" {
		out = append(out, "Not supported by this version yet: a file that sets it is refused.")
	}
	return strings.Join(out, " ")
}

// fieldComments are the comments of all fields of config.go: "Source.Provider".
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		typ, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := typ.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				out[typ.Name.Name+"."+f.Names[0].Name] = strings.ReplaceAll(strings.TrimSpace(f.Doc.Text()), "\n", " ")
			}
		}
		return false
	})
	return out
}

const referenceHead = `# Configuration: every key

Made from the struct in ` + "`config/config.go`" + ` by ` + "`go generate ./config`" + `; a test holds it to the code.

The file is ` + "`acuse.yaml`" + `, or what ` + "`acuse serve --config FILE`" + ` names. It is read strictly: an unknown key, a key given
twice, a value of another kind or out of range stops ` + "`acuse check`" + ` and ` + "`acuse serve`" + `, which show the line with its values
hidden. acuse never changes the file.

- ` + "`${NAME}`" + ` in a value reads the environment; a variable that is missing or empty is an error. ` + "`$${`" + ` stands for the
  characters ` + "`${`" + `.
- A value that begins with ` + "`file:`" + ` is read from that file, less one line end.
- Paths are relative to the config file.
- Durations are written ` + "`30s`, `15m`, `2h`, `7d`" + `; sizes ` + "`512KiB`, `2GiB`" + ` (binary) or ` + "`500KB`, `2GB`" + ` (decimal).
- ` + "`DATA/conf.d/*.yaml`" + ` is read after the file, in the same language: sources and destinations, mode 0600. A name in both is
  an error, except that a file there may hold ` + "`more_secrets`" + ` alone for a source of the config file.

These variables win over the file: ` + "`ACUSE_LISTEN`, `ACUSE_DATA_DIR`, `ACUSE_STORE`, `ACUSE_ADMIN_LISTEN`, `ACUSE_LANG`" + `.
` + "`ACUSE_ADMIN_TOKEN`" + ` is a token of the API with every scope but approve; ` + "`ACUSE_ADMIN_PASSWORD_FILE`" + ` names a file with the
password of the first owner.

## Keys

NAME stands for a name of your own: 1 to 64 of ` + "`A-Z a-z 0-9 _ . -`" + `, a letter or digit first.
`
