package rule

import (
	"net/http"
	"strings"
)

// EventNames are what the rules of sources and destinations may name.
var EventNames = Names{
	"headers": Texts, "type": Text, "resource": Text, "source": Text, "event_id": Text, "method": Text,
	"test": Flag, "size": Number, "body": Any,
}

// Event is one event as rules see it. It is made for one request and not shared.
type Event struct {
	Source   string
	Method   string
	ID       string
	Type     string
	Resource string
	Test     bool
	Header   http.Header
	Body     []byte // of the item, in a batch

	values Values
	parsed bool
}

// Decide runs a yes-or-no rule over the event.
func (e *Event) Decide(r *Rule) (bool, error) { return r.Decide(e.valuesFor(r)) }

// Value runs a rule that gives a value over the event.
func (e *Event) Value(r *Rule) (string, error) { return r.Value(e.valuesFor(r)) }

// valuesFor makes what the rule names; the body is parsed by the first rule that asks.
func (e *Event) valuesFor(r *Rule) Values {
	if e.values == nil {
		e.values = Values{
			"headers": map[string]string(nil), "type": e.Type, "resource": e.Resource, "source": e.Source, "event_id": e.ID, "method": e.Method,
			"test": e.Test, "size": len(e.Body), "body": nil,
		}
	}
	if r.Uses("headers") && e.values["headers"].(map[string]string) == nil {
		e.values["headers"] = lowered(e.Header)
	}
	if r.Uses("body") && !e.parsed {
		e.values["body"], e.parsed = parseJSON(e.Body), true
	}
	return e.values
}

// lowered joins the values of a header by a comma, as HTTP lets it.
func lowered(h http.Header) map[string]string {
	m := make(map[string]string, len(h))
	for name, values := range h {
		m[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return m
}
