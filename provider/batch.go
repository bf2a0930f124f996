package provider

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// maxItems is how many events one request may hold.
const maxItems = 1000

// batchRule says where the items of a batch stand and how each is identified.
type batchRule struct {
	steps     []string // gjson paths; between two of them stands an array
	ids       ids
	types     []*template
	resources []*template
	versions  []*template
	each      bool // every item is signed for itself
}

func parseBatch(path string, f *batchFile) (*batchRule, error) {
	items, ok := strings.CutPrefix(f.Items, "json:")
	if !ok {
		return nil, at(join(path, "items"), "want json:path")
	}
	b := &batchRule{each: f.VerifyEach}
	var err error
	for _, step := range strings.Split("."+items+".", ".*.") {
		step = strings.Trim(step, ".")
		if step, err = gjsonPath(step); err != nil {
			return nil, at(join(path, "items"), "%v", err)
		}
		b.steps = append(b.steps, step)
	}
	for _, l := range []struct {
		field string
		text  texts
		to    *[]*template
	}{{"id", f.ID, &b.ids.first}, {"type", f.Type, &b.types}, {"resource", f.Resource, &b.resources}, {"version", f.Version, &b.versions}} {
		if *l.to, err = parseTemplates(join(path, l.field), l.text, inItem); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// item is one event of a batch: its JSON and where it stands in the document.
type item struct {
	rule *batchRule
	raw  string
	at   int
}

// items are what a request holds.
type batchItems struct {
	found      bool // there was an array at a path of the rules
	items      []item
	start, end int // of the array's inside, when there is only one array
}

// split finds the items. A request without the array, or whose body is not JSON, is no
// batch and one event; something else in the array's place is a problem.
func (c *Checker) split(in *input) (out batchItems, problem string) {
	if len(c.batch) == 0 || c.oneID {
		return out, ""
	}
	doc := in.json()
	if doc == "" {
		return out, ""
	}
	for _, rule := range c.batch {
		if !out.walk(rule, doc, 0, rule.steps) {
			return out, fmt.Sprintf("the batch cannot be split: no array at %s", strings.Join(rule.steps, ".*."))
		}
	}
	return out, ""
}

// walk follows the steps of a path; false: something that is no array stands there.
func (b *batchItems) walk(rule *batchRule, doc string, base int, steps []string) bool {
	v := lookup(doc, steps[0])
	switch {
	case !v.Exists() || v.Type == gjson.Null || (steps[0] == "" && v.IsObject()):
		return true
	case !v.IsArray():
		return false
	}
	last := len(steps) == 1
	if last {
		b.found = true
		b.start = base + v.Index + 1
		b.end = base + v.Index + strings.LastIndexByte(v.Raw, ']')
	}
	ok := true
	v.ForEach(func(_, e gjson.Result) bool {
		if last {
			b.items = append(b.items, item{rule, e.Raw, base + e.Index})
			return len(b.items) <= maxItems
		}
		ok = b.walk(rule, e.Raw, base+e.Index, steps[1:])
		return ok && len(b.items) <= maxItems
	})
	return ok
}

// items identifies every item: as events of their own, or, where the original envelope
// cannot be made anew around one of them, as one event whose id is the digest of all ids.
func (c *Checker) items(in *input, res Result, b batchItems) (Result, *Refusal) {
	in.full = true
	split := c.splits && !c.packed(in)
	test := c.isTest(in)
	shift := len(in.text) - len(in.json()) // a byte-order mark
	seen := map[string]int{}
	all := joinedIDs{text: in.ids[:0]}
	if split {
		res.Events = make([]Event, 0, len(b.items))
	}
	for i, it := range b.items {
		in.item = it.raw
		rule := it.rule
		e := Event{Part: i, Test: test}
		e.ID, e.BodyHash = rule.ids.value(in)
		if e.ID == "" && rule.ids.own {
			in.item, res.Events = "", nil
			return c.doubtful(in, res, fmt.Sprintf("the source's id rule finds no value in item %d", i+1))
		}
		if e.ID == "" {
			e.ID, e.BodyHash = itemDigest(it.raw, seen), true
		}
		if !split {
			all.add(e)
			continue
		}
		e.Bytes = in.r.Body[shift+it.at : shift+it.at+len(it.raw)]
		e.Type, e.Resource = c.label(rule.types, in), c.label(rule.resources, in)
		c.version(&e, rule.versions, in)
		res.Events = append(res.Events, e)
	}
	in.item, in.ids = "", all.text
	if !split {
		e := c.whole(in)
		e.ID, e.NoID, e.BodyHash = all.id(), false, all.bodies
		res.Events = []Event{e}
	}
	return res, nil
}

// packed tells whether ids were read from other bytes than those that arrived.
func (c *Checker) packed(in *input) bool { return len(in.text) != len(in.r.Body) }

// itemDigest is the id of an item that has none: the digest of its bytes and, from the
// second on, its ordinal among equals.
func itemDigest(raw string, seen map[string]int) string {
	sum := sha256.Sum256([]byte(raw))
	id := hex.EncodeToString(sum[:])
	seen[id]++
	if n := seen[id]; n > 1 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return id
}

// joinedIDs is the id of the one event that a batch is, made of those of its items.
type joinedIDs struct {
	text   []byte
	bodies bool // an item's id is a digest of its bytes
}

func (d *joinedIDs) add(e Event) {
	d.text = append(binary.BigEndian.AppendUint64(d.text, uint64(len(e.ID))), e.ID...)
	d.bodies = d.bodies || e.BodyHash
}

func (d *joinedIDs) id() string {
	sum := sha256.Sum256(d.text)
	return string(hex.AppendEncode([]byte("batch:"), sum[:]))
}

// verifyEach checks every item of a batch whose items are signed one by one: each is
// put alone into the envelope and judged.
func (c *Checker) verifyEach(in *input, b batchItems, v verdict) *Refusal {
	if len(b.items) < 2 || v.whole {
		return nil
	}
	for i, it := range b.items {
		if !it.rule.each {
			continue
		}
		body, err := c.Item(in.r.Body, i)
		if err != nil {
			return &Refusal{Reason: MalformedBody, Detail: "batch"}
		}
		r := *in.r
		r.Body = body
		one := c.open(&r, in.now)
		verdict := c.auth.verify(one)
		one.close()
		if verdict.refusal != nil {
			return verdict.refusal
		}
	}
	return nil
}

var errNoItem = errors.New("provider: the body has no such item")

// Item rebuilds the body that holds only the item part of a batch, its bytes unchanged
// within the original envelope. Part -1 is the whole body.
func (c *Checker) Item(body []byte, part int) ([]byte, error) {
	if part < 0 {
		return body, nil
	}
	r := &Request{Body: body}
	in := c.open(r, r.zero())
	defer in.close()
	b, problem := c.split(in)
	if problem != "" || !b.found || part >= len(b.items) || len(c.batch) != 1 || len(c.batch[0].steps) != 1 {
		return nil, errNoItem
	}
	shift := len(in.text) - len(in.json())
	it := b.items[part]
	out := make([]byte, 0, len(body)-(b.end-b.start)+len(it.raw))
	out = append(out, body[:shift+b.start]...)
	out = append(out, it.raw...)
	return append(out, body[shift+b.end:]...), nil
}
