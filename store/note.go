package store

import (
	"fmt"
	"strings"
)

// Note is what Job.Note holds: the rule that decided over a job, and how. Its text is kept
// with the job, so that it stays true when the configuration changes.
type Note struct {
	Rule   string // as it was written
	Key    string // "filter" or "order_by"; empty: not known, as for a test event that is kept
	Source bool   // the rule is the source's
	// Failed is the machine word of an error, at a line and column of the rule; empty: the
	// rule said no.
	Failed       string
	Line, Column int
}

const noteMark = "\n// acuse: "

// String is the form that is kept: the rule, then a comment that says the rest.
func (n Note) String() string {
	if n.Key == "" {
		return n.Rule
	}
	owner := "destination"
	if n.Source {
		owner = "source"
	}
	s := n.Rule + noteMark + n.Key + " " + owner
	if n.Failed != "" {
		s += fmt.Sprintf(" %s %d:%d", n.Failed, n.Line, n.Column)
	}
	return s
}

// ParseNote reads what String wrote; any other text is a rule.
func ParseNote(s string) Note {
	i := strings.LastIndex(s, noteMark)
	if i < 0 {
		return Note{Rule: s}
	}
	n := Note{Rule: s[:i]}
	words := strings.Fields(s[i+len(noteMark):])
	if len(words) != 2 && len(words) != 4 {
		return Note{Rule: s}
	}
	n.Key, n.Source = words[0], words[1] == "source"
	if len(words) == 4 {
		n.Failed = words[2]
		if _, err := fmt.Sscanf(words[3], "%d:%d", &n.Line, &n.Column); err != nil {
			return Note{Rule: s}
		}
	}
	return n
}
