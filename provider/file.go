package provider

import (
	"encoding/json"
)

// file is one provider file, decoded: the list of all fields of the language. What
// only people read (docs, sources, notes) is kept as it stands or not at all.
type file struct {
	Name      string          `json:"name"`
	Title     string          `json:"title"`
	TitleES   string          `json:"title_es"`
	Docs      []string        `json:"docs"`
	PresetOf  *string         `json:"preset_of"`
	Auth      authFile        `json:"auth"`
	ID        idFile          `json:"id"`
	Batch     some[batchFile] `json:"batch"`
	Type      texts           `json:"type"`
	Resource  texts           `json:"resource"`
	Version   *versionFile    `json:"version"`
	Handshake some[handFile]  `json:"handshake"`
	Response  some[replyFile] `json:"response"`
	Test      *matchFile      `json:"test"`
	Timeout   *float64        `json:"timeout_seconds"`
	MaxBody   int64           `json:"max_body"`
	Retry     retryFile       `json:"retry"`
	Disables  *string         `json:"disables_endpoint"`
	Ordering  *string         `json:"ordering"`
	Connect   *Connect        `json:"connect"`
	Notes     texts           `json:"notes"`
	Sources   []struct {
		Fact   string `json:"fact"`
		Source string `json:"source"`
	} `json:"sources"`
	Confidence string `json:"confidence"`
}

// Connect says, step by step, how to set a source up at the provider; "{address}"
// stands for our own URL.
type Connect struct {
	EN []string `json:"en"`
	ES []string `json:"es"`
}

type authFile struct {
	Kind       string            `json:"kind"`
	Of         []authFile        `json:"of"`
	When       *whenFile         `json:"when"`
	Alg        string            `json:"alg"`
	Hash       string            `json:"hash"`
	Curve      string            `json:"curve"`
	Format     string            `json:"format"`
	Padding    string            `json:"padding"`
	Secret     *secretFile       `json:"secret"`
	Message    texts             `json:"message"`
	Signature  *signatureFile    `json:"signature"`
	Timestamp  *timestampFile    `json:"timestamp"`
	Required   []texts           `json:"required"`
	SignedOver string            `json:"signed_over"`
	From       string            `json:"from"`
	Prefix     string            `json:"prefix"`
	Rotation   *string           `json:"rotation"`
	Algs       []string          `json:"algs"`
	KeySource  *keySourceFile    `json:"key_source"`
	Issuer     texts             `json:"issuer"`
	Audience   *string           `json:"audience"`
	MaxAge     *int64            `json:"max_age_seconds"`
	Leeway     *int64            `json:"leeway_seconds"`
	Claims     map[string]text   `json:"claims"`
	BodyHash   *bodyHashFile     `json:"body_hash"`
	Equals     map[string]string `json:"equals"`
	Confirm    some[confirmFile] `json:"confirm"`
	How        string            `json:"how"`
	Allow      []string          `json:"allow"`
	Trusted    []string          `json:"trusted_proxies"`
	Forwarded  string            `json:"forwarded"`
}

// authFields are the fields that each kind reads, besides kind, when and rotation.
// A field that a kind would pass over in silence is an error instead.
var authFields = map[string][]string{
	"hmac":     {"alg", "secret", "message", "signature", "timestamp", "required", "signed_over", "equals"},
	"token":    {"from", "prefix", "secret"},
	"basic":    {"secret"},
	"none":     {"how"},
	"any":      {"of"},
	"all":      {"of"},
	"ed25519":  {"secret", "message", "signature", "timestamp", "required", "signed_over", "equals"},
	"ecdsa":    {"alg", "hash", "curve", "format", "secret", "message", "signature", "timestamp", "required", "signed_over", "equals", "key_source"},
	"rsa":      {"alg", "hash", "padding", "secret", "message", "signature", "timestamp", "required", "signed_over", "equals", "key_source"},
	"jwt":      {"from", "prefix", "algs", "secret", "key_source", "issuer", "audience", "max_age_seconds", "leeway_seconds", "claims", "body_hash", "required"},
	"callback": {"how", "confirm"},
	"ip":       {"allow", "trusted_proxies", "forwarded"},
	"mtls":     {},
}

type bodyHashFile struct {
	Claim    string `json:"claim"`
	Alg      string `json:"alg"`
	Encoding string `json:"encoding"`
}

