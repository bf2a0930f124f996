package provider

import (
	"errors"
	"maps"
	"net/http"
	"slices"
)

// signedPlan is what the kinds hmac, ed25519, ecdsa and rsa have in common: signatures
// of one of several templates, made with one of several keys.
type signedPlan struct {
	scheme   scheme
	messages []message
	sig      *signatureRule
	time     *timestampRule
	wants    wants
	equals   []equal
	decoded  bool       // the signature covers the body after its encoding was undone
	aliases  [][2]place // the same value under two names: they must not differ
	remote   *keySource // nil: the keys are the source's secrets
}

// scheme is what is particular to a kind.
type scheme interface {
	// key makes the key of a configured secret.
	key(slot int, secret string) (signingKey, error)
	// public makes the key of a fetched document.
	public(doc []byte) (signingKey, error)
	// pair makes a key pair for tests of ours; nil where the secrets sign.
	pair() (signingKey, error)
}

// signingKey checks signatures with one key; it makes them too where it can.
type signingKey interface {
	slotNumber() int // from 1; 0: not a configured one
	// verify tells whether one of in.sigs is a signature of the message. missing is what
	// the request lacks for the message to exist.
	verify(m *template, in *input) (good bool, missing *placeholder)
	// sign gives the signature of the message.
	sign(m *template, in *input) (sig []byte, missing *placeholder, err error)
	signs() bool
}

// message is one template of the signed bytes.
type message struct {
	*template
	hidden *hidden // what must not be believed when this one verified
	whole  bool    // it covers the whole body
	urls   bool    // it covers the public URL, so its variants are tried
}

// equal is a signed value that must be the one configured.
type equal struct {
	at   place
	want *template
}

func parseSigned(path string, f *authFile, s scheme) (plan, error) {
	p := &signedPlan{scheme: s, decoded: f.SignedOver == "decoded"}
	if f.SignedOver != "" && f.SignedOver != "wire" && f.SignedOver != "decoded" {
		return nil, at(join(path, "signed_over"), "want wire or decoded, not %q", f.SignedOver)
	}
	list, err := parseTemplates(join(path, "message"), f.Message, inMessage)
	if err == nil && len(list) == 0 {
		err = at(join(path, "message"), "missing")
	}
	if err == nil {
		p.sig, err = parseSignature(join(path, "signature"), f.Signature)
	}
	if err == nil {
		p.time, err = parseTimestamp(join(path, "timestamp"), f.Timestamp)
	}
	if err == nil {
		p.wants, err = parseWants(join(path, "required"), f.Required)
	}
	if err == nil {
		p.equals, err = parseEquals(join(path, "equals"), f.Equals)
	}
	if err == nil {
		p.remote, err = parseKeySource(join(path, "key_source"), f.KeySource, "cert-url", "pem-url")
	}
	if err != nil {
		return nil, err
	}
	p.messages, p.aliases = coverage(list)
	return p, nil
}

func (p *signedPlan) each(f func(*placeholder)) {
	for _, pl := range p.sig.from {
		f(pl.placeholder)
	}
	for _, t := range p.sig.keys {
		t.each(f)
	}
	if p.time != nil {
		for _, t := range p.time.from {
			t.each(f)
		}
	}
	for _, m := range p.messages {
		m.each(f)
	}
	for _, e := range p.equals {
		f(e.at.placeholder)
		e.want.each(f)
	}
	p.wants.each(f)
	p.remote.each(f)
}

func (p *signedPlan) bind(b *binding) (check, error) {
	c := &signedCheck{signedPlan: p, limit: b.limit, time: p.time.with(b.settings.Tolerance)}
	if b.rehearsal != nil {
		key, err := p.scheme.pair()
		if err != nil {
			return nil, err
		}
		if key != nil {
			b.rehearsal.add(key)
			c.keys = []signingKey{key}
			return c, nil
		}
	}
	if p.remote != nil {
		c.fetched = newFetched(b.settings.Keys)
		b.useless(errFetched)
		return c, nil
	}
	for i, secret := range b.secrets {
		key, err := p.scheme.key(i+1, secret)
		if b.take(i, err) {
			c.keys = append(c.keys, key)
		}
	}
	return c, nil
}

// signedCheck is a signedPlan with a source's keys.
type signedCheck struct {
	*signedPlan
	keys    []signingKey
	fetched *fetched // nil: keys holds all there are
	time    *timestampRule
	limit   int64
}

func (c *signedCheck) verify(in *input) verdict {
	in.hidden = nil
	if name := c.wants.missing(in); name != "" {
		return refuse(MissingHeader, name, false)
	}
	if r := c.sig.collect(in); r != nil {
		return verdict{refusal: r}
	}
	if r := c.decode(in); r != nil {
		return verdict{refusal: r}
	}
	for _, pair := range c.aliases {
		a, okA := pair[0].read(in)
		b, okB := pair[1].read(in)
		if okA && okB && a != b {
			return refuse(MalformedHeader, pair[0].text+" differs from "+pair[1].text, true)
		}
	}
	keys, r := c.keysFor(in)
	if r != nil {
		return verdict{refusal: r}
	}
	v := c.try(in, keys)
	if v.refusal == nil {
		v.refusal = c.unequal(in)
	}
	return v
}

