package provider

import (
	"encoding/json"
	"net/http"
	"slices"
)

// answer is one compiled entry of a file's response.
type answer struct {
	match  *match // nil: always
	reply  *Reply // nil: the provider does not care
	reject int
}

func parseResponse(path string, list []replyFile) ([]answer, error) {
	var out []answer
	for i := range list {
		f := &list[i]
		a := answer{reject: f.RejectStatus}
		if f.Match != nil {
			m, err := compileMatch(join(path, "match"), f.Match)
			if err != nil {
				return nil, err
			}
			a.match = m
		}
		if f.RejectStatus != 0 && (f.RejectStatus < 400 || f.RejectStatus > 499) {
			return nil, at(join(path, "reject_status"), "want 400 to 499")
		}
		a.reply = newReply(f)
		out = append(out, a)
	}
	return out, nil
}

// newReply is nil when any 200 with any body will do.
func newReply(f *replyFile) *Reply {
	status := http.StatusOK
	if len(f.Success) > 0 && !slices.Contains(f.Success, status) {
		status = f.Success[0]
	}
	if f.Body == nil && status == http.StatusOK {
		return nil
	}
	r := &Reply{Status: status, Header: http.Header{}, Body: []byte(deref(f.Body))}
	if len(r.Body) > 0 {
		r.Header.Set("Content-Type", "text/plain; charset=utf-8")
		if r.Body[0] == '{' && json.Valid(r.Body) {
			r.Header.Set("Content-Type", "application/json")
		}
	}
	return r
}

// Reply is what the provider wants to read after a stored event; nil when it does not
// care. It is shared: do not change it.
func (c *Checker) Reply(r *Request) *Reply {
	var in *input
	for i := range c.answers {
		a := &c.answers[i]
		if a.match == nil {
			return a.reply
		}
		if in == nil {
			in = c.open(r, r.zero())
			defer in.close()
		}
		if a.match.holds(in) {
			return a.reply
		}
	}
	return nil
}
