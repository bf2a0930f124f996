package bolt

import (
	"encoding/binary"
	"errors"
)

// A record is a list of fields without names: numbers as variable-length integers,
// texts and bytes with their length in front. Its first byte is the number of its
// layout. Fields are only ever added, at the end: one that is missing reads as zero,
// what follows the known ones is not looked at.
const layout1 = 1

var errRecord = errors.New("the record cannot be read")

// enc writes a record.
type enc struct{ b []byte }

func record(size int) *enc { return &enc{append(make([]byte, 0, size), layout1)} }

func (e *enc) int(ns ...int64) *enc {
	for _, n := range ns {
		e.b = binary.AppendVarint(e.b, n)
	}
	return e
}

func (e *enc) text(ss ...string) *enc {
	for _, s := range ss {
		e.b = append(binary.AppendUvarint(e.b, uint64(len(s))), s...)
	}
	return e
}

func (e *enc) bytes(b []byte) *enc {
	e.b = append(binary.AppendUvarint(e.b, uint64(len(b))), b...)
	return e
}

// flags writes up to eight of them as one number.
func (e *enc) flags(list ...bool) *enc {
	var n uint64
	for i, f := range list {
		if f {
			n |= 1 << i
		}
	}
	e.b = binary.AppendUvarint(e.b, n)
	return e
}

// dec reads a record. After its end every field is zero.
type dec struct {
	b   []byte
	bad bool
}

func reading(b []byte) *dec {
	if len(b) == 0 || b[0] != layout1 {
		return &dec{bad: true}
	}
	return &dec{b: b[1:]}
}

func (d *dec) int() int64 {
	if len(d.b) == 0 {
		return 0
	}
	n, size := binary.Varint(d.b)
	d.skip(size)
	return n
}

func (d *dec) uint() uint64 {
	if len(d.b) == 0 {
		return 0
	}
	n, size := binary.Uvarint(d.b)
	d.skip(size)
	return n
}

func (d *dec) skip(size int) {
	if size <= 0 || size > len(d.b) {
		d.b, d.bad = nil, true
		return
	}
	d.b = d.b[size:]
}

// view returns bytes of the transaction.
func (d *dec) view() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *dec) text() string { return string(d.view()) }

// bytes returns a copy; nil for none.
func (d *dec) bytes() []byte { return append([]byte(nil), d.view()...) }

func (d *dec) flags() (list [8]bool) {
	n := d.uint()
	for i := range list {
		list[i] = n>>i&1 != 0
	}
	return list
}

// done tells whether the record could be read.
func (d *dec) done(where string) error {
	if d.bad {
		return fault{where: where, err: errRecord}
	}
	return nil
}