// keysFor gives the keys to try. One that must be fetched is asked for only when all
// else that makes a good request is there.
func (c *signedCheck) keysFor(in *input) ([]signingKey, *Refusal) {
	if c.fetched == nil {
		return c.keys, nil
	}
	url, r := c.remote.locate(in)
	if r != nil {
		return nil, r
	}
	if !in.sigs.some() || !c.anyComplete(in) {
		return nil, nil // try says what is wrong
	}
	key, r := c.fetched.key(in, c.remote.request(url), c.scheme.public)
	if r != nil {
		return nil, r
	}
	return []signingKey{key}, nil
}

// try looks for a key and a message that give one of the signatures.
func (c *signedCheck) try(in *input, keys []signingKey) verdict {
	var missing *placeholder
	complete := len(keys) == 0 && c.anyComplete(in)
	var urls [2]string
	for i := range c.messages {
		m := &c.messages[i]
		for _, u := range urlVariants(urls[:0], in.r.URL, m.urls) {
			in.url = u
			for _, k := range keys {
				good, miss := k.verify(m.template, in)
				if miss != nil {
					missing = miss
					break
				}
				complete = true
				if good {
					in.url, in.hidden = in.r.URL, m.hidden
					return verdict{refusal: c.time.judge(in), slot: k.slotNumber(), whole: m.whole, hidden: m.hidden}
				}
			}
		}
	}
	in.url = in.r.URL
	signed := in.sigs.some()
	switch {
	case complete:
		return refuse(SignatureMismatch, c.sig.from[0].text, signed)
	case missing != nil && missing.src == srcSig:
		return refuse(MalformedHeader, c.sig.from[0].text, signed)
	case missing != nil:
		return refuse(MissingHeader, missing.text, signed)
	}
	return refuse(MissingHeader, c.sig.from[0].text, false)
}

// anyComplete tells, without a key, whether a message can be made.
func (c *signedCheck) anyComplete(in *input) bool {
	for i := range c.messages {
		out, missing := c.messages[i].append(in.buf[:0], in)
		if in.buf = out; missing == nil {
			return true
		}
	}
	return false
}

// unequal refuses a signed request that is about something else than this source: of
// another account or topic, whose signatures are as good.
func (c *signedCheck) unequal(in *input) *Refusal {
	for _, e := range c.equals {
		got, ok := e.at.read(in)
		want, missing := e.want.append(nil, in)
		if !ok || missing != nil || got != string(want) {
			return &Refusal{Reason: ClaimMismatch, Detail: e.at.text, Signed: true}
		}
	}
	return nil
}

// decode undoes the content encoding where signatures cover the decoded body.
func (c *signedCheck) decode(in *input) *Refusal {
	if !c.decoded {
		in.body = in.r.Body // another alternative may have looked at the decoded one
		return nil
	}
	enc, _ := joined(in.r.Header["Content-Encoding"])
	b, err := unpack(enc, in.r.Body, c.limit)
	switch {
	case errors.Is(err, errEncoding):
		return &Refusal{Reason: UnsupportedEncoding, Detail: "header:Content-Encoding"}
	case errors.Is(err, errTooLarge):
		return &Refusal{Reason: TooLarge, Detail: "decoded"}
	case err != nil:
		return &Refusal{Reason: MalformedBody, Detail: "header:Content-Encoding"}
	}
	in.body = b
	in.setText(b)
	return nil
}

func (c *signedCheck) early(h http.Header) *Refusal {
	if name := c.wants.early(h); name != "" {
		return &Refusal{Reason: MissingHeader, Detail: name}
	}
	for _, p := range c.sig.from {
		if !p.lacks(h) {
			return nil
		}
	}
	return &Refusal{Reason: MissingHeader, Detail: c.sig.from[0].text}
}

func (c *signedCheck) present(in *input) bool {
	if c.wants.missing(in) != "" {
		return false
	}
	for _, p := range c.sig.from {
		if v, ok := p.read(in); ok && v != "" {
			return true
		}
	}
	return false
}

func (c *signedCheck) marks(f func(*placeholder)) {
	for _, p := range c.sig.from {
		f(p.placeholder)
	}
	if c.time != nil {
		for _, t := range c.time.from {
			t.each(f)
		}
	}
}

func (c *signedCheck) canSign() bool {
	for _, k := range c.keys {
		if k.signs() {
			return true
		}
	}
	return false
}

func parseEquals(path string, values map[string]string) (out []equal, err error) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var e equal
		if e.at, err = parsePlace(join(path, name), name); err != nil {
			return nil, err
		}
		if e.want, err = parseTemplate(join(path, name), values[name], inConfig); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}
