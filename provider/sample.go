package provider

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

//go:embed samples/*/*.json
var samples embed.FS

// Sample is a request as a provider might send it, plainly fake and unsigned: Sign adds
// the signature. Body and Header are the caller's own.
type Sample struct {
	Type   string
	Method string
	Query  string // of the address, without "?"; empty: none
	Header http.Header
	Body   []byte
}

// ErrNoSample is the error of a provider or type of which there is no sample.
var ErrNoSample = errors.New("provider: no such sample")

// sampleFile is one file of a provider's folder. The body is JSON, or the fields of a
// form.
type sampleFile struct {
	Type      string                     `json:"type"`
	Headers   map[string]string          `json:"headers"`
	ID        string                     `json:"id"` // where the id is no single value: a text of the sample that a test id replaces everywhere
	Query     map[string]string          `json:"query"`
	Body      json.RawMessage            `json:"body"`
	Form      map[string]json.RawMessage `json:"form"`      // text, or JSON that the field holds as text
	Encode    map[string]string          `json:"encode"`    // form field to "base64"
	Multipart bool                       `json:"multipart"` // the form is multipart/form-data
}

// readSamples reads a provider's folder: type to sample.
func readSamples(dir fs.FS, name string) (map[string]sampleFile, error) {
	files, err := fs.Glob(dir, "samples/"+name+"/*.json")
	if err != nil {
		return nil, err
	}
	out := map[string]sampleFile{}
	for _, file := range files {
		b, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, err
		}
		var s sampleFile
		if err := strict("", b, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if (s.Form == nil) == (s.Body == nil) {
			return nil, fmt.Errorf("%s: want body or form", file)
		}
		if s.Form == nil {
			if s.Body, err = compact(s.Body); err != nil {
				return nil, fmt.Errorf("%s: body: %w", file, err)
			}
		}
		out[s.Type] = s
	}
	return out, nil
}

// compact writes JSON as senders do.
func compact(b []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Compact(&out, b)
	return out.Bytes(), err
}

// Types lists the event types of which there is a sample, sorted.
func (p *Provider) Types() []string { return slices.Sorted(maps.Keys(p.samples)) }

// Sample gives a request of a type; "" is the first of Types. id becomes the event id,
// or the part of it that tells events apart; where the provider's ids are numbers it must
// be one; "" leaves the sample's own.
func (p *Provider) Sample(typ, id string) (Sample, error) {
	if typ == "" && len(p.samples) > 0 {
		typ = p.Types()[0]
	}
	f, ok := p.samples[typ]
	if !ok {
		return Sample{}, fmt.Errorf("%w: %s %q", ErrNoSample, p.Name, typ)
	}
	replace := strings.NewReplacer()
	if id != "" && f.ID != "" {
		if digits(f.ID) && !digits(id) {
			return Sample{}, p.wantNumber()
		}
		replace = strings.NewReplacer(f.ID, id)
	}
	r := &Request{Method: http.MethodPost, Header: http.Header{}, Target: "/"}
	for name, value := range f.Headers {
		r.Header.Set(name, replace.Replace(value))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Query)) {
		r.Target = setQuery(r.Target, name, replace.Replace(f.Query[name]))
	}
	if err := f.write(r, replace); err != nil {
		return Sample{}, fmt.Errorf("%s %q: %w", p.Name, typ, err)
	}
	if id != "" && f.ID == "" {
		if err := p.setID(r, id); err != nil {
			return Sample{}, err
		}
	}
	_, query, _ := strings.Cut(r.Target, "?")
	return Sample{Type: typ, Method: r.Method, Query: query, Header: r.Header, Body: r.Body}, nil
}

// write makes the body of the request.
func (f *sampleFile) write(r *Request, replace *strings.Replacer) error {
	if f.Form == nil {
		r.Body = []byte(replace.Replace(string(f.Body)))
		return nil
	}
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	if err := parts.SetBoundary("acuse-sample-boundary"); err != nil {
		return err
	}
	pairs := ""
	for _, name := range slices.Sorted(maps.Keys(f.Form)) {
		value, err := f.field(name)
		if err != nil {
			return err
		}
		value = replace.Replace(value)
		if f.Encode[name] == "base64" {
			value = base64.StdEncoding.EncodeToString([]byte(value))
		}
		pairs = setPair(pairs, name, value)
		if err := parts.WriteField(name, value); err != nil {
			return err
		}
	}
	r.Body = []byte(pairs)
	if f.Multipart {
		if err := parts.Close(); err != nil {
			return err
		}
		r.Body = body.Bytes()
		r.Header.Set("Content-Type", parts.FormDataContentType())
	}
	return nil
}

// field is the value of a form field: a text as it stands, other JSON written as text.
func (f *sampleFile) field(name string) (string, error) {
	raw := f.Form[name]
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	b, err := compact(raw)
	return string(b), err
}

// SampleID makes an event id that nobody takes for a real one: "evt_acuse_test_…", or a
// number where the provider's ids are numbers. Different n give different ids.
func (p *Provider) SampleID(n uint64) string {
	if p.numericID() {
		return strconv.FormatUint(n, 10)
	}
	return "evt_acuse_test_" + strconv.FormatUint(n, 36)
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (p *Provider) wantNumber() error {
	return fmt.Errorf("provider: the event ids of %s are numbers", p.Name)
}

// numericID tells whether any sample wants a number: such an id suits the others too.
func (p *Provider) numericID() bool {
	for _, f := range p.samples {
		if f.ID != "" {
			if digits(f.ID) {
				return true
			}
			continue
		}
		for _, ph := range p.idPlaces() {
			if ph.src == srcJSON {
				if v := lookup(string(f.Body), ph.arg); v.Exists() && v.Raw != "" && v.Raw[0] != '"' {
					return true
				}
			}
		}
	}
	return false
}

// idPlaces are the values that alone are the id.
func (p *Provider) idPlaces() []*placeholder {
	var out []*placeholder
	for _, t := range p.key {
		if len(t.parts) == 1 && t.parts[0].ph != nil && len(t.parts[0].ph.filters) == 0 {
			out = append(out, t.parts[0].ph)
		}
	}
	return out
}

// setID writes the id wherever the sample holds one.
func (p *Provider) setID(r *Request, id string) error {
	c := &Checker{}
	in := c.open(r, r.zero())
	defer in.close()
	s := &signing{in: in}
	done := false
	for _, ph := range p.idPlaces() {
		old, ok := ph.append(nil, in)
		if !ok {
			continue
		}
		if _, err := strconv.ParseUint(id, 10, 64); err != nil && ph.src == srcJSON && lookup(in.json(), ph.arg).Raw == string(old) {
			return p.wantNumber()
		}
		if err := s.set(place{placeholder: ph}, id); err != nil {
			return err
		}
		done = true
	}
	if !done {
		return fmt.Errorf("provider: the sample of %s holds no id", p.Name)
	}
	return nil
}
