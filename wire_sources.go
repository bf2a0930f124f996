package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"acuse/admin"
	"acuse/config"
	"acuse/provider"
	"acuse/web"
)

// source is a configured source with its provider, compiled.
type source struct {
	name      string
	cfg       *config.Source
	provider  *provider.Provider
	checker   *provider.Checker
	publicURL string
	about     *admin.About                      // what people want to know of the provider; nil where there is none
	rehearsal func() (*provider.Checker, error) // for tests of ours; made at the first
}

// compileSources turns the sources of the configuration into checkers. All problems
// are reported at once; none holds a value.
func compileSources(cfg *config.Config, cat *provider.Catalogue, keys provider.Keys) (map[string]*source, config.Problems) {
	out := make(map[string]*source, len(cfg.Sources))
	var problems config.Problems
	for _, name := range slices.Sorted(maps.Keys(cfg.Sources)) {
		s, err := compileSource(cfg, cat, keys, name)
		if err != nil {
			problems = append(problems, cfg.Problem("sources."+name, "%v", err))
			continue
		}
		out[name] = s
	}
	return out, problems
}

func compileSource(cfg *config.Config, cat *provider.Catalogue, keys provider.Keys, name string) (*source, error) {
	c := cfg.Sources[name]
	p := provider.Custom()
	if c.Provider != "" {
		var ok bool
		if p, ok = cat.Get(c.Provider); !ok {
			return nil, fmt.Errorf("provider: no provider %q; acuse provider list shows all", c.Provider)
		}
	}
	set := provider.Settings{
		Secrets:   append(c.Secrets.Strings(), secrets(c.MoreSecrets)...),
		Params:    make(map[string]string, len(c.Params)),
		Tolerance: c.Tolerance,
		Auth:      c.Auth,
		Unsigned:  c.Unsigned,
		Type:      c.Type,
		Resource:  c.Resource,
		Batch:     c.Batch,
		MaxBody:   int64(c.MaxBody),
		Waiting:   c.Secrets.Capture,
		Keys:      keys,
	}
	for k, v := range c.Params {
		set.Params[k] = string(v)
	}
	if !c.ID.IsZero() {
		set.ID = &provider.IDRule{Template: c.ID.Template, First: c.ID.First, Join: c.ID.Join}
	}
	checker, err := p.Compile(set)
	if err != nil {
		return nil, err
	}
	src := &source{
		name: name, cfg: c, provider: p, checker: checker, publicURL: cfg.SourceURL(name),
		rehearsal: sync.OnceValues(checker.Rehearsal),
	}
	if c.Provider != "" {
		src.about = &admin.About{Facts: p.Facts(), Connect: p.Connect(), Docs: p.Docs(), Types: p.Types()}
	}
	return src, nil
}

func secrets(list []config.Secret) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// edge is the source as the public listener needs it.
func (s *source) edge(cfg *config.Config, r rules) web.Source {
	w := web.Source{
		Name:         s.name,
		KeyName:      s.cfg.KeyName,
		Provider:     s.cfg.Provider,
		Checker:      s.checker,
		Window:       s.window(cfg),
		MaxBody:      s.maxBody(),
		RejectStatus: cmp.Or(s.cfg.RejectStatus, s.provider.RejectStatus()),
		PublicURL:    s.publicURL,
		Revive:       s.cfg.DuplicatesOfDead == "revive",
		TestEvents:   s.cfg.TestEvents,
		AllowIPs:     s.cfg.AllowIPs,
		Unsigned:     s.cfg.Unsigned,
		Rate:         perSecond(s.cfg.Rate),
		Filter:       r.sources[s.name],
	}
	for _, d := range s.cfg.DeliverTo {
		to := r.destinations[d]
		to.Name, to.KeyName = d, cfg.Destinations[d].KeyName
		w.Destinations = append(w.Destinations, to)
	}
	if r := s.cfg.Response; r != nil {
		w.Response = &provider.Reply{Status: r.Status, Header: http.Header{}}
		if r.Body != nil {
			w.Response.Body = []byte(*r.Body)
		}
		for k, v := range r.Headers {
			w.Response.Header.Set(k, v)
		}
	}
	return w
}

