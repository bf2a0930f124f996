package effect

import "testing"

func TestP10WhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		end           End
		with, without Meaning
	}{
		{"created", End{Status: 201}, Stored, Stored},
		{"a redirect", End{Status: 303}, Stored, Stored},
		{"a card declined", End{Status: 402}, Stored, Stored},
		{"a bad request", End{Status: 400}, Stored, Stored},
		{"not found", End{Status: 404}, Stored, Stored},
		{"unprocessable", End{Status: 422}, Stored, Stored},
		{"unauthorised", End{Status: 401}, Released, Released},
		{"forbidden", End{Status: 403}, Released, Released},
		{"a proxy wants a login", End{Status: 407}, Released, Released},
		{"the upstream waited too long for us", End{Status: 408}, Released, Released},
		{"conflict", End{Status: 409}, Released, Released},
		{"misdirected", End{Status: 421}, Released, Released},
		{"too early", End{Status: 425}, Released, Released},
		{"too many", End{Status: 429}, Released, Released},
		{"the upstream fell over", End{Status: 500}, Stored, Uncertain},
		{"unavailable", End{Status: 503}, Stored, Uncertain},
		{"bad gateway", End{Status: 502}, Uncertain, Uncertain},
		{"gateway timeout", End{Status: 504}, Uncertain, Uncertain},
		{"refused", End{Class: "refused"}, Released, Released},
		{"timeout before anything was sent", End{Class: "timeout"}, Released, Released},
		{"timeout after it was sent", End{Class: "timeout", Sent: true}, Uncertain, Uncertain},
		{"cut after it was sent", End{Class: "reset", Sent: true}, Uncertain, Uncertain},
		{"no HTTP", End{Status: 999}, Uncertain, Uncertain},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := MeaningOf(c.end, true, On5xxDefault); got != c.with {
				t.Errorf("with a key: %v, want %v", got, c.with)
			}
			if got := MeaningOf(c.end, false, On5xxDefault); got != c.without {
				t.Errorf("without a key: %v, want %v", got, c.without)
			}
		})
	}
}

func TestOn5xxDecidesOfItsRowAlone(t *testing.T) {
	t.Parallel()
	for status := 100; status < 600; status++ {
		for _, key := range []bool{true, false} {
			plain := MeaningOf(End{Status: status}, key, On5xxDefault)
			replay, retry := MeaningOf(End{Status: status}, key, On5xxReplay), MeaningOf(End{Status: status}, key, On5xxRetry)
			if status/100 == 5 && status != 502 && status != 504 {
				if replay != Stored || retry != Released {
					t.Errorf("%d: %v, %v", status, replay, retry)
				}
			} else if replay != plain || retry != plain {
				t.Errorf("%d: %v, %v, %v", status, plain, replay, retry)
			}
		}
	}
}
