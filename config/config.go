// Package config reads acuse.yaml: strictly, all problems at once, each with its
// line, and without ever printing a value. It turns the file, the files of
// DATA/conf.d and the environment into one checked struct.
//
// The comments of the fields are the reference: docs/reference/config.md is made
// from them. A field's tags are its key, its default, its range (min, max, for
// numbers, sizes and durations), its allowed words (oneof) and, for a key that a
// later version will use, later: such a key is known, checked, and refused.
package config

import (
	"net/netip"
	"time"
)

//go:generate go test -run TestReference . -update

// Config is the whole configuration, checked.
type Config struct {
	// Name of this instance, shown in alerts and page titles.
	Name string `yaml:"name" default:"acuse"`
	// Language of alerts, and of pages for people who chose none. Empty: as the
	// browser or the terminal says.
	Language string `yaml:"language" oneof:"es|en"`
	// Folder of the database, the socket, conf.d and digest.key. Relative to the config file. To move to another machine, stop acuse and copy it
	// whole: digest.key, the key of the digests that stand for refused tokens, is in no backup.
	DataDir string `yaml:"data_dir" default:"./data"`
	// Storage engine. "sqlite" keeps acuse.db, which the sqlite3 shell reads; "bbolt" keeps
	// acuse.bolt, which answers more evenly and takes more CPU. An archive stays with its
	// engine: a folder that holds the other one's file is refused.
	Store string `yaml:"store" default:"sqlite" oneof:"sqlite|bbolt"`
	// Public listener: events come in here and nothing else is served.
	Listen string `yaml:"listen" default:":8080"`
	// Address under which senders reach the public listener, such as
	// "https://hooks.example.org". Schemes that sign the URL need it.
	PublicURL URL `yaml:"public_url"`
	// Path under which a proxy serves the dashboard, such as "/acuse".
	BasePath string `yaml:"base_path"`
	// Addresses or networks of proxies whose X-Forwarded-For is believed. None by
	// default: then no forwarded header has any effect.
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	// Free space below which events are answered 503. Default: the smaller of
	// 100 MiB and 5 % of the volume.
	MinFree Size `yaml:"min_free" min:"1MiB" max:"1TiB"`
	// How long and how much of the archive is kept.
	Retention Retention `yaml:"retention"`
	// How long dead letters, and events in quarantine, are kept: they wait for a person.
	DeadRetention time.Duration `yaml:"dead_retention" default:"90d" min:"1h" max:"3650d"`
	// The log, on standard error.
	Log Log `yaml:"log"`
	// The private listener: dashboard, API and metrics.
	Admin Admin `yaml:"admin"`
	// A listener that serves jobs, effects and /out alone.
	Agents Agents `yaml:"agents" later:"true"`
	// Certificates for the public listener.
	TLS Later `yaml:"tls" later:"true"`
	// Planned backups.
	Backup *Backup `yaml:"backup"`
	// Which addresses destinations and key fetches may reach.
	Egress Later `yaml:"egress" later:"true"`
	// Named ways in: POST /in/NAME.
	Sources map[string]*Source `yaml:"sources"`
	// Where events go.
	Destinations map[string]*Destination `yaml:"destinations"`
	// Upstreams that agents reach through acuse, each action once.
	Effects map[string]*Effect `yaml:"effects" later:"true"`
	// Where alerts are sent.
	Alerts []Alert `yaml:"alerts"`

	// AdminToken is ACUSE_ADMIN_TOKEN; empty: there is none.
	AdminToken Secret `yaml:"-"`
	// AdminPasswordFile is ACUSE_ADMIN_PASSWORD_FILE: holds the password of the
	// first owner, so that no setup link is needed.
	AdminPasswordFile string `yaml:"-"`

	file  string              // the config file as it was named
	lines map[string]position // of every key that was read, by path
}

