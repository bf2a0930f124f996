package provider

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Vector is one recorded request and what must be said about it.
type Vector struct {
	Name         string            `json:"name"` // "stripe/good-1"
	Case         string            `json:"case"`
	Why          string            `json:"why"`
	Origin       string            `json:"origin"`
	Method       string            `json:"method"`
	Path         string            `json:"path"` // and query, as received
	URL          string            `json:"url"`  // the public URL, when it is signed
	Headers      map[string]texts  `json:"headers"`
	Body         string            `json:"body"`
	BodyEncoding string            `json:"body_encoding"` // utf8 (default) or base64
	Secrets      []string          `json:"secrets"`
	Params       map[string]string `json:"params"`
	Auth         json.RawMessage   `json:"auth"`  // replaces the provider's
	Fetch        map[string]string `json:"fetch"` // what a URL would have given
	RemoteAddr   string            `json:"remote_addr"`
	Now          int64             `json:"now"` // unix seconds
	Expect       struct {
		Verdict  string `json:"verdict"` // ok, reject
		Reason   string `json:"reason"`
		ID       string `json:"id"`
		Type     string `json:"type"`
		Resource string `json:"resource"`
		Version  string `json:"version"`
		Items    []struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Resource string `json:"resource"`
		} `json:"items"`
		Response *struct {
			Status  int               `json:"status"`
			Headers map[string]string `json:"headers"`
			Body    *string           `json:"body"`
		} `json:"response"`
	} `json:"expect"`
}

