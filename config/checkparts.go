package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (k *checker) source(name string, s *Source) {
	at := "sources." + shown(name)
	k.name(at, name)
	if s.KeyName == "" {
		s.KeyName = name
	} else {
		k.name(at+".key_name", s.KeyName)
	}
	k.authentication(at, s)
	if s.MoreSecrets != nil && k.c.lines[at+".more_secrets"].file == k.c.file {
		k.wrong(at+".more_secrets", "belongs into DATA/conf.d: list it under secrets")
	}
	k.url(at+".public_url", &s.PublicURL, true)
	switch {
	case len(s.DeliverTo) == 0:
		k.wrong(at+".deliver_to", "names no destination: its events would go nowhere")
	default:
		k.deliverTo(at, s.DeliverTo)
	}
	k.filter(at+".filter", s.Filter)
	if r := s.Response; r != nil {
		k.headers(at+".response.headers", slices.Collect(maps.Keys(r.Headers)))
		k.values(at+".response.headers", r.Headers)
	}
	for i, t := range s.Type {
		if t == "" {
			k.wrong(fmt.Sprintf("%s.type[%d]", at, i), "is empty")
		}
	}
}

// filter checks what can be seen without reading the rule.
func (k *checker) filter(at string, f *Filter) {
	if f != nil && strings.TrimSpace(f.When) == "" {
		k.wrong(at, "names no rule: give an expression, or {when: …, on_error: …}")
	}
}

// order checks order_by, strict and latest_only.
func (k *checker) order(at string, d *Destination) {
	if d.OrderBy == "" && k.given(at+".order_by") {
		k.wrong(at+".order_by", "is empty: resource or an expression is wanted")
	}
	if d.Strict && d.OrderBy == "" {
		k.warn(at+".strict", "means nothing without order_by")
	}
	for i, p := range d.LatestOnly {
		if strings.TrimSpace(p) == "" {
			k.wrong(fmt.Sprintf("%s.latest_only[%d]", at, i), `is empty: a type is wanted, such as "invoice.*"`)
		}
	}
}

func (k *checker) authentication(at string, s *Source) {
	switch {
	case s.Provider == "" && s.Auth == nil && !s.Unsigned:
		k.wrong(at, "names no provider; give one (acuse provider list), or auth, or unsigned: true")
	case s.Unsigned && s.Auth != nil:
		k.wrong(at+".auth", "means nothing beside unsigned: true; remove one of them")
	case s.Unsigned && (s.Secrets.Capture || len(s.Secrets.Values) > 0):
		k.wrong(at+".secrets", "means nothing beside unsigned: true; remove one of them")
	case s.Unsigned:
		k.warn(at+".unsigned", "takes events from anyone who knows its address")
	}
	for i, secret := range s.Secrets.Values {
		if strings.TrimSpace(string(secret)) == "" {
			k.wrong(fmt.Sprintf("%s.secrets[%d]", at, i), "is empty")
		} else if slices.Contains(s.Secrets.Values[:i], secret) {
			k.warn(fmt.Sprintf("%s.secrets[%d]", at, i), "is the same as one before it")
		}
	}
	if len(s.Secrets.Values) > maxSecrets {
		k.wrong(at+".secrets", "has %d entries, more than the %d that are tried", len(s.Secrets.Values), maxSecrets)
	}
}

// maxSecrets are tried for a request; more would be work that a stranger can order.
const maxSecrets = 8

func (k *checker) deliverTo(at string, names []string) {
	for i, n := range names {
		path := fmt.Sprintf("%s.deliver_to[%d]", at, i)
		switch {
		case slices.Contains(names[:i], n):
			k.wrong(path, "is named twice")
		case k.c.Destinations[n] == nil:
			k.wrong(path, "there is no such destination%s", meant(n, slices.Collect(maps.Keys(k.c.Destinations))))
		}
	}
}

func (k *checker) destination(name string, d *Destination) {
	at := "destinations." + shown(name)
	k.name(at, name)
	if d.KeyName == "" {
		d.KeyName = name
	} else {
		k.name(at+".key_name", d.KeyName)
	}
	k.kind(at, d)
	k.filter(at+".filter", d.Filter)
	k.order(at, d)
	if !k.used(name) {
		k.warn(at, "no source delivers to it")
	}
	if len(d.Retry.Schedule) > 100 {
		k.wrong(at+".retry.schedule", "at most 100 waits are wanted")
	}
	if d.MaxAge > 0 && d.HardLimit > d.MaxAge {
		k.warn(at+".max_age", "is shorter than hard_limit: a long attempt uses it up")
	}
}

