package provider

import (
	"testing"
	"time"
)

// BenchmarkReceive has one line for each way of checking, over a body of its provider.
func BenchmarkReceive(b *testing.B) {
	for _, name := range []string{"github", "stripe", "standard-webhooks", "slack", "telegram", "basic-auth", "gitlab", "twilio", "okta", "adyen",
		"discord", "sendgrid", "wise", "aws-sns", "netlify", "google-pubsub-push", "plaid", "ip-allow"} {
		v := goodVectors(b, name)[0]
		p, _ := folder(b).Get(name)
		c := compileFor(b, p, v)
		r := request(b, v)
		now := time.Unix(v.Now, 0)
		b.Run(name, func(b *testing.B) {
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

func TestTheHMACPathAllocatesLittle(t *testing.T) {
	for _, name := range []string{"github", "stripe", "standard-webhooks", "slack"} {
		v := goodVectors(t, name)[0]
		p, _ := folder(t).Get(name)
		c := compileFor(t, p, v)
		r := request(t, v)
		now := time.Unix(v.Now, 0)
		got := testing.AllocsPerRun(100, func() {
			if _, err := c.Receive(r, now); err != nil {
				t.Fatal(err)
			}
		})
		if got > 10 {
			t.Errorf("%s: %v allocations a request", name, got)
		}
	}
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
