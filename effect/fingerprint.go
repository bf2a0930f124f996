package effect

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Call is one call of a caller, as it would go out.
type Call struct {
	Method string
	Path   string // escaped, as it goes out
	Query  string // as it came
	Header http.Header
	Body   []byte
}

// Fingerprint is a digest of what a call means: two with the same one are the same
// action. Method, path, the query sorted, the headers named, and the body by its kind:
// JSON without its spaces and order of keys but with the text of its numbers, forms
// sorted, multipart by its parts, all else byte by byte.
func (c *Call) Fingerprint(headers []string) string {
	d := digest{sha256.New()}
	d.add("acuse-1", c.Method, c.Path)
	d.pairs(queryPairs(c.Query))
	names := slices.Clone(headers)
	for i := range names {
		names[i] = http.CanonicalHeaderKey(names[i])
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		d.add(name)
		d.add(c.Header.Values(name)...)
	}
	kind, meaning := c.meaning()
	d.add(kind, string(meaning))
	return d.sum()
}

// Card is a digest of the exact bytes of a call: what a person approves.
func (c *Call) Card() string {
	d := digest{sha256.New()}
	d.add("acuse-card-1", c.Method, c.Path, c.Query, c.Header.Get("Content-Type"), string(c.Body))
	return d.sum()
}

// digest hashes lists of texts so that no two lists meet.
type digest struct{ h hash.Hash }

func (d digest) add(parts ...string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(parts)))
	d.h.Write(n[:])
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		d.h.Write(n[:])
		io.WriteString(d.h, p)
	}
}

func (d digest) pairs(list []pair) {
	for _, p := range list {
		d.add(p.name, p.value)
	}
	d.add()
}

func (d digest) sum() string { return hex.EncodeToString(d.h.Sum(nil)) }

// meaning is the body in the form in which it is compared, and which form that is. A body
// that is not what its Content-Type says is compared byte by byte.
func (c *Call) meaning() (kind string, meaning []byte) {
	media, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err == nil {
		var form []byte
		switch {
		case media == "application/json" || strings.HasSuffix(media, "+json"):
			kind = "json"
			form, err = canonicalJSON(c.Body)
		case media == "application/x-www-form-urlencoded":
			kind = "form"
			var list []pair
			list, err = formPairs(string(c.Body))
			form = joined(list)
		case media == "multipart/form-data" && params["boundary"] != "":
			kind = "multipart"
			var list []pair
			list, err = partPairs(c.Body, params["boundary"])
			form = joined(list)
		default:
			err = errBytes
		}
		if err == nil {
			return kind, form
		}
	}
	return "bytes", c.Body
}

var errBytes = errors.New("compared byte by byte")

// canonicalJSON writes a document without spaces, keys sorted, numbers as they were.
// A document with a key twice, or with text that cannot be told apart once decoded, is
// left to be compared byte by byte.
func canonicalJSON(body []byte) ([]byte, error) {
	if !utf8.Valid(body) {
		return nil, errBytes
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var out bytes.Buffer
	if err := canonicalValue(dec, &out, 0); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errBytes
	}
	return out.Bytes(), nil
}

// maxDepth is how deep a document may nest to be compared by its meaning.
const maxDepth = 200

func canonicalValue(dec *json.Decoder, out *bytes.Buffer, depth int) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		if depth > maxDepth {
			return errBytes
		}
		if t == '{' {
			return canonicalObject(dec, out, depth+1)
		}
		return canonicalArray(dec, out, depth+1)
	case json.Number:
		out.WriteString(t.String())
		return nil
	case string:
		return canonicalString(t, out)
	default: // true, false, null
		b, err := json.Marshal(t)
		out.Write(b)
		return err
	}
}

func canonicalString(s string, out *bytes.Buffer) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return errBytes // several escapes decode to this one
	}
	b, err := json.Marshal(s)
	out.Write(b)
	return err
}

func canonicalArray(dec *json.Decoder, out *bytes.Buffer, depth int) error {
	out.WriteByte('[')
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		if err := canonicalValue(dec, out, depth); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	_, err := dec.Token()
	return err
}

func canonicalObject(dec *json.Decoder, out *bytes.Buffer, depth int) error {
	members := map[string][]byte{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		name, value := t.(string), bytes.Buffer{}
		if err := canonicalString(name, &value); err != nil {
			return err
		}
		value.WriteByte(':')
		if err := canonicalValue(dec, &value, depth); err != nil {
			return err
		}
		if _, twice := members[name]; twice {
			return errBytes
		}
		members[name] = value.Bytes()
	}
	if _, err := dec.Token(); err != nil {
		return err
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	out.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(members[name])
	}
	out.WriteByte('}')
	return nil
}

// pair is a named value of a query, a form or a multipart body.
type pair struct{ name, value string }

// queryPairs sorts by name; values of one name stay in their order. A query that cannot be
// read is one value.
func queryPairs(query string) []pair {
	list, err := formPairs(query)
	if err != nil {
		return []pair{{"", query}}
	}
	return list
}

func formPairs(form string) ([]pair, error) {
	values, err := url.ParseQuery(form)
	if err != nil {
		return nil, err
	}
	var list []pair
	for name, vs := range values {
		for _, v := range vs {
			list = append(list, pair{name, v})
		}
	}
	slices.SortStableFunc(list, byName)
	return list, nil
}

func byName(a, b pair) int { return strings.Compare(a.name, b.name) }

// partPairs reads a multipart body: its boundary differs from call to call.
func partPairs(body []byte, boundary string) ([]pair, error) {
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	var list []pair
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(p)
		if err != nil {
			return nil, err
		}
		d := digest{sha256.New()}
		d.add(p.FileName(), p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), string(content))
		list = append(list, pair{p.FormName(), d.sum()})
	}
	if len(list) == 0 {
		return nil, errBytes
	}
	slices.SortStableFunc(list, byName)
	return list, nil
}

func joined(list []pair) []byte {
	var out []byte
	for _, p := range list {
		out = binary.BigEndian.AppendUint64(out, uint64(len(p.name)))
		out = append(out, p.name...)
		out = binary.BigEndian.AppendUint64(out, uint64(len(p.value)))
		out = append(out, p.value...)
	}
	return out
}
