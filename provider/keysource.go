package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// keySource says where the keys of a scheme are fetched.
type keySource struct {
	kind    string // cert-url, pem-url, jwks-url, jwk-by-kid
	path    string // in the file
	url     *template
	hosts   hostList
	names   []string // of a certificate that chains to a public root
	ends    string   // how the path of the URL ends
	unknown string   // of jwk-by-kid: a word of the answer that there is no such key
}

var errFetched = errors.New("is of no use: the provider's key is fetched")

// parseKeySource compiles a key_source. nil: the keys are the source's secrets.
func parseKeySource(path string, f *keySourceFile, kinds ...string) (*keySource, error) {
	if f == nil || f.Kind == "static" {
		return nil, nil
	}
	if !slices.Contains(kinds, f.Kind) {
		return nil, at(join(path, "kind"), "want static, %s, not %q", strings.Join(kinds, ", "), f.Kind)
	}
	k := &keySource{kind: f.Kind, path: path, names: f.Names, ends: f.Ends, unknown: f.Unknown}
	var err error
	if k.url, err = parseTemplate(join(path, "url"), f.URL, inMessage); err != nil {
		return nil, err
	}
	if k.hosts, err = parseHosts(join(path, "allow_hosts"), f.AllowHosts); err != nil {
		return nil, err
	}
	if f.Kid != "" && f.Kid != "{jwt:kid}" {
		return nil, at(join(path, "kid"), "want {jwt:kid}")
	}
	return k, nil
}

func (k *keySource) each(f func(*placeholder)) {
	if k != nil {
		k.url.each(f)
	}
}

// locate finds the URL of the key, of an allowed host; what the request says counts no
// further than that.
func (k *keySource) locate(in *input) (string, *Refusal) {
	b, missing := k.url.append(nil, in)
	if missing != nil {
		return "", &Refusal{Reason: MissingHeader, Detail: missing.text, Signed: true}
	}
	u, ok := k.hosts.allow(string(b))
	if !ok || (k.ends != "" && !strings.HasSuffix(u.Path, k.ends)) || (u.Fragment != "" && k.kind != "jwk-by-kid") {
		return "", &Refusal{Reason: KeyUntrusted, Detail: k.path + ".allow_hosts", Signed: true}
	}
	return string(b), nil
}

func (k *keySource) request(url string) KeyRequest {
	r := KeyRequest{URL: url, Names: k.names, Kind: KeySet, Unknown: k.unknown, Host: k.hosts.name()}
	switch k.kind {
	case "cert-url":
		r.Kind = Certificate
	case "pem-url":
		r.Kind = PublicKey
	}
	return r
}

// hostList are the hosts that may be asked, as labels; "*" is exactly one label.
type hostList [][]string

func parseHosts(path string, list []string) (hostList, error) {
	if len(list) == 0 {
		return nil, at(path, "missing: name the hosts that may be asked")
	}
	var out hostList
	for _, h := range list {
		labels := strings.Split(h, ".")
		if len(labels) < 2 || slices.ContainsFunc(labels, func(l string) bool { return l != "*" && !label(l) }) || slices.Contains(labels[max(0, len(labels)-2):], "*") {
			return nil, at(path, "%q is no host name; * may stand for one label before the last two", h)
		}
		out = append(out, labels)
	}
	return out, nil
}

// allow parses a URL and tells whether it is https at an allowed host, its port the
// usual one and nothing in it that two readers could read in two ways.
func (l hostList) allow(raw string) (*url.URL, bool) {
	const longest = 2048
	u, err := url.Parse(raw)
	if err != nil || len(raw) > longest || u.Scheme != "https" || u.User != nil || u.Opaque != "" || (u.Port() != "" && u.Port() != "443") ||
		strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return nil, false
	}
	got := strings.Split(strings.ToLower(u.Hostname()), ".")
	return u, slices.ContainsFunc(l, func(want []string) bool {
		return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || (w == "*" && label(g)) })
	})
}

func label(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// name is the first entry as the file writes it, for messages: what stands in the place of its
// star is the sender's choice.
func (l hostList) name() string { return strings.Join(l[0], ".") }

// fetched keeps what was read out of fetched documents, as long as they stay the same:
// how long a document is good, and when it is looked at again, is a matter of Keys.
type fetched struct {
	keys Keys

	mu   sync.Mutex
	read map[string]readKey // by URL
}

type readKey struct {
	doc []byte
	key any
	err error
}

// maxRead is how many documents one check remembers; a provider has a handful.
const maxRead = 64

func newFetched(k Keys) *fetched {
	if k == nil {
		k = noKeys{}
	}
	return &fetched{keys: k, read: map[string]readKey{}}
}

// document gets a document and what read makes of it.
func (f *fetched) document(in *input, r KeyRequest, read func([]byte) (any, error)) (any, *Refusal) {
	doc, err := f.keys.Key(in.r.context(), r)
	switch {
	case errors.Is(err, ErrNoSuchKey), errors.Is(err, ErrUntrusted):
		return nil, &Refusal{Reason: KeyUntrusted, Detail: r.Host, Signed: true}
	case err != nil:
		return nil, noKey(r.Host, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	was, ok := f.read[r.URL]
	if !ok || !bytes.Equal(was.doc, doc) {
		was.doc = doc
		was.key, was.err = read(doc)
		if len(f.read) >= maxRead {
			clear(f.read)
		}
		f.read[r.URL] = was
	}
	if was.err != nil {
		return nil, noKey(r.Host, was.err) // a page of an outage, say: no key at all
	}
	return was.key, nil
}

// key gets a document that is one key.
func (f *fetched) key(in *input, r KeyRequest, public func([]byte) (signingKey, error)) (signingKey, *Refusal) {
	k, refusal := f.document(in, r, func(doc []byte) (any, error) { return public(doc) })
	if refusal != nil {
		return nil, refusal
	}
	return k.(signingKey), nil
}

// credentials are the body with which a key is asked for by its id (Plaid): the
// source's secret is "client_id:secret".
func credentials(secret, kid string) ([]byte, error) {
	id, word, ok := strings.Cut(secret, ":")
	if !ok || id == "" || word == "" {
		return nil, errors.New("is not client_id:secret")
	}
	return json.Marshal(map[string]string{"client_id": id, "secret": word, "key_id": kid})
}
