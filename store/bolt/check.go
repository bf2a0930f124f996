package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"acuse/store"
)

// checked is how many of the newest deliveries the bounded check looks at.
const checked = 1000

// Check looks for damage; see store.Store. The full one reads every record in use, and
// each index both ways.
func (d *DB) Check(ctx context.Context, full bool) ([]string, error) {
	if full { // a disk that cannot read is found here, not in the middle of a page
		if err := d.readable(ctx); err != nil {
			return nil, wrap(err, "check")
		}
	}
	c := &check{ctx: ctx, found: map[string]*finding{}}
	err := d.view(ctx, func(x *tx) error {
		c.x = x
		if !c.buckets() {
			return nil
		}
		c.highest = int64(x.bucket(tDeliveries).Sequence())
		c.payloads = make([]uint64, c.highest/64+1)
		from := int64(0)
		if !full {
			from = max(0, c.highest-checked)
		}
		c.deliveries(from)
		if full {
			c.orphans()
			c.indexes()
		}
		return ctx.Err()
	})
	if f := (fault{}); errors.As(err, &f) && f.unread { // a broken page stops the walk, not the report
		c.lines, err = append(c.lines, f.err.Error()), nil
	}
	return c.report(), wrap(err, "check")
}

// readable reads the file from end to end.
func (d *DB) readable(ctx context.Context) error {
	block := make([]byte, 1<<20)
	for at := int64(0); ; at += int64(len(block)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := d.raw.ReadAt(block, at); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s at %d: %w", d.path, at, err)
		}
	}
}

// finding is one kind of damage: how often, and where for one.
type finding struct {
	count, example int64
}

type check struct {
	x        *tx
	ctx      context.Context
	highest  int64    // delivery number given out
	payloads []uint64 // bit set of the payloads that deliveries name
	order    []string // kinds of damage, as they were found
	found    map[string]*finding
	lines    []string
}

// wrong counts damage; what has a %d for an example.
func (c *check) wrong(what string, example int64) {
	f := c.found[what]
	if f == nil {
		f = &finding{example: example}
		c.found[what] = f
		c.order = append(c.order, what)
	}
	f.count++
}

func (c *check) report() []string {
	for _, what := range c.order {
		f := c.found[what]
		c.lines = append(c.lines, fmt.Sprintf("%d "+what, f.count, f.example))
	}
	return c.lines
}

// buckets tells whether all are there.
func (c *check) buckets() bool {
	for _, name := range tableNames {
		if c.x.Bucket([]byte(name)) == nil {
			c.lines = append(c.lines, "bucket "+name+" is missing")
		}
	}
	return len(c.lines) == 0
}

// each walks a bucket and looks at the order of its keys.
func (c *check) each(t table, from []byte, f func(k, v []byte)) {
	var before []byte
	for k, v := range c.x.between(t, nil, from, nil, false) {
		if c.ctx.Err() != nil {
			return
		}
		if before != nil && bytes.Compare(before, k) >= 0 {
			c.wrong(tableNames[t]+" are out of order, such as after key %d", int64(len(before)))
		}
		before = append(before[:0], k...)
		f(k, v)
	}
}

// deliveries looks at each above from: its request, its jobs, their attempts, and the
// keys under which they are found.
func (c *check) deliveries(from int64) {
	c.each(tDeliveries, num(from+1), func(k, v []byte) {
		id := numAt(k, 0)
		d, err := decodeDelivery(id, v)
		if err != nil {
			c.wrong("deliveries cannot be read, such as #%d", id)
			return
		}
		c.delivery(&d)
	})
}

func (c *check) delivery(d *delivery) {
	if d.payload != 0 {
		if v := c.x.get(tPayloads, num(d.payload)); v == nil {
			c.wrong("deliveries have no body although it was not purged, such as #%d", d.id)
		} else if _, err := decodePayload(v); err != nil {
			c.wrong("bodies are damaged, such as that of #%d", d.id)
		}
		if d.payload > 0 && d.payload <= c.highest {
			c.payloads[d.payload/64] |= 1 << (d.payload % 64)
		}
	}
	if d.id > c.highest {
		c.wrong("deliveries have a number that was never given out, such as #%d", d.id)
	}
	for _, k := range d.indexKeys() {
		if c.x.get(k.t, []byte(k.key)) == nil {
			c.wrong("deliveries are missing in index "+tableNames[k.t]+", such as #%d", d.id)
		}
	}
	switch {
	case d.hold == holdNone && len(d.jobs) == 0:
		c.wrong("deliveries have neither a job nor a reason for it, such as #%d", d.id)
	case d.hold == holdQuarantined && len(d.jobs) > 0:
		c.wrong("quarantined deliveries have jobs, such as #%d", d.id)
	}
	for _, id := range d.jobs {
		j, err := c.x.job(id)
		if err != nil || j.delivery != d.id {
			c.wrong("deliveries have neither a job nor a reason for it, such as #%d", d.id)
			continue
		}
		c.job(&j)
	}
}

