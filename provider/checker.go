package provider

import (
	"io/fs"
	"net/http"
	"time"
)

// Catalogue is a set of providers by name.
type Catalogue struct {
	byName map[string]*Provider
}

// Provider is one file of the catalogue.
type Provider struct {
	Name  string
	Title string
	file  *file
}

// file is the decoded JSON of a provider.
type file struct{}

// Embedded is the catalogue that comes with the binary.
func Embedded() (*Catalogue, error) { panic("provider: being written") }

// Load reads every *.json of the folder. An unknown field, kind or filter is an
// error that names file and field.
func Load(dir fs.FS) (*Catalogue, error) { panic("provider: being written") }

// Get finds a provider by name.
func (c *Catalogue) Get(name string) (*Provider, bool) { p, ok := c.byName[name]; return p, ok }

// Names lists the providers in order of name.
func (c *Catalogue) Names() []string { panic("provider: being written") }

// Horizon is how long the provider goes on retrying; 0 is not known.
func (p *Provider) Horizon() time.Duration { panic("provider: being written") }

// Window is how long the dedup key of an event must be remembered by the rules of
// design section 4, before the source's own setting and the life of its row: at
// least 7 days, or the file's own window. bodyHash: the id is a digest of the body.
func (p *Provider) Window(bodyHash bool) time.Duration { panic("provider: being written") }

// MaxBody is how many bytes the provider may send; 0 is not stated.
func (p *Provider) MaxBody() int64 { panic("provider: being written") }

// RejectStatus is the status the provider wants for a failed check; 401 by default.
func (p *Provider) RejectStatus() int { panic("provider: being written") }

// Checker is a provider with one source's settings, compiled. It is safe for use
// by several goroutines.
type Checker struct{}

// Compile makes a Checker. Its errors name the field and hide values.
func (p *Provider) Compile(s Settings) (*Checker, error) { panic("provider: being written") }

// Custom is the provider of a source that names none: auth comes from Settings.
func Custom() *Provider { panic("provider: being written") }

// Early refuses a request that lacks a required signature header, before its body
// is read; nil when nothing can be said yet. GET and HEAD are never refused here.
func (c *Checker) Early(method string, h http.Header) error { panic("provider: being written") }

// Methods are what the source answers besides POST: those of its handshakes.
func (c *Checker) Methods() []string { panic("provider: being written") }

// Receive judges a request: handshake, signature over the raw bytes, then identity.
// The error is a *Refusal.
func (c *Checker) Receive(r *Request, now time.Time) (Result, error) {
	panic("provider: being written")
}

// Identify reads identity alone, of a request that was verified before (release
// from quarantine).
func (c *Checker) Identify(r *Request) Result { panic("provider: being written") }

// Reply is what the provider wants to read after a stored event or a refusal it
// stated an answer for; nil when it does not care.
func (c *Checker) Reply(r *Request) *Reply { panic("provider: being written") }

// Item rebuilds the body that holds only the item part of a batch, its bytes
// unchanged within the original envelope.
func (c *Checker) Item(body []byte, part int) ([]byte, error) { panic("provider: being written") }

// CanSign tells whether Sign works: symmetric schemes only.
func (c *Checker) CanSign() bool { panic("provider: being written") }

// Sign signs a request afresh as the provider would: it sets the headers (or the
// query of the target, or form fields) that Receive will look for, with a timestamp
// of now and, for slot > 0, the secret of that slot first; where the header holds a
// list, with every secret. Everything else stays as it is.
func (c *Checker) Sign(r *Request, slot int, now time.Time) error { panic("provider: being written") }

// AuthHeaders are the names of headers that carry signatures, tokens or their
// timestamps: masked on pages, kept as keyed digests in rejections.
func (c *Checker) AuthHeaders() []string { panic("provider: being written") }

// AuthQuery are the names of query parameters that carry tokens.
func (c *Checker) AuthQuery() []string { panic("provider: being written") }
