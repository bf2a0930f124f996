package provider

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

//go:embed catalogue/*.json
var embedded embed.FS

// Catalogue is a set of providers by name.
type Catalogue struct {
	byName map[string]*Provider
}

// Embedded is the catalogue that comes with the binary.
func Embedded() (*Catalogue, error) {
	dir, err := fs.Sub(embedded, "catalogue")
	if err != nil {
		return nil, err
	}
	c, err := Load(dir)
	if err != nil {
		return nil, err
	}
	for name, p := range c.byName {
		p.embedded = true
		if p.samples, err = readSamples(samples, name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// FileError is what is wrong with one file of a folder; Err names the field.
type FileError struct {
	File string // within the folder
	Err  error
}

func (e *FileError) Error() string { return e.File + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// Load reads every *.json of the folder, and samples from its folder samples/NAME. An unknown field, kind or filter is an error
// that names file and field; all broken files are reported at once, each a *FileError.
func Load(dir fs.FS) (*Catalogue, error) {
	names, err := fs.Glob(dir, "*.json")
	if err != nil {
		return nil, err
	}
	c := &Catalogue{byName: map[string]*Provider{}}
	var errs []error
	for _, name := range names {
		b, err := fs.ReadFile(dir, name)
		if err == nil {
			var p *Provider
			if p, err = parse(strings.TrimSuffix(path.Base(name), ".json"), b); err == nil {
				c.byName[p.Name] = p
				if p.samples, err = readSamples(dir, p.Name); err == nil {
					continue
				}
			}
		}
		errs = append(errs, &FileError{name, err})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// With gives a catalogue that holds the providers of both; those of more win.
func (c *Catalogue) With(more *Catalogue) *Catalogue {
	out := &Catalogue{byName: maps.Clone(c.byName)}
	maps.Copy(out.byName, more.byName)
	return out
}

// Get finds a provider by name.
func (c *Catalogue) Get(name string) (*Provider, bool) { p, ok := c.byName[name]; return p, ok }

// Names lists the providers in order of name.
func (c *Catalogue) Names() []string { return slices.Sorted(maps.Keys(c.byName)) }

// Provider is one file of the catalogue, its templates compiled.
type Provider struct {
	Name     string
	Title    string
	file     *file
	auth     plan
	shakes   []*handshake
	answers  []answer
	test     *match
	key      []*template
	types    []*template
	resource []*template
	versions []*template
	batch    []*batchRule
	warnings []string
	samples  map[string]sampleFile // by type
	embedded bool                  // of the binary, not a user's own
}

// parse reads one file whose name must be the provider's.
func parse(name string, b []byte) (*Provider, error) {
	f := new(file)
	if err := strict("", bytes.TrimSpace(b), f); err != nil {
		return nil, err
	}
	if f.Name != name {
		return nil, at("name", "%q is not the name of the file", f.Name)
	}
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || name == "" {
		return nil, at("name", "want lower case letters, digits and hyphens")
	}
	p := &Provider{Name: name, Title: f.Title, file: f}
	if p.Title == "" {
		p.Title = name
	}
	return p, p.compile()
}

func (p *Provider) compile() (err error) {
	f := p.file
	if p.auth, err = parseAuth("auth", &f.Auth); err != nil {
		return err
	}
	var alternates []*template
	lists := []struct {
		path string
		text texts
		to   *[]*template
	}{{"id.key", f.ID.Key, &p.key}, {"type", f.Type, &p.types}, {"resource", f.Resource, &p.resource},
		{"id.alternates", slices.Collect(maps.Values(f.ID.Alternates)), &alternates}}
	if f.Version != nil {
		lists = append(lists, struct {
			path string
			text texts
			to   *[]*template
		}{"version.key", f.Version.Key, &p.versions})
		if err := unit("version.unit", f.Version.Unit); err != nil {
			return err
		}
	}
	for _, l := range lists {
		if *l.to, err = parseTemplates(l.path, l.text, inIdentity); err != nil {
			return err
		}
	}
	for i := range f.Batch {
		b, err := parseBatch(numbered("batch", i, len(f.Batch)), &f.Batch[i])
		if err != nil {
			return err
		}
		p.batch = append(p.batch, b)
	}
	for i := range f.Handshake {
		h, err := parseHandshake(numbered("handshake", i, len(f.Handshake)), &f.Handshake[i],
			func(w string) { p.warnings = append(p.warnings, w) })
		if err != nil {
			return err
		}
		p.shakes = append(p.shakes, h)
	}
	if p.answers, err = parseResponse("response", f.Response); err != nil {
		return err
	}
	if f.Test != nil {
		p.test, err = compileMatch("test", f.Test)
	}
	return err
}

func numbered(path string, i, n int) string {
	if n < 2 {
		return path
	}
	return fmt.Sprintf("%s[%d]", path, i)
}

func unit(path, u string) error {
	switch u {
	case "s", "ms", "rfc3339", "int", "string":
		return nil
	}
	return at(path, "unknown unit %q", u)
}

// TitleIn is the title in a language: "en", "es". Most are names, the same in both.
func (p *Provider) TitleIn(lang string) string {
	if lang == "es" && p.file.TitleES != "" {
		return p.file.TitleES
	}
	return p.Title
}

// Warnings are the conditions of handshakes that this version does not know: they count
// as not met.
func (p *Provider) Warnings() []string { return p.warnings }

// Params are the names of the {param:…} values that the file reads, sorted.
func (p *Provider) Params() []string {
	set := map[string]bool{}
	add := func(ph *placeholder) {
		if ph.src == srcParam {
			set[ph.arg] = true
		}
	}
	p.auth.each(add)
	for _, h := range p.shakes {
		h.each(add)
		if h.from != nil {
			add(h.from.placeholder)
		}
	}
	for _, list := range [][]*template{p.key, p.types, p.resource, p.versions} {
		for _, t := range list {
			t.each(add)
		}
	}
	return slices.Sorted(maps.Keys(set))
}