func (c *check) job(j *job) {
	for _, k := range j.indexKeys() {
		if c.x.get(k.t, []byte(k.key)) == nil {
			c.wrong("jobs are missing in index "+tableNames[k.t]+", such as that of #%d", j.delivery)
		}
	}
	if j.state == store.Leased {
		if _, err := c.x.attempt(j.id, j.token); err != nil {
			c.wrong("leased jobs have no attempt, such as those of #%d", j.delivery)
		}
	}
}

// orphans looks for what belongs to nothing.
func (c *check) orphans() {
	c.each(tPayloads, nil, func(k, _ []byte) {
		if id := numAt(k, 0); id <= 0 || id > c.highest || c.payloads[id/64]>>(id%64)&1 == 0 {
			c.wrong("payloads belong to no delivery, such as number %d", id)
		}
	})
	c.each(tJobs, nil, func(k, v []byte) {
		j, err := decodeJob(numAt(k, 0), v)
		if err != nil {
			c.wrong("jobs cannot be read, such as number %d", numAt(k, 0))
		} else if c.x.get(tDeliveries, num(j.delivery)) == nil {
			c.wrong("jobs have no delivery, such as those of #%d", j.delivery)
		}
	})
	c.each(tAttempts, nil, func(k, v []byte) {
		if _, err := decodeAttempt(k, v); err != nil {
			c.wrong("attempts cannot be read, such as number %d", numAt(k, 8))
		} else if c.x.get(tJobs, num(numAt(k, 0))) == nil {
			c.wrong("attempts have no job, such as those of job %d", numAt(k, 0))
		}
	})
	c.each(tDedup, nil, func(k, _ []byte) {
		holder, expires, err := c.x.holder(smallAt(k, 0), string(k[4:]))
		if err != nil || holder > c.highest {
			c.wrong("claimed keys belong to a number that was never given out, such as #%d", holder)
		} else if c.x.get(tDeliveries, num(holder)) == nil && c.x.get(tLoose, key(num(expires), k)) == nil {
			c.wrong("claimed keys are not known to be without a delivery, such as that of #%d", holder)
		}
	})
}

// indexes looks for keys that lead nowhere, or to what is not in that state any more.
func (c *check) indexes() {
	for _, t := range []table{tDue, tLeases, tEnded, tDead, tResent, tTurns, tLine, tHeads, tLatest} {
		c.each(t, nil, func(k, _ []byte) {
			j, err := c.x.job(last(k))
			if err != nil || !has(j.indexKeys(), t, k) {
				c.wrong("entries of index "+tableNames[t]+" lead nowhere, such as to job %d", last(k))
			}
		})
	}
	for _, t := range []table{tSources, tReceived, tHold, tRepeated, tShared} {
		c.each(t, nil, func(k, _ []byte) {
			d, ok, err := c.x.delivery(last(k))
			if err != nil || !ok || !has(d.indexKeys(), t, k) {
				c.wrong("entries of index "+tableNames[t]+" lead nowhere, such as to #%d", last(k))
			}
		})
	}
	var line []byte // of the key before
	c.each(tLine, nil, func(k, _ []byte) {
		if at := k[:len(k)-16]; !bytes.Equal(at, line) {
			line = append(line[:0], at...)
			turns := 0
			for range c.x.keys(tTurns, at, false) {
				turns++
			}
			if turns != 1 {
				c.wrong("orders have not one job whose turn it is, such as that of job %d", last(k))
			}
		}
	})
	rows := map[table]int64{}
	for _, t := range []table{tRejections, tSame, tRing, tRingAge} {
		c.each(t, nil, func(_, _ []byte) { rows[t]++ })
	}
	if rows[tSame] != rows[tRejections] || rows[tRing] != rows[tRejections] || rows[tRingAge] != rows[tRejections] {
		c.wrong("times the rejections and their indexes differ: %d rows", rows[tRejections])
	}
}

func has(list []indexKey, t table, k []byte) bool {
	for _, l := range list {
		if l.t == t && l.key == string(k) {
			return true
		}
	}
	return false
}
