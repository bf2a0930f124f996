package provider

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

//go:embed samples/*/*.json
var samples embed.FS

// Sample is a request as a provider might send it, plainly fake and unsigned: Sign adds
// the signature. Body and Header are the caller's own.
type Sample struct {
	Type   string
	Method string
	Header http.Header
	Body   []byte
}

// ErrNoSample is the error of a provider or type of which there is no sample.
var ErrNoSample = errors.New("provider: no such sample")

type sampleFile struct {
	Type    string            `json:"type"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
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
		var compact bytes.Buffer // as senders write it
		if err := json.Compact(&compact, s.Body); err != nil {
			return nil, fmt.Errorf("%s: body: %w", file, err)
		}
		s.Body = compact.Bytes()
		out[s.Type] = s
	}
	return out, nil
}

// Types lists the event types of which there is a sample, sorted.
func (p *Provider) Types() []string { return slices.Sorted(maps.Keys(p.samples)) }

// Sample gives a request of a type; "" is the first of Types. id becomes the event id,
// where the provider's ids are numbers it must be one; "" leaves the sample's own.
func (p *Provider) Sample(typ, id string) (Sample, error) {
	if typ == "" && len(p.samples) > 0 {
		typ = p.Types()[0]
	}
	f, ok := p.samples[typ]
	if !ok {
		return Sample{}, fmt.Errorf("%w: %s %q", ErrNoSample, p.Name, typ)
	}
	r := &Request{Method: http.MethodPost, Header: http.Header{}, Body: slices.Clone([]byte(f.Body))}
	for name, value := range f.Headers {
		r.Header.Set(name, value)
	}
	if id != "" {
		if err := p.setID(r, id); err != nil {
			return Sample{}, err
		}
	}
	return Sample{Type: typ, Method: r.Method, Header: r.Header, Body: r.Body}, nil
}

// SampleID makes an event id that nobody takes for a real one: "evt_acuse_test_…", or a
// number where the provider's ids are numbers. Different n give different ids.
func (p *Provider) SampleID(n uint64) string {
	if p.numericID() {
		return strconv.FormatUint(n, 10)
	}
	return "evt_acuse_test_" + strconv.FormatUint(n, 36)
}

func (p *Provider) numericID() bool {
	s, err := p.Sample("", "")
	if err != nil {
		return false
	}
	for _, ph := range p.idPlaces() {
		if ph.src == srcJSON {
			v := lookup(string(s.Body), ph.arg)
			return v.Exists() && v.Raw != "" && v.Raw[0] != '"'
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
			return fmt.Errorf("provider: the event ids of %s are numbers", p.Name)
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
