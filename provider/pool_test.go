package provider

import (
	"fmt"
	"testing"
	"time"
)

// What Receive gave stays as it was while the buffers it was read into serve others.
func TestAResultKeepsNothingOfThePooledBuffers(t *testing.T) {
	t.Parallel()
	show := func(res Result, err error) string {
		text := fmt.Sprintf("%+v %q %q %q %v", res.Events, res.Captured, res.Then, res.Quarantine, err)
		if res.Handshake != nil {
			text += fmt.Sprintf("%+v", *res.Handshake)
		}
		return text
	}
	type kept struct {
		name string
		res  Result
		err  error
		then string
	}
	var all []kept
	for _, name := range folder(t).Names() {
		p, _ := folder(t).Get(name)
		for _, v := range vectorsOf(t, name) {
			if v.Expect.Verdict != "ok" {
				continue
			}
			r := request(t, v)
			r.Capturing = true
			res, err := compileFor(t, p, v).Receive(r, time.Unix(v.Now, 0))
			all = append(all, kept{v.Name, res, err, show(res, err)})
		}
	}
	if len(all) < 500 {
		t.Errorf("only %d results", len(all))
	}
	for _, k := range all {
		if now := show(k.res, k.err); now != k.then {
			t.Errorf("%s: was %s, is %s", k.name, k.then, now)
		}
	}
}
