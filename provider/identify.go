package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// MaxID is the longest event id, in bytes, that is kept as the provider wrote it.
const MaxID = 255

// KeptID is the form in which an id is kept: a longer one than MaxID becomes its digest,
// so that two long ids never meet and every id can be searched for.
func KeptID(id string) string {
	if len(id) <= MaxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ids is a compiled rule for event ids: the first template that yields, or all joined.
type ids struct {
	first []*template
	join  []*template
	own   bool // the source's own rule
}

func parseIDs(path string, r *IDRule, use usage) (ids, error) {
	out := ids{own: true}
	set := 0
	var err error
	if r.Template != "" {
		set++
		out.first, err = parseTemplates(path, texts{r.Template}, use)
	}
	if err == nil && len(r.First) > 0 {
		set++
		out.first, err = parseTemplates(join(path, "first"), r.First, use)
	}
	if err == nil && len(r.Join) > 0 {
		set++
		out.join, err = parseTemplates(join(path, "join"), r.Join, use)
	}
	if err == nil && set != 1 {
		err = at(path, "want a template, first or join")
	}
	return out, err
}

// value reads the id; empty: none. digest: it is a digest of the body.
func (r ids) value(in *input) (id string, digest bool) {
	if len(r.join) == 0 {
		id, t := first(r.first, in)
		return KeptID(id), t != nil && t.bodyDigest()
	}
	digest = true
	parts := make([]string, len(r.join))
	for i, t := range r.join {
		v, _ := first(r.join[i:i+1], in)
		if v == "" {
			return "", false
		}
		parts[i] = escapePart(v)
		digest = digest && t.bodyDigest()
	}
	return KeptID(strings.Join(parts, ":")), digest
}

// escapePart percent-encodes everything but letters, digits and "_.~-", so that the
// colon between two parts stands in neither and two lists never give one id.
func escapePart(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// bodyDigest tells whether the value is the same exactly when the body is.
func (t *template) bodyDigest() bool {
	found, foreign := false, false
	t.each(func(p *placeholder) {
		switch p.src {
		case srcBody, srcForm, srcJSON, srcItem:
			found = found || p.digest
		case srcParam:
		default:
			foreign = true
		}
	})
	return found && !foreign
}

// usesItem tells whether any template reads the item of a batch.
func usesItem(lists ...[]*template) bool {
	found := false
	for _, list := range lists {
		for _, t := range list {
			t.each(func(p *placeholder) { found = found || p.src == srcItem })
		}
	}
	return found
}

// whole identifies the request as one event, by the rules for requests.
func (c *Checker) whole(in *input) Event {
	in.full = true
	e := Event{Part: -1, Bytes: in.r.Body, Test: c.isTest(in)}
	e.ID, e.BodyHash = c.ids.value(in)
	e.NoID = e.ID == ""
	e.Type = c.label(c.types, in)
	e.Resource = c.label(c.resources, in)
	c.version(&e, c.versions, in)
	return e
}

// label is a type or resource; long ones are kept by digest, like ids.
func (c *Checker) label(list []*template, in *input) string {
	s, _ := first(list, in)
	return KeptID(s)
}

func (c *Checker) version(e *Event, list []*template, in *input) {
	if v, _ := first(list, in); v != "" && len(v) <= MaxID {
		e.Version, e.Unit, e.Supersedes = v, c.unit, c.supersedes
	}
}

func (c *Checker) isTest(in *input) bool { return c.test != nil && c.test.fields.hold(in) }

// identify finds out which events a verified request holds.
func (c *Checker) identify(in *input, v verdict) (Result, *Refusal) {
	res := Result{Slot: v.slot, Unverified: v.unproven}
	in.hidden = v.hidden
	c.unpackText(in)
	b, problem := c.split(in)
	switch {
	case problem != "":
		return c.doubtful(in, res, problem)
	case b.found && len(b.items) > maxItems:
		return res, &Refusal{Reason: TooLarge, Detail: "batch"}
	case b.found && len(b.items) == 0:
		res.Empty = true
		return res, nil
	case b.found:
		if r := c.verifyEach(in, b, v); r != nil {
			return res, r
		}
		return c.items(in, res, b)
	}
	e := c.whole(in)
	if e.NoID && c.required {
		return res, &Refusal{Reason: MalformedBody, Detail: "id"}
	}
	if e.NoID && c.ids.own {
		return c.doubtful(in, res, "the source's id rule finds no value in this request")
	}
	res.Events = []Event{e}
	return res, nil
}

// doubtful is the result for a request that cannot be identified: quarantine when it is
// proven to be the provider's, a refusal when anybody may have sent it.
func (c *Checker) doubtful(in *input, res Result, why string) (Result, *Refusal) {
	if res.Unverified {
		return res, &Refusal{Reason: MalformedBody, Detail: why}
	}
	e := c.whole(in)
	e.ID, e.NoID, e.BodyHash = "", false, false
	res.Quarantine, res.Events = why, []Event{e}
	return res, nil
}

// unpackText undoes a content encoding for reading ids, where signatures cover the
// packed bytes. What cannot be undone within the limit is left as it is.
func (c *Checker) unpackText(in *input) {
	enc := in.r.Header["Content-Encoding"]
	if len(enc) == 0 || len(in.body) != len(in.r.Body) {
		return
	}
	if text, err := unpack(enc[0], in.r.Body, c.limit); err == nil {
		in.setText(text)
	}
}
