package provider

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// signatureRule says where signatures stand and how they are written.
type signatureRule struct {
	from                      []place
	format                    string // plain, list, pairs
	separator, assign, prefix string
	keys                      []*template // pairs: names that hold signatures
	unique                    []string
	skip                      int
	encoding                  string // hex, base64, base64url
}

func parseSignature(path string, f *signatureFile) (*signatureRule, error) {
	if f == nil {
		return nil, at(path, "missing")
	}
	from, err := parsePlaces(join(path, "from"), f.From)
	if err != nil {
		return nil, err
	}
	s := &signatureRule{from: from, format: f.Format, separator: f.Separator, assign: f.Assign, prefix: f.Prefix,
		unique: f.Unique, skip: f.Skip, encoding: f.Encoding}
	if s.keys, err = parseTemplates(join(path, "key"), f.Key, inConfig); err != nil {
		return nil, err
	}
	switch s.format {
	case "", "plain":
		s.format, s.separator = "plain", ","
	case "list":
		if s.separator == "" {
			return nil, at(join(path, "separator"), "a list needs one")
		}
	case "pairs":
		if s.separator == "" || s.assign == "" || len(s.keys) == 0 {
			return nil, at(path, "pairs need separator, assign and key")
		}
	default:
		return nil, at(join(path, "format"), "unknown format %q", s.format)
	}
	switch s.encoding {
	case "hex", "base64", "base64url":
	default:
		return nil, at(join(path, "encoding"), "unknown encoding %q", s.encoding)
	}
	if s.skip < 0 || (s.skip > 0 && s.format != "list") || (len(s.unique) > 0 && s.format != "pairs") {
		return nil, at(path, "skip is for lists, unique for pairs")
	}
	return s, nil
}

// container is the text that {sig:…} reads from.
type container struct {
	rule *signatureRule
	text string
}

// append writes the value of a key (pairs) or the raw item of a number (list).
func (c container) append(dst []byte, key string) ([]byte, bool) {
	if c.rule == nil {
		return dst, false
	}
	i := 0
	for item := range strings.SplitSeq(c.text, c.rule.separator) {
		item = strings.TrimSpace(item)
		if c.rule.format == "pairs" {
			if k, v, ok := strings.Cut(item, c.rule.assign); ok && k == key {
				return append(dst, v...), true
			}
		} else if len(key) == 1 && key[0] == byte('0'+i) {
			return append(dst, item...), true
		}
		i++
	}
	return dst, false
}

// signatures are the decoded signatures of a request, at most maxSignatures.
type signatures struct {
	n    int
	size [maxSignatures]uint8
	data [maxSignatures][64]byte
	long [][]byte // those of more than 64 bytes: RSA, ECDSA in DER
}

// longest is the size of a signature of an RSA key of 8192 bits.
const longest = 1024

// add decodes one; what does not decode or is too long can match nothing and is dropped.
func (s *signatures) add(item, enc string) {
	if s.n+len(s.long) == maxSignatures || strings.ContainsAny(item, "\r\n") { // the decoder passes over line ends
		return
	}
	if enc == "base64url" {
		item = strings.TrimRight(item, "=")
	}
	if len(item) > 2*len(s.data[0]) || (enc != "hex" && len(item) > 88) {
		s.addLong(item, enc)
		return
	}
	var n int
	var err error
	dst := s.data[s.n][:]
	if enc == "hex" {
		n, err = hex.Decode(dst, append(make([]byte, 0, 128), item...))
	} else {
		var buf [66]byte
		if n, err = base64Of(enc).Decode(buf[:], append(make([]byte, 0, 88), item...)); err == nil && n > len(dst) {
			s.long = append(s.long, append([]byte(nil), buf[:n]...))
			return
		}
		copy(dst, buf[:n])
	}
	if err != nil || n == 0 {
		return
	}
	s.size[s.n] = uint8(n)
	s.n++
}

func (s *signatures) addLong(item, enc string) {
	if len(item) > 2*longest {
		return
	}
	var out []byte
	var err error
	if enc == "hex" {
		out, err = hex.DecodeString(item)
	} else {
		out, err = base64Of(enc).DecodeString(item)
	}
	if err == nil && len(out) <= longest {
		s.long = append(s.long, out)
	}
}

func base64Of(enc string) *base64.Encoding {
	if enc == "base64url" {
		return strictURL
	}
	return strictStd
}

var (
	strictStd = base64.StdEncoding.Strict()
	strictURL = base64.RawURLEncoding.Strict()
)

// some tells whether there is any that can match.
func (s *signatures) some() bool { return s.n+len(s.long) > 0 }

// each calls f for every one.
func (s *signatures) each(f func([]byte)) {
	for i := range s.n {
		f(s.data[i][:s.size[i]])
	}
	for _, sig := range s.long {
		f(sig)
	}
}

// match compares a sum with every signature, each in constant time.
func (s *signatures) match(sum []byte) bool {
	found := false
	for i := range s.n {
		if hmac.Equal(s.data[i][:s.size[i]], sum) {
			found = true
		}
	}
	return found
}

// collect reads the signatures of a request into in.sigs and the container into
// in.sig. The refusal is nil when at least one item of the stated form is there.
func (s *signatureRule) collect(in *input) *Refusal {
	in.sigs.n, in.sigs.long, in.sig = 0, in.sigs.long[:0], container{}
	there, formed := "", false
	for _, p := range s.from {
		text, ok := p.read(in)
		if !ok {
			continue
		}
		if there == "" {
			there, in.sig = p.text, container{s, text}
		}
		bad, good := s.items(in, text)
		if bad {
			return &Refusal{Reason: MalformedHeader, Detail: p.text}
		}
		formed = formed || good
	}
	if there == "" {
		return &Refusal{Reason: MissingHeader, Detail: s.from[0].text}
	}
	if !formed {
		return &Refusal{Reason: MalformedHeader, Detail: there}
	}
	return nil
}

// items takes the signatures out of one text. bad: a key that may stand once is there
// twice. good: there was an item of the stated form.
func (s *signatureRule) items(in *input, text string) (bad, good bool) {
	i := 0
	var seen [8]bool
	for item := range strings.SplitSeq(text, s.separator) {
		item = strings.TrimSpace(item)
		i++
		if s.format == "pairs" {
			key, value, ok := strings.Cut(item, s.assign)
			if !ok {
				continue
			}
			for u, name := range s.unique {
				if key == name && u < len(seen) {
					if seen[u] {
						return true, good
					}
					seen[u] = true
				}
			}
			if s.holds(in, key) {
				good = true
				in.sigs.add(value, s.encoding)
			}
			continue
		}
		if i <= s.skip {
			continue
		}
		if value, ok := strings.CutPrefix(item, s.prefix); ok && (value != "" || s.prefix != "") {
			good = true
			in.sigs.add(value, s.encoding)
		}
	}
	return false, good
}

// holds tells whether a key is one that holds signatures.
func (s *signatureRule) holds(in *input, key string) bool {
	for _, t := range s.keys {
		out, missing := t.append(in.tmp[:0], in)
		in.tmp = out
		if missing == nil && len(out) > 0 && string(out) == key {
			return true
		}
	}
	return false
}
