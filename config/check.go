package config

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checker holds the whole to its rules, once every key has its type.
type checker struct {
	c        *Config
	problems *Problems
	warnings []Warning
}

// wrong adds a problem, unless reading the key or something in it failed already.
func (k *checker) wrong(path, format string, args ...any) {
	if slices.ContainsFunc(*k.problems, func(p Problem) bool { return within(p.Path, path) || within(path, p.Path) }) {
		return
	}
	*k.problems = append(*k.problems, k.c.Problem(path, format, args...))
}

func (k *checker) warn(path, format string, args ...any) {
	k.warnings = append(k.warnings, Warning{k.c.Problem(path, format, args...)})
}

// within tells whether path is at or one of its parts.
func within(path, at string) bool {
	rest, ok := strings.CutPrefix(path, at)
	return ok && at != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func (k *checker) given(path string) bool { _, ok := k.c.lines[path]; return ok }

func (c *Config) check(problems *Problems) []Warning {
	k := &checker{c: c, problems: problems}
	k.general()
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		k.source(name, c.Sources[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		k.destination(name, c.Destinations[name])
	}
	for i, a := range c.Alerts {
		if scheme, rest, ok := strings.Cut(string(a.URL), "://"); !ok || scheme == "" || rest == "" {
			k.wrong(fmt.Sprintf("alerts[%d].url", i), `an address is wanted, such as "ntfy://ntfy.sh/my-topic"`)
		}
	}
	k.keyNames()
	return k.warnings
}

func (k *checker) general() {
	c := k.c
	if c.Store != "sqlite" && c.Store != "bbolt" {
		k.wrong("store", "one of sqlite, bbolt is wanted")
	}
	if c.Language != "" && c.Language != "es" && c.Language != "en" {
		k.wrong("language", "one of es, en is wanted")
	}
	if len(c.Name) > 64 || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		k.wrong("name", "at most 64 plain characters are wanted")
	}
	k.listen("listen", c.Listen)
	k.listen("admin.listen", c.Admin.Listen)
	if c.Listen == c.Admin.Listen && !strings.HasSuffix(c.Listen, ":0") {
		k.wrong("admin.listen", "is the same as listen: two ports are needed")
	}
	if !Loopback(c.Admin.Listen) {
		k.warn("admin.listen", "the dashboard is reached from other machines: put a proxy with TLS in front of it")
	}
	k.url("public_url", &c.PublicURL, true)
	if p := c.BasePath; p != "" && (!basePath.MatchString(p) || strings.Contains(p, "..")) {
		k.wrong("base_path", `a path is wanted, such as "/acuse", without / at its end`)
	}
	if n := len(c.AdminToken); n > 0 && n < 16 {
		k.warnings = append(k.warnings, Warning{Problem{File: "ACUSE_ADMIN_TOKEN", Text: "shorter than 16 characters: easy to guess"}})
	}
	if len(c.Sources) == 0 {
		k.warnings = append(k.warnings, Warning{Problem{File: c.file, Path: "sources", Text: "there are none: no event is taken"}})
	}
}

var (
	basePath     = regexp.MustCompile(`^(?:/[A-Za-z0-9_.~-]+)+$`)
	nameForm     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	headerForm   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$") // RFC 9110, section 5.6.2
)

func (k *checker) listen(path, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		k.wrong(path, `an address with a port is wanted, such as ":8080" or "127.0.0.1:8081"`)
	}
}

// Loopback tells whether only this machine reaches a listen address.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// url checks an http address. A base is one that paths are put behind: without
// query, and its last / cut off.
func (k *checker) url(path string, u *URL, base bool) {
	if *u == "" {
		return
	}
	p, err := url.Parse(string(*u))
	switch {
	case err != nil, p.Scheme != "http" && p.Scheme != "https", p.Hostname() == "":
		k.wrong(path, "%v", errURL)
	case p.Fragment != "":
		k.wrong(path, "no # is wanted in an address")
	case base && (p.User != nil || p.RawQuery != "" || p.ForceQuery):
		k.wrong(path, "neither user nor query are wanted here")
	case base:
		*u = URL(strings.TrimRight(string(*u), "/"))
	}
}

func (k *checker) name(path, name string) {
	if !nameForm.MatchString(name) {
		k.wrong(path, "a name has 1 to 64 of A-Z a-z 0-9 _ . - and begins with a letter or digit")
	}
}

func (k *checker) headers(path string, names []string) {
	for _, n := range slices.Sorted(slices.Values(names)) {
		at := path + "." + shown(n)
		switch canon := http.CanonicalHeaderKey(n); {
		case !headerForm.MatchString(n):
			k.wrong(at, "no name of a header")
		case notOurs[canon] || strings.HasPrefix(canon, "Acuse-"):
			k.wrong(at, "acuse sets this header itself")
		}
	}
}

// notOurs are headers that belong to the connection.
var notOurs = map[string]bool{
	"Connection": true, "Content-Length": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

func (k *checker) values(path string, values map[string]string) {
	for n, v := range values {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			k.wrong(path+"."+shown(n), "a line break or another control character cannot stand in a header")
		}
	}
}

// keyNames refuses two sources or two destinations whose idempotency keys would meet.
func (k *checker) keyNames() {
	for kind, names := range map[string]map[string]string{"sources": k.c.sourceKeys(), "destinations": k.c.destinationKeys()} {
		taken := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			key := names[name]
			if first, ok := taken[key]; ok {
				k.wrong(kind+"."+shown(name), "its idempotency keys would be those of %s: give one of them another key_name", shown(first))
			}
			taken[key] = name
		}
	}
}

func (c *Config) sourceKeys() map[string]string {
	m := map[string]string{}
	for n, s := range c.Sources {
		m[n] = s.KeyName
	}
	return m
}

func (c *Config) destinationKeys() map[string]string {
	m := map[string]string{}
	for n, d := range c.Destinations {
		m[n] = d.KeyName
	}
	return m
}

// Hosts are the names under which the private listener may be called, besides
// loopback and the address itself.
func (c *Config) Hosts() []string {
	hosts := slices.Clone(c.Admin.Hosts)
	if u, err := url.Parse(string(c.PublicURL)); err == nil && u.Host != "" {
		hosts = append(hosts, u.Hostname())
	}
	if host, _, err := net.SplitHostPort(c.Admin.Listen); err == nil && host != "" {
		hosts = append(hosts, host)
	}
	return hosts
}

// SourceURL is the address under which senders reach a source; empty when no
// public_url is known.
func (c *Config) SourceURL(name string) string {
	if s := c.Sources[name]; s != nil && s.PublicURL != "" {
		return string(s.PublicURL)
	}
	if c.PublicURL == "" {
		return ""
	}
	return string(c.PublicURL) + "/in/" + name
}

// The hard limits of an attempt where none is set.
const (
	hardLimitHTTP = 15 * time.Minute
	hardLimitExec = time.Hour
)
