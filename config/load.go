package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// DefaultFile is the config file that is read when none is named.
const DefaultFile = "acuse.yaml"

// Load reads the file at path, then the environment (as os.Environ gives it), then
// the files of DATA/conf.d, and checks the whole. The error is Problems, all of them
// at once, or says why the file cannot be read (fs.ErrNotExist where it is not
// there). Neither problems nor warnings hold a value of the files.
func Load(path string, env []string) (*Config, []Warning, error) {
	text, err := readBounded(path)
	if err != nil {
		return nil, nil, fmt.Errorf("config: %w", err)
	}
	return load(path, text, environment(env), openFile)
}

// load is Load over the file's text. open nil: no other file is read.
func load(path string, text []byte, env map[string]string, open func(string) (io.ReadCloser, error)) (*Config, []Warning, error) {
	var problems Problems
	c := &Config{file: path, lines: map[string]position{}}
	setDefaults(reflect.ValueOf(c).Elem())
	r := &reader{file: path, dir: filepath.Dir(path), env: env, open: open, problems: &problems, lines: c.lines}
	if m := r.parseYAML(text); m != nil {
		r.fields(m, reflect.ValueOf(c).Elem(), "")
	}
	c.DataDir = r.beside(c.DataDir)
	if c.Backup != nil && c.Backup.Dir != "" {
		c.Backup.Dir = r.beside(c.Backup.Dir)
	}
	warnings := r.override(c, env)
	if open != nil {
		r.confD(c)
	}
	for _, d := range c.Destinations {
		r.placeExec(d)
	}
	if !problems.broken() { // a file that stopped half way would seem to lack what follows
		warnings = append(warnings, c.check(&problems)...)
	}
	if c.Backup != nil && c.Backup.Dir == "" {
		c.Backup.Dir = filepath.Join(c.DataDir, "backups")
	}
	if len(problems) > 0 {
		problems.sort()
		return nil, warnings, problems
	}
	return c, warnings, nil
}

// placeExec makes the paths of an exec destination absolute: they start where the config
// file lies.
func (r *reader) placeExec(d *Destination) {
	if d == nil || len(d.Exec) == 0 {
		return
	}
	abs := func(name string) string {
		name = r.beside(name)
		if whole, err := filepath.Abs(name); err == nil {
			return whole
		}
		return name
	}
	if strings.Contains(d.Exec[0], "/") {
		d.Exec[0] = abs(d.Exec[0])
	}
	d.Dir = abs(d.Dir)
}

// broken tells whether a file is not YAML at all.
func (ps Problems) broken() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Path == "" && p.Line > 0 })
}

func environment(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}

// overrides are the variables that win over the file, and the keys they set.
var overrides = map[string]string{
	"ACUSE_LISTEN": "listen", "ACUSE_DATA_DIR": "data_dir", "ACUSE_STORE": "store",
	"ACUSE_ADMIN_LISTEN": "admin.listen", "ACUSE_LANG": "language",
	"ACUSE_ADMIN_TOKEN": "", "ACUSE_ADMIN_PASSWORD_FILE": "",
}

func (r *reader) override(c *Config, env map[string]string) (warnings []Warning) {
	set := map[string]*string{
		"ACUSE_LISTEN": &c.Listen, "ACUSE_DATA_DIR": &c.DataDir, "ACUSE_STORE": &c.Store,
		"ACUSE_ADMIN_LISTEN": &c.Admin.Listen, "ACUSE_LANG": &c.Language,
		"ACUSE_ADMIN_TOKEN": (*string)(&c.AdminToken), "ACUSE_ADMIN_PASSWORD_FILE": &c.AdminPasswordFile,
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if p, ok := set[name]; ok && env[name] != "" {
			*p = env[name]
			if key := overrides[name]; key != "" {
				r.lines[key] = position{file: name}
			}
			continue
		}
		if near := Nearest(name, slices.Collect(maps.Keys(set))); strings.HasPrefix(name, "ACUSE_") && near != "" && near != name {
			warnings = append(warnings, Warning{Problem{File: name, Text: fmt.Sprintf("unknown variable; did you mean %s?", near)}})
		}
	}
	if c.Language != "" && env["ACUSE_LANG"] != "" {
		c.Language = strings.ToLower(c.Language[:min(2, len(c.Language))]) // es_AR.UTF-8
	}
	return warnings
}