// confirmFile is a question with which a callback is confirmed.
type confirmFile struct {
	Get        string            `json:"get"`
	AllowHosts []string          `json:"allow_hosts"`
	Equals     map[string]string `json:"equals"`
}

type whenFile struct {
	JSON map[string]text `json:"json"`
}

type secretFile struct {
	Encoding       string   `json:"encoding"`
	StripPrefix    []string `json:"strip_prefix"`
	Derive         *string  `json:"derive"`
	UnlessPrefixed string   `json:"unless_prefixed"`
	Label          string   `json:"label"`
	Where          string   `json:"where"`
	Per            string   `json:"per"`
}

type signatureFile struct {
	From      texts    `json:"from"`
	Format    string   `json:"format"`
	Separator string   `json:"separator"`
	Assign    string   `json:"assign"`
	Key       texts    `json:"key"`
	Skip      int      `json:"skip"`
	Prefix    string   `json:"prefix"`
	Unique    []string `json:"unique"`
	Encoding  string   `json:"encoding"`
}

type timestampFile struct {
	From      texts  `json:"from"`
	Unit      string `json:"unit"`
	Tolerance *int64 `json:"tolerance_seconds"`
	Future    limit  `json:"future_seconds"`
	Origin    string `json:"tolerance_origin"`
	Library   *int64 `json:"library_tolerance_seconds"`
}

type keySourceFile struct {
	Kind       string   `json:"kind"`
	URL        string   `json:"url"`
	AllowHosts []string `json:"allow_hosts"`
	Kid        string   `json:"kid"`
	Ends       string   `json:"url_ends"`
	Unknown    string   `json:"unknown"`
	Names      []string `json:"names"`
	Notes      string   `json:"notes"`
}

type idFile struct {
	Key          texts             `json:"key"`
	Scope        string            `json:"scope"`
	Required     bool              `json:"required"`
	StableRetry  *bool             `json:"stable_on_retry"`
	StableResend *bool             `json:"stable_on_resend"`
	Alternates   map[string]string `json:"alternates"`
	WindowHours  float64           `json:"dedup_window_hours"`
	Notes        texts             `json:"notes"`
}

type batchFile struct {
	Items      string `json:"items"`
	ID         texts  `json:"id"`
	Type       texts  `json:"type"`
	Resource   texts  `json:"resource"`
	Version    texts  `json:"version"`
	VerifyEach bool   `json:"verify_each"`
	Notes      texts  `json:"notes"`
}

type versionFile struct {
	Key        texts  `json:"key"`
	Unit       string `json:"unit"`
	Supersedes *bool  `json:"supersedes"`
	Notes      texts  `json:"notes"`
}

type retryFile struct {
	Attempts     *int64  `json:"attempts"`
	HorizonHours float64 `json:"horizon_hours"`
	Schedule     *string `json:"schedule"`
	Seconds      []int64 `json:"schedule_seconds"`
	Resend       *string `json:"manual_resend"`
	ResendDays   float64 `json:"manual_resend_days"`
}

// matchFile holds the conditions of a handshake, a reply or a test event.
type matchFile struct {
	Method    texts            `json:"method"`
	Query     []string         `json:"query"`
	JSON      map[string]*text `json:"json"`
	Header    map[string]*text `json:"header"`
	Form      json.RawMessage  `json:"form"` // names, or name to value
	BodyEmpty *bool            `json:"body_empty"`
}

type handFile struct {
	Kind    string          `json:"kind"`
	Match   json.RawMessage `json:"match"` // decoded apart: an unknown condition counts as not met
	Check   *checkFile      `json:"check"`
	Auth    bool            `json:"auth"`
	Respond respondFile     `json:"respond"`
	Capture *struct {
		Secret string `json:"secret"`
	} `json:"capture"`
	Then *struct {
		Get        string   `json:"get"`
		AllowHosts []string `json:"allow_hosts"`
	} `json:"then"`
	Notes texts `json:"notes"`
}

type checkFile struct {
	Auth   bool   `json:"auth"`
	From   string `json:"from"`
	Equals string `json:"equals"`
}

type respondFile struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
}

type replyFile struct {
	Match        *matchFile `json:"match"`
	Success      success    `json:"success"`
	Body         *string    `json:"body"`
	RejectStatus int        `json:"reject_status"`
	Never        string     `json:"never"`
	Notes        texts      `json:"notes"`
}
