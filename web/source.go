package web

import (
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"acuse/provider"
)

// DefaultMaxBody is how many bytes a body may have where the source says nothing.
const DefaultMaxBody = 1 << 20

// defaultWindow is how long a dedup key is remembered where the source has no rule.
const defaultWindow = 7 * 24 * time.Hour

// Checker is what the edge needs of *provider.Checker.
type Checker interface {
	Early(method string, h http.Header) error
	Methods() []string
	Receive(r *provider.Request, now time.Time) (provider.Result, error)
	Identify(r *provider.Request) provider.Result
	Reply(r *provider.Request) *provider.Reply
	AuthHeaders() []string
	TokenHeaders() []string
	TokenQuery() []string
	Restore(same func(text string) bool) (text string, ok bool)
}

// Source is one way in. Name, Provider and Checker are required.
type Source struct {
	Name         string
	KeyName      string // stands in idempotency keys; default Name
	Provider     string // catalogue name, for display
	Checker      Checker
	Window       func(bodyHash bool) (length time.Duration, withRow bool) // of the dedup key; default 7 days
	MaxBody      int64                                                    // bytes; default DefaultMaxBody
	RejectStatus int                                                      // of a failed check; default 401
	PublicURL    string                                                   // the address given to the provider; empty: not known
	Destinations []Destination
	Filter       *Filter        // of the source: decides for all destinations; nil: none
	Revive       bool           // a duplicate queues the dead letters of exhausted attempts again
	TestEvents   string         // "deliver" (default) or "keep": archived, not delivered
	AllowIPs     []netip.Prefix // empty: every address
	Unsigned     bool           // the owner said that nothing needs to be signed
	Rate         float64        // verified requests a second; 0 is no limit
	// Response replaces what the provider's file says about the answer to a stored
	// event. Status 0 is 200; a nil Body is acuse's own receipt, an empty one none.
	Response *provider.Reply
	// Diagnose says what can be shown about a refused request. nil: nothing is looked for. It
	// is never called on the way of an answer.
	Diagnose func(r *provider.Request, at time.Time) provider.Diagnosis
	// Besides gives the checker with one more secret, tried first, and another tolerance, for
	// rechecks; see provider.Checker. nil: refused requests are checked again as they were.
	Besides func(secret string, tolerance time.Duration) (Checker, error)
}

// Destination is where events of a source go.
type Destination struct {
	Name       string
	KeyName    string  // stands in idempotency keys; default Name
	Filter     *Filter // nil: every event goes there
	Order      *Order  // nil: events go as they come
	LatestOnly Types   // events of these types are superseded by newer versions
}

// memory is how long a dedup key is remembered; withRow, at least as long as its delivery.
type memory struct {
	length  time.Duration
	withRow bool
}

// source is a Source made ready, with what changes from request to request.
type source struct {
	Source
	keyPrefix  string         // escaped, with its colon
	keySuffix  []string       // by destination, likewise
	lanes      []string       // names of the destinations
	rules      []*Destination // by destination: its rules; nil: no job of the source needs any
	methods    []string
	allow      string // value of the Allow header
	publicBase string // PublicURL without its query
	windowID   memory
	windowHash memory
	readTime   time.Duration // for a whole request, headers included
	silent     bool          // the provider wants answers without a body: refusals too

	accepted, duplicates, quarantined, handshakes *metrics.Counter

	mu         sync.Mutex
	rate       bucket // verified requests
	refusals   bucket // a source that is out of these is being flooded
	kept       bucket // rejections that are written and logged
	suppressed int    // rejections since the last one logged
}

func newSource(s Source, set *metrics.Set) *source {
	if s.KeyName == "" {
		s.KeyName = s.Name
	}
	if s.MaxBody <= 0 {
		s.MaxBody = DefaultMaxBody
	}
	if s.RejectStatus == 0 {
		s.RejectStatus = http.StatusUnauthorized
	}
	if s.Window == nil {
		s.Window = func(bool) (time.Duration, bool) { return defaultWindow, true }
	}
	out := &source{
		Source:    s,
		keyPrefix: escape(s.KeyName) + ":",
		methods:   []string{http.MethodPost},
		readTime:  readTime(s.MaxBody),
	}
	out.windowID.length, out.windowID.withRow = s.Window(false)
	out.windowHash.length, out.windowHash.withRow = s.Window(true)
	if r := s.Checker.Reply(&provider.Request{}); r != nil && len(r.Body) == 0 {
		out.silent = true
	}
	out.publicBase, _, _ = strings.Cut(s.PublicURL, "?")
	ruled := s.Filter != nil
	for _, d := range s.Destinations {
		if slices.Contains(out.lanes, d.Name) {
			continue // listed twice: one job all the same
		}
		name := d.KeyName
		if name == "" {
			name = d.Name
		}
		out.keySuffix = append(out.keySuffix, ":"+escape(name))
		out.lanes = append(out.lanes, d.Name)
		out.rules = append(out.rules, &d)
		ruled = ruled || d.Filter != nil || d.Order != nil || len(d.LatestOnly) > 0
	}
	if !ruled {
		out.rules = nil
	}
	for _, m := range s.Checker.Methods() {
		if !slices.Contains(out.methods, m) {
			out.methods = append(out.methods, m)
		}
	}
	out.allow = strings.Join(out.methods, ", ")
	out.rate = bucket{perSecond: s.Rate, burst: math.Max(1, math.Ceil(s.Rate))}
	out.refusals = bucket{perSecond: 50, burst: 500}
	out.kept = bucket{perSecond: 20, burst: 20}
	label := `{source="` + s.Name + `"}`
	out.accepted = set.GetOrCreateCounter("acuse_accepted_total" + label)
	out.duplicates = set.GetOrCreateCounter("acuse_duplicates_total" + label)
	out.quarantined = set.GetOrCreateCounter("acuse_quarantined_total" + label)
	out.handshakes = set.GetOrCreateCounter("acuse_handshakes_total" + label)
	return out
}

// takes tells whether the source answers the method.
func (s *source) takes(method string) bool {
	return method == http.MethodPost || slices.Contains(s.methods, method)
}

// url is the address that the sender signed, where the scheme signs one: as
// configured, with the rest of the path and the query as they came in. What a proxy
// or a sender says about host and protocol has no say.
func (s *source) url(rest, target string) string {
	if s.publicBase == "" {
		return ""
	}
	q := strings.IndexByte(target, '?')
	if rest == "" && q < 0 {
		return s.publicBase
	}
	u := s.publicBase
	if rest != "" {
		u = strings.TrimSuffix(u, "/") + rest
	}
	if q >= 0 {
		u += target[q:]
	}
	return u
}

// withinRate takes one of the source's verified requests; the wait is until it may.
func (s *source) withinRate(now time.Time) (wait time.Duration, ok bool) {
	if s.Rate <= 0 {
		return 0, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rate.take(now)
}

// keep tells whether one more rejection is written and logged, and how many were
// passed over since the last one that was.
func (s *source) keep(now time.Time) (suppressed int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok = s.kept.take(now); !ok {
		s.suppressed++
		return 0, false
	}
	suppressed, s.suppressed = s.suppressed, 0
	return suppressed, true
}

// readTime is how long a request of a source may take to come in: 15 s for a
// mebibyte and as much for each one more, at most two minutes.
func readTime(maxBody int64) time.Duration {
	mib := (maxBody + 1<<20 - 1) >> 20
	return min(time.Duration(max(mib, 1))*bodyTime, 2*time.Minute)
}