// perSecond is a rate in events a second; 0 is no limit.
func perSecond(r config.Rate) float64 {
	if r.Per == 0 {
		return 0
	}
	return float64(r.N) / r.Per.Seconds()
}

// window is how long a dedup key is remembered: the source's own setting wins over
// the provider's rule and the life of a delivery's row.
func (s *source) window(cfg *config.Config) func(bodyHash bool) (time.Duration, bool) {
	if own := s.cfg.DedupWindow; own > 0 {
		return func(bool) (time.Duration, bool) { return own, false }
	}
	return func(bodyHash bool) (time.Duration, bool) {
		length, why := s.provider.WindowWhy(bodyHash, cfg.Retention.Age)
		return length, why.WithRow()
	}
}

func (s *source) maxBody() int64 {
	return cmp.Or(int64(s.cfg.MaxBody), s.provider.MaxBody(), int64(web.DefaultMaxBody))
}

// warnings are what the owner should know about the source; they stop nothing.
func (s *source) warnings(cfg *config.Config) (out []string) {
	out = append(out, s.provider.Warnings()...)
	if s.cfg.Unsigned {
		out = append(out, "takes events without any signature: whoever knows the address can send")
	}
	if other := s.sharesSecret(cfg); other != "" {
		out = append(out, "has a secret in common with "+other+": an event of one passes at the other, where its id may mean another event; one secret a source keeps them apart")
	}
	if w := s.cfg.DedupWindow; w > 0 && w < s.provider.Horizon() {
		out = append(out, fmt.Sprintf("dedup_window is shorter than the %v over which %s repeats: late repeats will be delivered again", s.provider.Horizon(), s.provider.Title))
	}
	if !s.checker.CanSign() && !s.cfg.Unsigned {
		for _, d := range s.cfg.DeliverTo {
			if dest := cfg.Destinations[d]; dest.Pull == nil && dest.Signature == "fresh" {
				out = append(out, "acuse cannot sign for this provider: "+d+" gets the original signature, which grows old; signature: standard would be fresh")
			}
		}
	}
	return out
}

// sharesSecret names another source of the provider with a secret of this one, where the
// provider gives a secret, and ids, to each endpoint or bot.
func (s *source) sharesSecret(cfg *config.Config) string {
	if scope := s.provider.IDScope(); scope != "bot" && scope != "endpoint" {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sources)) {
		o := cfg.Sources[name]
		if name != s.name && o.Provider == s.cfg.Provider && slices.ContainsFunc(o.Secrets.Strings(), func(one string) bool {
			return slices.Contains(s.cfg.Secrets.Strings(), one)
		}) {
			return name
		}
	}
	return ""
}

// page is the source as people see it.
func (s *source) page(cfg *config.Config) admin.Source {
	window, why := s.windowWhy(cfg)
	return admin.Source{
		Name:        s.name,
		Provider:    s.cfg.Provider,
		Title:       s.provider.Title,
		Address:     cmp.Or(s.publicURL, "http://"+shownAddress(cfg.Listen)+"/in/"+s.name),
		Secrets:     len(s.cfg.Secrets.Values) + len(s.cfg.MoreSecrets),
		Unsigned:    s.cfg.Unsigned,
		Waiting:     s.cfg.Secrets.Capture,
		Captures:    s.provider.Captures(),
		DeliverTo:   s.cfg.DeliverTo,
		AuthHeaders: s.checker.AuthHeaders(),
		AuthQuery:   s.checker.AuthQuery(),
		Window:      window,
		WindowWhy:   why,
		About:       s.about,
		MaxBody:     s.maxBody(),
		Tolerance:   s.cfg.Tolerance,
	}
}

// windowWhy is how long an event of the source is remembered, and why so long.
func (s *source) windowWhy(cfg *config.Config) (time.Duration, provider.WindowReason) {
	if own := s.cfg.DedupWindow; own > 0 {
		return own, provider.WindowOwn
	}
	hash := s.about != nil && s.about.Facts.BodyID && s.cfg.ID.IsZero()
	return s.provider.WindowWhy(hash, cfg.Retention.Age)
}