// Retention bounds the archive.
type Retention struct {
	// Deliveries that are finished go when they are older than this.
	Age time.Duration `yaml:"age" default:"30d" min:"1h" max:"3650d"`
	// The oldest finished deliveries go, whatever their age, while the archive takes
	// more than this.
	Size Size `yaml:"size" default:"2GiB" min:"16MiB" max:"16TiB"`
}

// Backup plans the backups that acuse makes by itself.
type Backup struct {
	// How often. A person is told when one is overdue by an hour.
	Every time.Duration `yaml:"every" default:"24h" min:"10m" max:"365d"`
	// How many are kept; the oldest are removed.
	Keep int `yaml:"keep" default:"7" min:"1" max:"1000"`
	// Folder they go to, relative to the config file. Default: backups in the data
	// folder; another disk is better.
	Dir string `yaml:"dir"`
	// age recipients ("age1…"), several apart by spaces: only who has the identity can
	// read the backups. Default: they are not encrypted.
	EncryptTo string `yaml:"encrypt_to"`
}

// Log says what is logged and how.
type Log struct {
	// Least level that is written.
	Level string `yaml:"level" default:"info" oneof:"debug|info|warn|error"`
	// Form of a line.
	Format string `yaml:"format" default:"text" oneof:"text|json"`
}

// Admin is the private listener.
type Admin struct {
	// Address of the private listener.
	Listen string `yaml:"listen" default:"127.0.0.1:8081"`
	// Host names under which the dashboard is opened, besides localhost, the
	// address itself and the host of public_url: "pi.local". Other names are
	// refused, against DNS rebinding.
	Hosts []string `yaml:"hosts"`
}

// Agents is a listener for agents alone.
type Agents struct {
	// Address of the listener.
	Listen string `yaml:"listen"`
}

// Source is a named way in.
type Source struct {
	// Name in the catalogue, such as "stripe": see acuse provider list. May be left
	// out when auth or unsigned is given.
	Provider string `yaml:"provider"`
	// Secrets, of which any one may match, so that rotation needs no downtime. The
	// word capture instead: the source waits for a handshake that brings its secret.
	Secrets Secrets `yaml:"secrets"`
	// Only in DATA/conf.d: secrets besides those of acuse.yaml.
	MoreSecrets []Secret `yaml:"more_secrets"`
	// Values that the provider's scheme asks for, such as a webhook id.
	Params map[string]Secret `yaml:"params"`
	// Destinations of its events.
	DeliverTo []string `yaml:"deliver_to"`
	// Replaces the provider's authentication: an object of the provider language.
	Auth JSON `yaml:"auth"`
	// Takes events without any authentication. Anyone who knows the address can send.
	Unsigned bool `yaml:"unsigned"`
	// Replaces where the event id stands: a template, {first: [templates]} or
	// {join: [templates]}.
	ID ID `yaml:"id"`
	// Replaces the templates of the event type.
	Type Templates `yaml:"type"`
	// Replaces the templates of the resource that an event is about.
	Resource Templates `yaml:"resource"`
	// Whether the items of a batch become deliveries of their own.
	Batch string `yaml:"batch" default:"split" oneof:"split|whole"`
	// How long an event id is remembered. Default: by the provider's retries, at
	// least 7 days.
	DedupWindow time.Duration `yaml:"dedup_window" min:"1m" max:"3650d"`
	// Largest body. Default: 1 MiB, or what the provider may send.
	MaxBody Size `yaml:"max_body" min:"1KiB" max:"32MiB"`
	// How far a signed time may lie from ours. Default: the provider's.
	Tolerance time.Duration `yaml:"tolerance" min:"1s" max:"7d"`
	// Status that answers a failed signature check. Default: the provider's, mostly 401.
	RejectStatus int `yaml:"reject_status" min:"400" max:"499"`
	// What an accepted event is answered with. Default: what the provider wants to read.
	Response *Response `yaml:"response"`
	// Rule that an event must meet to be delivered: an expression that is true or false, such
	// as type startsWith "invoice.". What does not meet it is kept and shown as filtered.
	Filter *Filter `yaml:"filter"`
	// Addresses or networks that may send. Default: any.
	AllowIPs []netip.Prefix `yaml:"allow_ips"`
	// What happens to the provider's test events.
	TestEvents string `yaml:"test_events" default:"deliver" oneof:"deliver|keep"`
	// What a repeat of an event does whose job is a dead letter.
	DuplicatesOfDead string `yaml:"duplicates_of_dead" default:"revive" oneof:"revive|count"`
	// Fields that pages hide, besides secrets.
	Mask []string `yaml:"mask" later:"true"`
	// Address under which senders reach this source, where it differs from the
	// general public_url followed by /in/NAME.
	PublicURL URL `yaml:"public_url"`
	// Most requests a source may send, such as "50/s".
	Rate Rate `yaml:"rate"`
	// Name used in idempotency keys; keeps them when a source is renamed. Default:
	// the source's name.
	KeyName string `yaml:"key_name"`
}

