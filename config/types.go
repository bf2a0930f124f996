package config

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"time"
)

// hidden stands for a value that is not shown.
const hidden = "[hidden]"

// Secret is a text that is never printed: fmt, slog and JSON show "[hidden]".
// string(s) is the value.
type Secret string

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the value from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// URL is an http or https address that was checked. User, password and the values
// of its query are never printed; string(u) is the whole.
type URL string

func (u URL) String() string {
	p, err := url.Parse(string(u))
	if err != nil || u == "" {
		return Secret(u).String()
	}
	s := p.Scheme + "://"
	if p.User != nil {
		s += hidden + "@"
	}
	s += p.Host + p.EscapedPath()
	if p.RawQuery != "" {
		s += "?" + hidden
	}
	return s
}

// GoString hides what String hides.
func (u URL) GoString() string { return u.String() }

// LogValue hides what String hides.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText hides what String hides.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// Secrets are the secrets of a source, or the word capture.
type Secrets struct {
	Values  []Secret
	Capture bool // waits for a handshake that brings the secret
}

// Strings are the values in clear.
func (s Secrets) Strings() []string {
	out := make([]string, len(s.Values))
	for i, v := range s.Values {
		out[i] = string(v)
	}
	return out
}

// Size counts bytes.
type Size int64

// Rate is a number of acts in a time.
type Rate struct {
	N   int
	Per time.Duration // a second, a minute or an hour; 0: no limit
}

// Templates are one template or a list of them, tried in order.
type Templates []string

// ID says where the event id stands: at most one field is set.
type ID struct {
	Template string
	First    []string
	Join     []string
}

// IsZero tells whether the provider's own id holds.
func (id ID) IsZero() bool { return id.Template == "" && id.First == nil && id.Join == nil }

// JSON is an object of the file in JSON, with ${} and file: put in; nil: not given.
// Its strings may be secret.
type JSON []byte

var _ json.Marshaler = JSON(nil)

// MarshalJSON hides the object.
func (j JSON) MarshalJSON() ([]byte, error) { return []byte(`"` + Secret(j).String() + `"`), nil }

func (j JSON) String() string { return Secret(j).String() }

// GoString hides the object from %#v.
func (j JSON) GoString() string { return j.String() }

// LogValue hides the object from logs.
func (j JSON) LogValue() slog.Value { return slog.StringValue(j.String()) }

// Later is a key whose form a later version settles.
type Later struct{}