// confD reads what people made in the browser: DATA/conf.d/*.yaml.
func (r *reader) confD(c *Config) {
	dir := filepath.Join(c.DataDir, "conf.d")
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !os.IsNotExist(err) {
			r.add(position{file: dir}, "", "cannot be read: %v", bare(err))
		}
		return
	}
	for _, e := range entries { // in order of name
		if name := filepath.Join(dir, e.Name()); filepath.Ext(name) == ".yaml" && !strings.HasPrefix(e.Name(), ".") {
			r.confFile(c, name)
		}
	}
}

func (r *reader) confFile(c *Config, name string) {
	info, err := os.Stat(name)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		r.add(position{file: name}, "", "mode %04o lets others read its secrets: chmod 600", info.Mode().Perm())
		return
	}
	text, err := readBounded(name)
	if err != nil {
		r.add(position{file: name}, "", "cannot be read: %v", bare(err))
		return
	}
	part := &reader{file: name, dir: r.dir, env: r.env, open: r.open, problems: r.problems, lines: map[string]position{}}
	var made struct {
		Sources      map[string]*Source      `yaml:"sources"`
		Destinations map[string]*Destination `yaml:"destinations"`
	}
	if m := part.parseYAML(text); m != nil {
		part.fields(m, reflect.ValueOf(&made).Elem(), "")
	}
	c.Sources = part.merge(c.Sources, made.Sources, "sources", r.lines)
	for n, d := range made.Destinations {
		at := "destinations." + shown(n)
		if _, ok := c.Destinations[n]; ok {
			part.twice(at, r.lines)
			continue
		}
		if c.Destinations == nil {
			c.Destinations = map[string]*Destination{}
		}
		c.Destinations[n] = d
	}
	for at, pos := range part.lines {
		if _, ok := r.lines[at]; !ok {
			r.lines[at] = pos
		}
	}
}

// merge adds the sources of a conf.d file. One that is there already may bring
// more_secrets and nothing else.
func (r *reader) merge(into, made map[string]*Source, path string, known map[string]position) map[string]*Source {
	if into == nil {
		into = map[string]*Source{}
	}
	for _, n := range slices.Sorted(maps.Keys(made)) {
		at, s := path+"."+shown(n), made[n]
		there, ok := into[n]
		switch only := r.only(at, "more_secrets"); {
		case ok && only:
			there.Secrets.Values = append(there.Secrets.Values, s.MoreSecrets...)
			there.Secrets.Capture = there.Secrets.Capture && len(s.MoreSecrets) == 0
		case ok:
			r.twice(at, known)
		case only && len(s.MoreSecrets) > 0:
			r.wrong(at, "there is no such source; remove this file, or name the source as before")
		default:
			s.Secrets.Values = append(s.Secrets.Values, s.MoreSecrets...)
			s.Secrets.Capture = s.Secrets.Capture && len(s.MoreSecrets) == 0
			into[n] = s
		}
	}
	return into
}

// only tells whether the entry at path holds that key and no other.
func (r *reader) only(path, key string) bool {
	for at := range r.lines {
		if rest, ok := strings.CutPrefix(at, path+"."); ok && rest != key && !strings.HasPrefix(rest, key+"[") {
			return false
		}
	}
	return true
}

func (r *reader) twice(at string, known map[string]position) {
	first := known[at]
	r.wrong(at, "the name is taken in %s:%d; remove one of the two", first.file, first.line)
}

// readBounded reads a file of at most maxConfig bytes and one more.
func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // was only read
	return io.ReadAll(io.LimitReader(f, maxConfig+1))
}

// Defaults is the configuration of a machine without a config file: what the
// environment says, and path as the place that relative paths start from.
func Defaults(path string, env []string) (*Config, []Warning, error) {
	return load(path, nil, environment(env), openFile)
}

// DataDir is the data folder that the file at path names, or the environment, or
// the default: for commands that talk to a running server and need nothing else of
// the file, least of all the secrets that it takes from the server's environment.
func DataDir(path string, env []string) string {
	vars := environment(env)
	if dir := vars["ACUSE_DATA_DIR"]; dir != "" {
		return dir
	}
	var ignored Problems
	c := &Config{lines: map[string]position{}}
	setDefaults(reflect.ValueOf(c).Elem())
	r := &reader{file: path, dir: filepath.Dir(path), env: vars, open: openFile, problems: &ignored, lines: c.lines}
	if text, err := readBounded(path); err == nil {
		if m := r.parseYAML(text); m != nil {
			r.keys(m, "", func(key, at string, n ast.Node) {
				if key == "data_dir" {
					r.scalar(n, reflect.ValueOf(&c.DataDir).Elem(), "", at)
				}
			})
		}
	}
	return r.beside(c.DataDir)
}