// Response replaces the answer to an accepted event.
type Response struct {
	// Status code.
	Status int `yaml:"status" default:"200" min:"200" max:"299"`
	// Headers.
	Headers map[string]string `yaml:"headers"`
	// Body, sent as it stands here; "" is an empty one. Default: acuse's own receipt.
	Body *string `yaml:"body"`
}

// Destination is where events go: exactly one of url, exec and pull is given.
type Destination struct {
	// Address of an app that takes events by HTTP.
	URL URL `yaml:"url"`
	// Program that is started for each event, with its arguments; no shell. The body
	// comes on standard input, all else in ACUSE_ variables.
	Exec []string `yaml:"exec"`
	// Workers fetch events through the API. {} stands for the defaults.
	Pull *Pull `yaml:"pull"`
	// HTTP method. Default: that of the event.
	Method string `yaml:"method"`
	// Headers added to each request; they win over those of the event.
	Headers map[string]Secret `yaml:"headers"`
	// fresh signs again as the provider would, passthrough leaves the signature,
	// standard adds Standard Webhooks headers under secret.
	Signature string `yaml:"signature" default:"fresh" oneof:"fresh|passthrough|standard"`
	// Secret of signature: standard.
	Secret Secret `yaml:"secret"`
	// Name of the header with the idempotency key, or none.
	IdempotencyHeader string `yaml:"idempotency_header" default:"Idempotency-Key"`
	// How long one attempt waits for the answer.
	Timeout time.Duration `yaml:"timeout" default:"30s" min:"1s" max:"15m"`
	// Attempts at the same time.
	Concurrency int `yaml:"concurrency" default:"4" min:"1" max:"256"`
	// Most attempts, such as "5/s".
	Rate Rate `yaml:"rate"`
	// When failed jobs are tried again.
	Retry Retry `yaml:"retry"`
	// When an attempt is ended for good, renewals included. Default: 15m for url,
	// 1h for exec, none for pull.
	HardLimit time.Duration `yaml:"hard_limit" min:"1s" max:"7d"`
	// Older jobs become dead letters instead of being sent. Default: none are too old.
	MaxAge time.Duration `yaml:"max_age" min:"1m" max:"3650d"`
	// Rule that an event must meet to be sent here: an expression that is true or false, such
	// as body.amount >= 1000. What does not meet it is kept and shown as filtered.
	Filter *Filter `yaml:"filter"`
	// Events with the same value are sent one at a time, in the order of their numbers:
	// resource, or an expression. An event without a value has no order.
	OrderBy string `yaml:"order_by"`
	// A dead letter blocks what comes after it in its order, until a person resends or
	// cancels it.
	Strict bool `yaml:"strict"`
	// Types of which only the latest version of a resource is sent, * for any text: an event
	// that still waits is superseded by a later one with a greater version.
	LatestOnly []string `yaml:"latest_only"`
	// Name used in idempotency keys; keeps them when a destination is renamed.
	// Default: the destination's name.
	KeyName string `yaml:"key_name"`
	// Working folder of exec, relative to the config file. Default: the folder of the
	// config file.
	Dir string `yaml:"dir"`
	// User that exec runs as, by name or number. Default: acuse's own.
	User string `yaml:"user"`
	// Environment of exec. Nothing of acuse's own goes in.
	Env map[string]Secret `yaml:"env"`
}