func (k *checker) used(name string) bool {
	for _, s := range k.c.Sources {
		if slices.Contains(s.DeliverTo, name) {
			return true
		}
	}
	return false
}

// kind checks that one of url, exec and pull is given, and what belongs to it.
func (k *checker) kind(at string, d *Destination) {
	kinds := 0
	for _, given := range []bool{d.URL != "", d.Exec != nil, d.Pull != nil} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		k.wrong(at, "exactly one of url, exec and pull is wanted")
	case d.URL != "":
		k.http(at, d)
	case d.Pull != nil:
		k.meaningless(at, "means nothing for pull: its workers fetch their jobs", append(httpKeys, "concurrency", "dir", "user", "env")...)
		d.Signature, d.IdempotencyHeader, d.Timeout, d.Concurrency = "", "", 0, 0
	default:
		k.exec(at, d)
	}
}

// httpKeys shape a request: they belong to url alone.
var httpKeys = []string{"method", "headers", "signature", "secret", "idempotency_header", "timeout"}

func (k *checker) meaningless(at, why string, keys ...string) {
	for _, key := range keys {
		if k.given(at + "." + key) {
			k.warn(at+"."+key, "%s", why)
		}
	}
}

// tempFail is the exit code that always asks for another try.
const tempFail = 75

func (k *checker) exec(at string, d *Destination) {
	k.meaningless(at, "means nothing for exec; hard_limit bounds its time", httpKeys...)
	d.Signature, d.IdempotencyHeader, d.Timeout = "", "", 0
	if d.HardLimit == 0 {
		d.HardLimit = hardLimitExec
	}
	if len(d.Exec) == 0 || d.Exec[0] == "" {
		k.wrong(at+".exec", "a program is wanted, such as [\"/usr/local/bin/on-event\"]")
	}
	for i, arg := range d.Exec {
		if strings.ContainsRune(arg, 0) {
			k.wrong(fmt.Sprintf("%s.exec[%d]", at, i), "holds a zero byte")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		switch {
		case !variableForm.MatchString(name):
			k.wrong(at+".env."+name, "the name of a variable has letters, digits and _")
		case strings.HasPrefix(name, "ACUSE_"):
			k.wrong(at+".env."+name, "acuse sets the variables that begin with ACUSE_ itself")
		case strings.ContainsRune(string(d.Env[name]), 0):
			k.wrong(at+".env."+name, "holds a zero byte")
		}
	}
	for i, code := range d.Retry.GiveUpOn {
		switch path := fmt.Sprintf("%s.retry.give_up_on[%d]", at, i); {
		case code == tempFail:
			k.wrong(path, "75 always asks for another try")
		case code > 255:
			k.wrong(path, "an exit code is at most 255")
		}
	}
	if d.User == "" {
		k.warn(at+".exec", "runs as acuse's own user, who may read all that acuse stores; set user, where acuse runs as root")
	}
}

func (k *checker) http(at string, d *Destination) {
	k.url(at+".url", &d.URL, false)
	k.meaningless(at, "means nothing for url: it belongs to exec", "dir", "user", "env")
	k.statuses(at, d)
	if d.HardLimit == 0 {
		d.HardLimit = hardLimitHTTP
	}
	if d.HardLimit < d.Timeout {
		k.wrong(at+".hard_limit", "is shorter than timeout")
	}
	if d.Method != "" && !methodForm(d.Method) {
		k.wrong(at+".method", "a method in capitals is wanted, such as POST")
	}
	k.headers(at+".headers", slices.Collect(maps.Keys(d.Headers)))
	plain := map[string]string{}
	for n, v := range d.Headers {
		plain[n] = string(v)
	}
	k.values(at+".headers", plain)
	switch {
	case d.Signature == "standard" && d.Secret == "":
		k.wrong(at+".signature", "standard needs a secret")
	case d.Signature != "standard" && d.Secret != "":
		k.warn(at+".secret", "means nothing without signature: standard")
	}
	if h := d.IdempotencyHeader; !headerForm.MatchString(h) || notOurs[h] {
		k.wrong(at+".idempotency_header", "the name of a header is wanted, or none")
	}
}

// statuses checks that what ends a job at once is an answer that refuses.
func (k *checker) statuses(at string, d *Destination) {
	for i, code := range d.Retry.GiveUpOn {
		if code < 400 {
			k.wrong(fmt.Sprintf("%s.retry.give_up_on[%d]", at, i), "at least 400 is wanted")
		}
	}
}

func methodForm(m string) bool {
	return headerForm.MatchString(m) && m == strings.ToUpper(m) && m != "CONNECT" && m != "TRACE"
}
