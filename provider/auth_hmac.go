package provider

import (
	"crypto/hmac"
	"errors"
	"hash"
	"net/http"
	"sync"
)

// hmacPlan is kind hmac: a keyed hash over a template.
type hmacPlan struct {
	newHash  func() hash.Hash
	key      keyRule
	messages []message
	sig      *signatureRule
	time     *timestampRule
	wants    wants
	decoded  bool       // the signature covers the body after its encoding was undone
	aliases  [][2]place // the same value under two names: they must not differ
}

// message is one template of the signed bytes.
type message struct {
	*template
	hidden *hidden // what must not be believed when this one verified
	whole  bool    // it covers the whole body
	urls   bool    // it covers the public URL, so its variants are tried
}

func parseHMAC(path string, f *authFile) (plan, error) {
	newHash, ok := hashes[f.Alg]
	if !ok {
		return nil, at(join(path, "alg"), "unknown algorithm %q", f.Alg)
	}
	p := &hmacPlan{newHash: newHash, decoded: f.SignedOver == "decoded"}
	if f.SignedOver != "" && f.SignedOver != "wire" && f.SignedOver != "decoded" {
		return nil, at(join(path, "signed_over"), "want wire or decoded, not %q", f.SignedOver)
	}
	list, err := parseTemplates(join(path, "message"), f.Message, inMessage)
	if err == nil && len(list) == 0 {
		err = at(join(path, "message"), "missing")
	}
	if err == nil {
		p.key, err = parseKeyRule(join(path, "secret"), f.Secret)
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
	if err != nil {
		return nil, err
	}
	p.messages, p.aliases = coverage(list)
	return p, nil
}

func (p *hmacPlan) each(f func(*placeholder)) {
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
	p.wants.each(f)
}

func (p *hmacPlan) bind(b *binding) (check, error) {
	c := &hmacCheck{hmacPlan: p, limit: b.limit, time: p.time.with(b.settings.Tolerance)}
	for i, secret := range b.secrets {
		key, err := p.key.key(secret)
		if key, ok := b.take(i, key, err); ok {
			c.keys = append(c.keys, newHMACKey(p.newHash, key, i+1, secret))
		}
	}
	return c, nil
}

// hmacCheck is an hmacPlan with a source's secrets.
type hmacCheck struct {
	*hmacPlan
	keys  []*hmacKey
	time  *timestampRule
	limit int64
}

// hmacKey is one secret. Its keyed hash states are pooled: making one costs two
// compressions and several allocations, resetting one costs neither.
type hmacKey struct {
	slot   int
	secret string
	pool   sync.Pool
}

type hmacState struct {
	feeder
	sum []byte
}

func newHMACKey(newHash func() hash.Hash, key []byte, slot int, secret string) *hmacKey {
	k := &hmacKey{slot: slot, secret: secret}
	k.pool.New = func() any { return &hmacState{feeder: feeder{h: hmac.New(newHash, key)}} }
	return k
}

// sum gives the keyed hash of a message; the state goes back with put.
func (k *hmacKey) sum(m *template, in *input) (*hmacState, *placeholder) {
	st := k.pool.Get().(*hmacState)
	st.h.Reset()
	st.buf = st.buf[:0]
	in.secret = k.secret
	missing := m.feed(&st.feeder, in)
	in.secret = ""
	if missing == nil {
		st.sum = st.h.Sum(st.sum[:0])
	}
	return st, missing
}

func (k *hmacKey) put(st *hmacState) { k.pool.Put(st) }

func (c *hmacCheck) verify(in *input) verdict {
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
	return c.try(in)
}

// try looks for a secret and a message that give one of the signatures.
func (c *hmacCheck) try(in *input) verdict {
	var missing *placeholder
	complete := len(c.keys) == 0 && c.anyComplete(in)
	var urls [2]string
	for i := range c.messages {
		m := &c.messages[i]
		for _, u := range urlVariants(urls[:0], in.r.URL, m.urls) {
			in.url = u
			for _, k := range c.keys {
				st, miss := k.sum(m.template, in)
				good := miss == nil && in.sigs.match(st.sum)
				k.put(st)
				if miss != nil {
					missing = miss
					break
				}
				complete = true
				if good {
					in.url, in.hidden = in.r.URL, m.hidden
					return verdict{refusal: c.time.judge(in), slot: k.slot, whole: m.whole, hidden: m.hidden}
				}
			}
		}
	}
	in.url = in.r.URL
	switch {
	case complete:
		return refuse(SignatureMismatch, c.sig.from[0].text, in.sigs.n > 0)
	case missing != nil && missing.src == srcSig:
		return refuse(MalformedHeader, c.sig.from[0].text, in.sigs.n > 0)
	case missing != nil:
		return refuse(MissingHeader, missing.text, in.sigs.n > 0)
	}
	return refuse(MissingHeader, c.sig.from[0].text, false)
}

// anyComplete tells, for a source without a secret, whether a message can be made.
func (c *hmacCheck) anyComplete(in *input) bool {
	for i := range c.messages {
		out, missing := c.messages[i].append(in.buf[:0], in)
		if in.buf = out; missing == nil {
			return true
		}
	}
	return false
}

// decode undoes the content encoding where signatures cover the decoded body.
func (c *hmacCheck) decode(in *input) *Refusal {
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

func (c *hmacCheck) early(h http.Header) *Refusal {
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

func (c *hmacCheck) present(in *input) bool {
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

func (c *hmacCheck) marks(f func(*placeholder)) {
	for _, p := range c.sig.from {
		f(p.placeholder)
	}
	if c.time != nil {
		for _, t := range c.time.from {
			t.each(f)
		}
	}
}

func (c *hmacCheck) canSign() bool { return len(c.keys) > 0 }