// Filter is a rule over events. The rule alone may stand in its place.
type Filter struct {
	// The rule: an expression that is true or false.
	When string `yaml:"when"`
	// What happens to an event for which the rule fails, by comparing a text with a number
	// say: it is delivered all the same, or parked among the dead letters.
	OnError string `yaml:"on_error" default:"deliver" oneof:"deliver|park"`
}

// Pull is a destination whose workers fetch their jobs.
type Pull struct {
	// How long a worker holds a job before it must renew.
	Lease time.Duration `yaml:"lease" default:"60s" min:"1s" max:"1h"`
}

// Retry says when failed jobs are tried again.
type Retry struct {
	// Waits between attempts; one more attempt than there are waits.
	Schedule []time.Duration `yaml:"schedule" default:"10s 30s 1m 2m 5m 15m 30m 1h 2h 4h 8h" min:"1s" max:"30d"`
	// Part of each wait that chance adds or takes away.
	Jitter float64 `yaml:"jitter" default:"0.1" min:"0" max:"0.5"`
	// Answers after which a job is a dead letter at once: statuses from 400, of which 410
	// always is one; for exec, exit codes.
	GiveUpOn []int `yaml:"give_up_on" min:"1" max:"599"`
}

// Effect is one upstream of effects.
type Effect struct {
	// Address of the upstream, or mock: for scripted replies.
	BaseURL string `yaml:"base_url"`
	// Headers that acuse adds; the agent never holds the key.
	Headers map[string]Secret `yaml:"headers"`
	// What may be called, such as "POST /v1/refunds".
	Allow []string `yaml:"allow"`
	// Listener of its own, where the upstream's paths stand at the root.
	Listen string `yaml:"listen"`
	// Whether a client's own key is taken.
	Keys string `yaml:"keys" default:"any" oneof:"any|derived"`
	// Unsafe methods that only read.
	Pass []string `yaml:"pass"`
	// Headers of the caller that go out.
	ForwardHeaders []string `yaml:"forward_headers"`
	// Headers that belong to the fingerprint.
	FingerprintHeaders []string `yaml:"fingerprint_headers"`
	// Header in which the upstream takes an idempotency key. Default: it takes none.
	UpstreamKeyHeader string `yaml:"upstream_key_header"`
	// How long the upstream remembers a key.
	UpstreamKeyLife time.Duration `yaml:"upstream_key_life" default:"24h" min:"1m" max:"365d"`
	// What an answer of 5xx means.
	On5xx string `yaml:"on_5xx" oneof:"replay|retry"`
	// How long an effect without a delivery is remembered.
	Expiry time.Duration `yaml:"expiry" default:"24h" min:"1m" max:"3650d"`
	// How to find out whether an effect in doubt happened.
	Probe Later `yaml:"probe"`
	// Most calls, such as "10/m".
	Limit Rate `yaml:"limit"`
	// Whether a person must agree: never, always, or an expression.
	Approval string `yaml:"approval" default:"never"`
	// How long an approval is waited for.
	ApprovalTimeout time.Duration `yaml:"approval_timeout" min:"1s" max:"30d"`
	// How long a call waits for the answer.
	Timeout time.Duration `yaml:"timeout" default:"30s" min:"1s" max:"15m"`
	// Largest body.
	MaxBody Size `yaml:"max_body" min:"1KiB" max:"32MiB"`
	// Scripted replies of base_url: mock:.
	Replies Later `yaml:"replies"`
}

// Alert is a place that alerts are sent to.
type Alert struct {
	// Address in the form of shoutrrr, such as "ntfy://ntfy.sh/my-topic".
	URL Secret `yaml:"url"`
}
