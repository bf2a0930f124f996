package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestReportCountsEveryTestOnceAndShowsWhatFailed(t *testing.T) {
	t.Parallel()
	const in = `{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestX"}
{"Action":"output","Package":"a","Test":"TestX","Output":"said by X\n"}
{"Action":"pass","Package":"a","Test":"TestX","Elapsed":0.1}
{"Action":"output","Package":"a","Test":"TestY/sub","Output":"said by Y\n"}
{"Action":"fail","Package":"a","Test":"TestY/sub"}
{"Action":"fail","Package":"a","Test":"TestY"}
{"Action":"skip","Package":"a","Test":"TestZ"}
{"Action":"fail","Package":"a","Elapsed":1.5}
{"Action":"skip","Package":"without tests"}
{"Action":"build-output","ImportPath":"b","Output":"b.go:1: broken\n"}
{"Action":"fail","Package":"b","FailedBuild":"b"}
{"Action":"output","Package":"c","Test":"TestHangs","Output":"said before the end\n"}
{"Action":"output","Package":"c","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"c"}
{"Action":"pass","Package":"d","Elapsed":2}
plain text
`
	var out bytes.Buffer
	r := &report{out: &out, output: map[string][]string{}, broken: map[string]bool{}}
	if err := r.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	if got := r.counts(); got != "1 4 1 4" { // X; Y, Y/sub, b, c; Z; a b c d
		t.Errorf("counts %s", got)
	}
	for _, want := range []string{"said by Y", "b.go:1: broken", "panic: test timed out", "said before the end", "ok       d  2.0 s", "skipped  a TestZ", "plain text"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "said by X") {
		t.Error("what passed is printed")
	}
}
