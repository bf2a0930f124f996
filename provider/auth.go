package provider

import (
	"fmt"
	"net/http"
)

// plan is an auth of a file, its templates compiled; a source's secrets are bound later.
type plan interface {
	// bind compiles the secrets in. used tells, slot by slot, which secrets the check
	// can use; an error is kept for slots that nothing can use.
	bind(s *binding) (check, error)
	// each calls f for every placeholder that the check reads.
	each(f func(*placeholder))
}

// check is an auth that is ready to judge requests. One file for each kind.
type check interface {
	// verify judges the request over its raw bytes.
	verify(in *input) verdict
	// early says which header is missing for certain, before the body is read.
	early(h http.Header) *Refusal
	// present tells whether the request carries, at the place of this check, anything.
	present(in *input) bool
	// marks calls f for the places of signatures, tokens and their timestamps.
	marks(f func(*placeholder))
	// canSign tells whether sign can work.
	canSign() bool
	// sign makes the request pass verify.
	sign(s *signing) error
}

// verdict is what a check says: a refusal, or who verified what.
type verdict struct {
	refusal  *Refusal
	slot     int     // from 1
	whole    bool    // the whole body is covered
	hidden   *hidden // what must not be believed
	unproven bool    // accepted, though nobody vouches for it
}

func refuse(reason Reason, detail string, signed bool) verdict {
	return verdict{refusal: &Refusal{Reason: reason, Detail: detail, Signed: signed}}
}

// binding is what a source brings.
type binding struct {
	secrets   []string
	settings  *Settings
	limit     int64 // of a decoded body
	used      []bool
	why       []error    // why a slot is of no use to a check that looked at it
	rehearsal *rehearsal // set: checks are made for tests of ours
}

func newBinding(s *Settings, limit int64) *binding {
	return &binding{secrets: s.Secrets, settings: s, limit: limit,
		used: make([]bool, len(s.Secrets)), why: make([]error, len(s.Secrets))}
}

// take notes whether a slot's secret is of use; a failure is remembered for the error message.
func (b *binding) take(slot int, err error) bool {
	if err != nil {
		b.why[slot] = err
		return false
	}
	b.used[slot] = true
	return true
}

// useless notes that a check needs none of the secrets.
func (b *binding) useless(why error) {
	for i := range b.why {
		if b.why[i] == nil {
			b.why[i] = why
		}
	}
}

// parseAuth compiles an auth of a file or of a source's own settings.
func parseAuth(path string, f *authFile) (plan, error) {
	var p plan
	var err error
	switch f.Kind {
	case "hmac":
		p, err = parseHMAC(path, f)
	case "token":
		p, err = parseToken(path, f)
	case "basic":
		p, err = parseBasic(path, f)
	case "none":
		p = nonePlan{}
	case "any", "all":
		p, err = parseGroup(path, f)
	case "ed25519":
		p, err = parseEd25519(path, f)
	case "ecdsa":
		p, err = parseECDSA(path, f)
	case "rsa":
		p, err = parseRSA(path, f)
	case "jwt":
		p, err = parseJWT(path, f)
	case "callback":
		p, err = parseCallback(path, f)
	case "ip":
		p, err = parseIP(path, f)
	case "mtls":
		p = later{path, f.Kind}
	default:
		return nil, at(join(path, "kind"), "unknown kind %q", f.Kind)
	}
	if err != nil || f.When == nil {
		return p, err
	}
	m, err := parseFields(join(path, "when.json"), f.When.JSON)
	return whenPlan{p, m}, err
}

// later is a kind that this version knows but cannot check.
type later struct{ path, kind string }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (l later) bind(*binding) (check, error) {
	return nil, fmt.Errorf("%s: auth kind %s is not supported by this version", l.path, l.kind)
}

func (l later) each(func(*placeholder)) {}

// none lets everything in, unproven.
type nonePlan struct{}

type none struct{}

func (nonePlan) bind(*binding) (check, error) { return none{}, nil }
func (nonePlan) each(func(*placeholder))      {}
func (none) verify(*input) verdict            { return verdict{unproven: true} }
func (none) early(http.Header) *Refusal       { return nil }
func (none) present(*input) bool              { return true }
func (none) marks(func(*placeholder))         {}
func (none) canSign() bool                    { return false }
func (none) sign(*signing) error              { return nil }
