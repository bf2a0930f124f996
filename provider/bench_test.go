package provider

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkReceive has a line for each provider under the kinds of its authentication:
// -bench 'Receive/hmac', 'Receive/jwt'.
func BenchmarkReceive(b *testing.B) {
	for _, name := range folder(b).Names() {
		p, _ := folder(b).Get(name)
		vs := vectorsOf(b, name)
		i := slices.IndexFunc(vs, func(v Vector) bool { return v.Expect.Verdict == "ok" && v.Expect.Reason != "handshake" })
		v := vs[max(i, 0)]
		c := compileFor(b, p, v)
		r := request(b, v)
		now := time.Unix(v.Now, 0)
		b.Run(strings.Join(kinds(&p.file.Auth), "+")+"/"+name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(r.Body)))
			for b.Loop() {
				if _, err := c.Receive(r, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// kinds are those of an auth of a file, each once.
func kinds(a *authFile) (out []string) {
	if len(a.Of) == 0 {
		return []string{a.Kind}
	}
	for i := range a.Of {
		out = append(out, kinds(&a.Of[i])...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// BenchmarkRefuse is what a forger costs.
func BenchmarkRefuse(b *testing.B) {
	v := goodVectors(b, "stripe")[0]
	p, _ := folder(b).Get("stripe")
	c := compileFor(b, p, v, "a", "b", "c")
	r := request(b, v)
	now := time.Unix(v.Now, 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Receive(r, now); err == nil {
			b.Fatal("passed")
		}
	}
}

func BenchmarkSign(b *testing.B) {
	v := goodVectors(b, "stripe")[0]
	p, _ := folder(b).Get("stripe")
	c := compileFor(b, p, v)
	r := request(b, v)
	now := time.Unix(v.Now, 0)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Sign(r, 1, now); err != nil {
			b.Fatal(err)
		}
	}
}

// A request costs few allocations beyond its body, whatever its sender signs: a form, a
// part of one, its headers, its URL. Most of them are the texts that identify the event, so
// that the items of a batch count one by one.
func TestEveryHMACRequestAllocatesLittle(t *testing.T) {
	const most = 10
	tried := 0
	for _, name := range folder(t).Names() {
		p, _ := folder(t).Get(name)
		if !slices.Contains(kinds(&p.file.Auth), "hmac") {
			continue
		}
		for _, v := range goodVectors(t, name) {
			c := compileFor(t, p, v)
			r := request(t, v)
			now := time.Unix(v.Now, 0)
			in := c.open(r, now)
			_, keyed := provenBy(c.auth, in).(*signedCheck)
			b, _ := c.split(in)
			in.close()
			if !keyed {
				continue // another alternative let it in: a token
			}
			receive := func() {
				if _, err := c.Receive(r, now); err != nil {
					t.Fatal(err)
				}
			}
			least := 1000.0 // the race detector lets pools forget at random
			for range 30 {
				least = min(least, testing.AllocsPerRun(1, receive))
			}
			tried++
			if least > float64(most*max(len(b.items), 1)) {
				t.Errorf("%s: %v allocations for %d items", v.Name, least, len(b.items))
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d requests were tried", tried)
	}
}

// provenBy is the single check that lets a request in; of several that must all, the group.
func provenBy(c check, in *input) check {
	switch one := c.(type) {
	case anyOf:
		for _, c := range one {
			if c.verify(in).refusal == nil {
				return provenBy(c, in)
			}
		}
	case when:
		return provenBy(one.check, in)
	}
	return c
}

// BenchmarkEmbedded is what the catalogue costs at every start.
func BenchmarkEmbedded(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Embedded(); err != nil {
			b.Fatal(err)
		}
	}
}
