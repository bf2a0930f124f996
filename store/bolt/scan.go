package bolt

import (
	"bytes"
	"iter"
	"slices"
)

// pairs goes through the keys with a prefix, in their order or backwards. Nothing may be
// written to the bucket meanwhile.
func (x *tx) pairs(t table, prefix []byte, back bool) iter.Seq2[[]byte, []byte] {
	return x.between(t, prefix, nil, nil, back)
}

// keys is pairs without the values.
func (x *tx) keys(t table, prefix []byte, back bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for k := range x.pairs(t, prefix, back) {
			if !yield(k) {
				return
			}
		}
	}
}

// between goes through the keys with a prefix whose rest lies from lo on and before hi;
// nil is no bound.
func (x *tx) between(t table, prefix, lo, hi []byte, back bool) iter.Seq2[[]byte, []byte] {
	from := slices.Concat(prefix, lo)
	end := after(prefix)
	if hi != nil {
		end = slices.Concat(prefix, hi)
	}
	return func(yield func(k, v []byte) bool) {
		c := x.bucket(t).Cursor()
		if !back {
			for k, v := c.Seek(from); k != nil && (end == nil || bytes.Compare(k, end) < 0); k, v = c.Next() {
				if !yield(k, v) {
					return
				}
			}
			return
		}
		k, v := c.Last()
		if end != nil {
			if k, v = c.Seek(end); k == nil {
				k, v = c.Last()
			}
			for k != nil && bytes.Compare(k, end) >= 0 {
				k, v = c.Prev()
			}
		}
		for ; k != nil && bytes.Compare(k, from) >= 0; k, v = c.Prev() {
			if !yield(k, v) {
				return
			}
		}
	}
}

// after is the least key above all with the prefix; nil when there is none.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
