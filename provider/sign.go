package provider

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// errCannotSign is the error of schemes and places that cannot be written.
var errCannotSign = errors.New("provider: this request cannot be signed")

func errMissing(what string) error { return fmt.Errorf("%w: %s is missing", errCannotSign, what) }

// CanSign tells whether Sign works: with shared keys, and for a Rehearsal.
func (c *Checker) CanSign() bool { return c.auth.canSign() }

// SignsInBody tells whether the signature or its timestamp stands inside the body, so
// that signing afresh changes bytes of it.
func (c *Checker) SignsInBody() bool {
	in := false
	c.auth.marks(func(p *placeholder) { in = in || p.src == srcJSON || p.src == srcForm })
	return in
}

// Sign signs a request afresh as the provider would: it sets the headers (or the query
// of Target and URL, or the field of the body) that Receive looks for, with a timestamp
// of now and, for slot > 0, the secret of that slot first; where the place holds a list,
// with every secret. Everything else stays as it is. The old body is not written to.
func (c *Checker) Sign(r *Request, slot int, now time.Time) error {
	if r.Header == nil {
		r.Header = http.Header{}
	}
	in := c.open(r, now)
	defer in.close()
	return c.auth.sign(&signing{in: in, slot: slot})
}

// signing is one request being signed.
type signing struct {
	in   *input
	slot int
}

// pick gives the element of the slot, else the first.
func pick[T any](list []T, slot int, slotOf func(T) int) (T, bool) {
	for _, one := range list {
		if slotOf(one) == slot {
			return one, true
		}
	}
	if len(list) == 0 {
		var zero T
		return zero, false
	}
	return list[0], true
}

func (c *signedCheck) sign(s *signing) (failed error) {
	in := s.in
	if name := c.wants.missing(in); name != "" && !c.timeAt(name) && !c.remote.at(name) {
		return errMissing(name)
	}
	if r := c.decode(in); r != nil {
		return fmt.Errorf("%w: %s", errCannotSign, r.Reason)
	}
	if err := c.place(s); err != nil {
		return err
	}
	in.sig = container{rule: c.sig}
	keys := c.order(s.slot)
	for _, stamps := range c.stamps(in) {
		for _, p := range stamps {
			if err := c.stamp(s, p); err != nil {
				return err
			}
		}
		which, sums, err := c.sums(in, keys)
		if err == nil {
			return c.write(s, which, sums)
		}
		failed = err
		for _, p := range stamps {
			if p.src == srcHeader && len(c.time.from) > 1 {
				in.r.Header.Del(p.arg) // the other name of the header is tried next
			}
		}
	}
	return failed
}

// place writes what a good request says beside its signature: where the key is, and what
// the source is about.
func (c *signedCheck) place(s *signing) error {
	for _, e := range c.equals {
		want, missing := e.want.append(nil, s.in)
		if missing != nil {
			return errMissing(missing.text)
		}
		if got, ok := e.at.read(s.in); !ok || got != string(want) {
			if err := s.set(e.at, string(want)); err != nil {
				return err
			}
		}
	}
	return c.remote.place(s)
}

// place names a key document where the request names none that could be one.
func (k *keySource) place(s *signing) error {
	if k == nil || len(k.url.parts) != 1 || k.url.parts[0].ph == nil {
		return nil
	}
	if _, r := k.locate(s.in); r == nil {
		return nil
	}
	host := strings.ReplaceAll(strings.Join(k.hosts[0], "."), "*", testKid)
	return s.set(place{placeholder: k.url.parts[0].ph}, "https://"+host+"/"+testKid+k.ends)
}

// at tells whether the key's place is the input of that name.
func (k *keySource) at(name string) bool {
	return k != nil && len(k.url.parts) == 1 && k.url.parts[0].ph != nil && k.url.parts[0].ph.text == name
}

// order puts the secret of the slot first; where only one signature can stand it is alone.
func (c *signedCheck) order(slot int) []signingKey {
	var out []signingKey
	if k, ok := pick(c.keys, slot, signingKey.slotNumber); ok {
		out = append(out, k)
	}
	if c.sig.format == "plain" {
		return out
	}
	for _, k := range c.keys {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// timeAt tells whether a wanted input is the timestamp, which sign sets itself.
func (c *signedCheck) timeAt(name string) bool {
	found := false
	if c.time != nil {
		for _, t := range c.time.from {
			t.each(func(p *placeholder) { found = found || p.text == name })
		}
	}
	return found
}

// stamps are the sets of places to write the time into, in the order to try them: all
// that the request fills already, or else one after the other. A time in the body that
// nobody checks stays as it is.
func (c *signedCheck) stamps(in *input) [][]*placeholder {
	if c.time == nil {
		return [][]*placeholder{nil}
	}
	var filled, single []*placeholder
	for _, t := range c.time.from {
		if len(t.parts) != 1 || t.parts[0].ph == nil {
			continue // made of several values: it stays as it is
		}
		p := t.parts[0].ph
		if p.src != srcSig && p.src != srcHeader && c.time.past < 0 {
			continue
		}
		single = append(single, p)
		if _, ok := p.append(nil, in); ok {
			filled = append(filled, p)
		}
	}
	if len(filled) > 0 || len(single) == 0 {
		return [][]*placeholder{filled}
	}
	out := make([][]*placeholder, len(single))
	for i, p := range single {
		out[i] = []*placeholder{p}
	}
	return out
}

// stamp writes the time of now to one place.
func (c *signedCheck) stamp(s *signing, p *placeholder) error {
	value := formatTime(s.in.now, c.time.unit)
	if p.src == srcSig {
		s.in.sig.text = c.sig.timeItem(p.arg, value)
		return nil
	}
	return s.set(place{placeholder: p}, value)
}

// timeItem is how the time stands in a container.
func (r *signatureRule) timeItem(key, value string) string {
	if r.format == "pairs" {
		return key + r.assign + value
	}
	return value
}

// sums signs the first message that the request can make.
func (c *signedCheck) sums(in *input, keys []signingKey) (which int, sums []string, err error) {
	var missing *placeholder
	for i := range c.messages {
		sums = sums[:0]
		for _, k := range keys {
			sig, miss, err := k.sign(c.messages[i].template, in)
			if err != nil {
				return 0, nil, err
			}
			if miss == nil {
				sums = append(sums, string(encode(nil, sig, c.sig.encoding)))
			}
			if missing == nil {
				missing = miss
			}
		}
		if len(sums) == len(keys) && len(keys) > 0 {
			return i, sums, nil
		}
	}
	if missing != nil {
		return 0, nil, errMissing(missing.text)
	}
	return 0, nil, errCannotSign
}

// write puts the signatures where Receive reads them.
func (c *signedCheck) write(s *signing, which int, sums []string) error {
	r := c.sig
	var items []string
	if s.in.sig.text != "" {
		items = append(items, s.in.sig.text)
	}
	key := ""
	if r.format == "pairs" {
		b, missing := r.keys[0].append(nil, s.in)
		if missing != nil {
			return errCannotSign
		}
		key = string(b) + r.assign
	}
	for _, sum := range sums {
		items = append(items, key+r.prefix+sum)
	}
	to := r.from[0]
	if len(r.from) == len(c.messages) {
		to = r.from[which]
	}
	for _, p := range slices.Backward(r.from) {
		if v, ok := p.read(s.in); ok && v != "" && len(r.from) != len(c.messages) {
			to = p
		}
	}
	for _, p := range r.from {
		if p.src == srcHeader {
			p.clear(s.in.r.Header)
		}
	}
	return s.set(to, strings.Join(items, r.separator))
}