// ReadVectors reads an array of vectors. An unknown field is an error.
func ReadVectors(r io.Reader) ([]Vector, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(bytes.TrimSpace(b), &raw); err != nil {
		return nil, err
	}
	out := make([]Vector, len(raw))
	for i, one := range raw {
		if err := strict(fmt.Sprintf("[%d]", i), one, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Request is the request of the vector, as net/http would hand it over.
func (v *Vector) Request() (*Request, error) {
	r := &Request{Method: v.Method, Target: v.Path, URL: v.URL, Header: http.Header{}, Body: []byte(v.Body)}
	if r.URL == "" {
		r.URL = "https://hooks.example.test" + v.Path
	}
	for _, name := range slices.Sorted(maps.Keys(v.Headers)) {
		for _, value := range v.Headers[name] {
			r.Header.Add(name, value)
		}
	}
	if v.BodyEncoding == "base64" {
		b, err := base64.StdEncoding.DecodeString(v.Body)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		r.Body = b
	}
	if v.RemoteAddr != "" {
		a, err := netip.ParseAddr(v.RemoteAddr)
		if err != nil {
			return nil, fmt.Errorf("remote_addr: %w", err)
		}
		r.Remote = a
	}
	r.Capturing = len(v.Secrets) == 0
	return r, nil
}

// Settings are those of a source that the vector could have been sent to.
func (v *Vector) Settings(p *Provider) Settings {
	return Settings{Secrets: v.Secrets, Params: v.Params, Auth: v.Auth, Waiting: len(v.Secrets) == 0,
		Unsigned: p.unsigned() && len(v.Auth) == 0, Keys: shelf(v.Fetch)}
}

// shelf is Keys for vectors: documents by URL. One that is not there does not exist.
type shelf map[string]string

func (s shelf) Key(_ context.Context, r KeyRequest) ([]byte, error) {
	doc, ok := s[r.URL]
	if !ok {
		return nil, ErrNoSuchKey
	}
	return []byte(doc), nil
}

func (s shelf) Ask(_ context.Context, url, _ string) (int, []byte, error) {
	if doc, ok := s[url]; ok {
		return http.StatusOK, []byte(doc), nil
	}
	return http.StatusNotFound, nil, nil
}

// Judge runs a vector through Compile and Receive exactly as the edge does, by the
// vector's own clock, and says what differs from its expectation; none: it passes.
func (c *Catalogue) Judge(v Vector, providerName string) (diffs []string) {
	p, ok := c.Get(providerName)
	if !ok {
		return []string{fmt.Sprintf("no provider %q", providerName)}
	}
	ch, err := p.Compile(v.Settings(p))
	if err != nil {
		return []string{"compile: " + err.Error()}
	}
	r, err := v.Request()
	if err != nil {
		return []string{err.Error()}
	}
	var d differ
	res, err := ch.Receive(r, time.Unix(v.Now, 0))
	var refusal *Refusal
	verdict, reason := "ok", "verified"
	switch {
	case errors.As(err, &refusal):
		verdict, reason = "reject", string(refusal.Reason)
	case res.Handshake != nil:
		reason = "handshake"
	case res.Unverified:
		reason = "unverified"
	}
	d.want("verdict", v.Expect.Verdict, verdict)
	d.want("reason", v.Expect.Reason, reason)
	if early := ch.Early(r.Method, r.Header); early != nil && verdict == "ok" {
		d.add("the request passes, yet it is refused before its body is read: %v", early)
	}
	if len(d.list) > 0 || verdict == "reject" {
		return d.list
	}
	if res.Handshake != nil {
		d.reply(&v, res.Handshake)
		return d.list
	}
	d.identity(&v, ch, r, res)
	return d.list
}

// differ gathers what is not as expected.
type differ struct{ list []string }

func (d *differ) add(format string, args ...any) {
	d.list = append(d.list, fmt.Sprintf(format, args...))
}

func (d *differ) want(what, want, got string) {
	if want != got {
		d.add("%s: want %q, got %q", what, want, got)
	}
}

func (d *differ) reply(v *Vector, got *Reply) {
	want := v.Expect.Response
	if want == nil {
		return
	}
	d.want("response.status", strconv.Itoa(want.Status), strconv.Itoa(got.Status))
	if want.Body != nil {
		d.want("response.body", *want.Body, string(got.Body))
	}
	for name, value := range want.Headers {
		d.want("response.headers."+name, value, got.Header.Get(name))
	}
}

// identity compares ids. The id of a batch is the request's own; its items are compared
// where the vector lists them.
func (d *differ) identity(v *Vector, ch *Checker, r *Request, res Result) {
	if res.Quarantine != "" {
		d.add("quarantined: %s", res.Quarantine)
		return
	}
	e, items := ch.request(r)
	if len(items) == 0 && len(res.Events) == 1 {
		e = res.Events[0]
	}
	if strings.Contains(e.ID, "sha256:") && len(v.Expect.ID) > MaxID {
		v.Expect.ID = KeptID(v.Expect.ID)
	}
	d.want("id", v.Expect.ID, e.ID)
	d.want("type", v.Expect.Type, e.Type)
	d.want("resource", v.Expect.Resource, e.Resource)
	d.want("version", v.Expect.Version, e.Version)
	if v.Expect.Items == nil {
		return
	}
	if len(items) != len(v.Expect.Items) {
		d.add("items: want %d, got %d", len(v.Expect.Items), len(items))
		return
	}
	for i, want := range v.Expect.Items {
		d.want(fmt.Sprintf("items[%d].id", i), want.ID, items[i].ID)
		d.want(fmt.Sprintf("items[%d].type", i), want.Type, items[i].Type)
		d.want(fmt.Sprintf("items[%d].resource", i), want.Resource, items[i].Resource)
	}
}

// request reads the identity of a verified request as one event, and of its items.
func (c *Checker) request(r *Request) (whole Event, items []Event) {
	in := c.open(r, r.zero())
	defer in.close()
	in.hidden = c.auth.verify(in).hidden
	c.unpackText(in)
	whole = c.whole(in)
	b, _ := c.split(in)
	one := *c
	one.splits = true
	if b.found {
		if res, refusal := one.items(in, Result{}, b); refusal == nil {
			items = res.Events
		}
	}
	return whole, items
}
