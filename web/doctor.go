package web

import (
	"context"
	"strconv"
	"time"

	"acuse/provider"
)

// How much is diagnosed. What is over is written without a cause.
const (
	diagnosedPerSource = 2 // a second
	diagnosedInAll     = 10
	diagnosisTime      = 5 * time.Second // for keys that have to be fetched
)

// Sources agree on a gap when theirs were seen within the same ten minutes and differ by a
// minute at most.
const (
	agreeFor    = 10 * time.Minute
	agreeWithin = time.Minute
)

// doctor finds the causes of rejections, in the goroutine that writes them.
type doctor struct {
	all    bucket
	single map[string]*bucket
	gaps   map[string]gap // latest signed time that was off, by source
}

type gap struct {
	skew time.Duration
	at   time.Time
}

func newDoctor() doctor {
	return doctor{all: bucket{perSecond: diagnosedInAll, burst: diagnosedInAll}, single: map[string]*bucket{}, gaps: map[string]gap{}}
}

// examine gives the detail of a rejection; undiagnosed says that nobody looked.
func (d *doctor) examine(x *rejection) (detail string, undiagnosed bool) {
	if x.refusal == nil || !curable(x.refusal.Reason) || x.source.Diagnose == nil {
		return x.Detail, false
	}
	if !d.has(x.Source, x.At) {
		return x.Detail, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), diagnosisTime)
	defer cancel()
	x.request.Context = ctx
	found := x.source.Diagnose(&x.request, x.At)
	detail = provider.FormatDetail("at", x.refusal.Detail)
	if text := found.String(); text != "" {
		if detail != "" {
			detail += ";"
		}
		detail += text
	}
	if found.Skew != 0 {
		if n := d.agree(x.Source, gap{found.Skew, x.At}); n > 1 {
			detail += ";agree=" + strconv.Itoa(n)
		}
	}
	return detail, false
}

// has takes one diagnosis of a source, if there is one left.
func (d *doctor) has(source string, now time.Time) bool {
	b := d.single[source]
	if b == nil {
		b = &bucket{perSecond: diagnosedPerSource, burst: diagnosedPerSource}
		d.single[source] = b
	}
	if _, none := d.all.empty(now); none {
		return false
	}
	if _, ok := b.take(now); !ok {
		return false
	}
	_, ok := d.all.take(now)
	return ok
}

// agree tells how many sources show the same gap now: several that sign at the same wrong
// time point at the clock of this machine.
func (d *doctor) agree(source string, g gap) (n int) {
	d.gaps[source] = g
	for name, other := range d.gaps {
		switch {
		case g.at.Sub(other.at) > agreeFor:
			delete(d.gaps, name)
		case (other.skew - g.skew).Abs() <= agreeWithin:
			n++
		}
	}
	return n
}

// curable are the reasons of which a cause can be looked for.
func curable(r provider.Reason) bool {
	switch r {
	case provider.MissingHeader, provider.MalformedHeader, provider.SignatureMismatch, provider.TokenMismatch, provider.TimestampExpired,
		provider.TimestampFuture, provider.KeyUntrusted, provider.ClaimMismatch, provider.MalformedBody:
		return true
	}
	return false
}
