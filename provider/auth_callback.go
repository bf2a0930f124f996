package provider

import (
	"errors"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// callbackPlan is kind callback: nothing is signed, the event is a hint. With the
// provider's API key as the source's secret each event is confirmed there before it is
// believed; without one it stays unproven, which a source has to allow.
type callbackPlan struct{ confirm []confirmation }

// confirmation is a question: the first whose URL can be made counts.
type confirmation struct {
	get    *template
	hosts  hostList
	equals []claim // fields of the answer
}

func parseCallback(path string, f *authFile) (plan, error) {
	p := &callbackPlan{}
	for i := range f.Confirm {
		one := &f.Confirm[i]
		sub := numbered(join(path, "confirm"), i, len(f.Confirm))
		var c confirmation
		var err error
		if c.get, err = parseTemplate(join(sub, "get"), one.Get, inIdentity); err != nil {
			return nil, err
		}
		if c.hosts, err = parseHosts(join(sub, "allow_hosts"), one.AllowHosts); err != nil {
			return nil, err
		}
		if len(one.Equals) == 0 {
			return nil, at(join(sub, "equals"), "missing: say which field of the answer names the thing that was asked for")
		}
		for name, text := range one.Equals {
			e := claim{name: name}
			if e.path, err = gjsonPath(name); err != nil {
				return nil, at(join(sub, "equals"), "%v", err)
			}
			if e.want, err = parseTemplate(join(sub, "equals."+name), text, inIdentity); err != nil {
				return nil, err
			}
			c.equals = append(c.equals, e)
		}
		p.confirm = append(p.confirm, c)
	}
	return p, nil
}

func (p *callbackPlan) each(f func(*placeholder)) {
	for _, c := range p.confirm {
		c.get.each(f)
		for _, e := range c.equals {
			e.want.each(f)
		}
	}
}

func (p *callbackPlan) bind(b *binding) (check, error) {
	if b.rehearsal != nil {
		return b.rehearsal.seal(), nil
	}
	c := &callbackCheck{callbackPlan: p, ask: newFetched(b.settings.Keys).keys}
	for i, secret := range b.secrets {
		var err error
		if len(p.confirm) == 0 {
			err = errors.New("is of no use: the file does not say how an event is confirmed")
		} else if strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			err = errors.New("is no API key: it holds a space or a character that a header cannot")
		}
		if b.take(i, err) {
			c.keys = append(c.keys, secret)
		}
	}
	return c, nil
}

type callbackCheck struct {
	*callbackPlan
	ask  Keys
	keys []string // API keys, by slot less one
}

func (c *callbackCheck) verify(in *input) verdict {
	in.hidden = nil
	if len(c.keys) == 0 {
		return verdict{unproven: true}
	}
	for _, one := range c.confirm {
		url, missing := one.get.append(nil, in)
		if missing != nil {
			continue
		}
		u, ok := one.hosts.allow(string(url))
		if !ok || strings.Contains(u.Path+"/", "/./") || strings.Contains(u.Path+"/", "/../") || strings.Contains(u.Path, "//") {
			return refuse(MalformedBody, "confirm", false)
		}
		return c.confirmed(in, one, string(url))
	}
	return refuse(MalformedBody, "confirm", false)
}

// confirmed asks the provider, with one API key after the other. An answer that the
// thing is not there, or is another one, refuses; anything else is no answer.
func (c *callbackCheck) confirmed(in *input, one confirmation, url string) verdict {
	gone, trouble := false, error(nil)
	for i, key := range c.keys {
		status, body, err := c.ask.Ask(in.r.context(), url, "Bearer "+key)
		switch {
		case err != nil:
			trouble = err
		case status == http.StatusOK && one.holds(in, body):
			return verdict{slot: i + 1}
		case status == http.StatusOK, status == http.StatusNotFound, status == http.StatusGone:
			gone = true
		case status == http.StatusUnauthorized, status == http.StatusForbidden:
			trouble = errors.New("the API key is refused there")
		default:
			trouble = errors.New("answered " + http.StatusText(status))
		}
	}
	if gone && trouble == nil {
		return refuse(NotConfirmed, one.hosts.name(), false)
	}
	return verdict{refusal: noKey(one.hosts.name(), trouble)}
}

func (one confirmation) holds(in *input, body []byte) bool {
	if !soundJSON(string(body)) {
		return false
	}
	for _, e := range one.equals {
		if !is(in, gjson.GetBytes(body, e.path), e.want) {
			return false
		}
	}
	return true
}

func (c *callbackCheck) early(http.Header) *Refusal { return nil }
func (c *callbackCheck) present(*input) bool        { return true }
func (c *callbackCheck) marks(func(*placeholder))   {}
func (c *callbackCheck) canSign() bool              { return false }
func (c *callbackCheck) sign(*signing) error        { return errCannotSign }
