package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Problem is one thing wrong with a file. It holds no value of it: the line it
// quotes is made again from the key.
type Problem struct {
	File  string // as it was named; an environment variable's name for those
	Line  int    // 0: not known
	Path  string // "sources.stripe.secret"
	Text  string
	Quote string // the line, values hidden; may be empty
}

// String is one line: acuse.yaml:14: sources.stripe.secret: unknown key.
func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprint(":", p.Line)
	}
	if p.Path != "" {
		s += ": " + p.Path
	}
	return s + ": " + p.Text
}

// Problems is the error of a configuration that is not used, in order of file and
// line.
type Problems []Problem

func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
		if p.Quote != "" {
			fmt.Fprintf(&b, "\n%6d | %s", p.Line, p.Quote)
		}
	}
	return b.String()
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

// Warning is something that a person should know; it stops nothing.
type Warning struct{ Problem }

// position is where a key stands.
type position struct {
	file   string
	line   int
	column int // from 1
	key    string
}

func (p position) quote() string {
	if p.line == 0 {
		return ""
	}
	indent := strings.Repeat(" ", min(max(p.column-1, 0), 40))
	if p.key == "" {
		return indent + "- …"
	}
	return indent + p.key + ": …"
}

// Problem makes a problem of the key at path ("sources.stripe.provider"), or of the
// nearest key above it that the files hold: what others found wrong with a value
// (the catalogue, a rule) is told like what config itself found.
func (c *Config) Problem(path, format string, args ...any) Problem {
	p := Problem{File: c.file, Path: path, Text: fmt.Sprintf(format, args...)}
	for at := path; at != ""; at = above(at) {
		if pos, ok := c.lines[at]; ok {
			p.File, p.Line, p.Quote = pos.file, pos.line, pos.quote()
			break
		}
	}
	return p
}

// above cuts the last key or index off a path.
func above(path string) string {
	if i := strings.LastIndexAny(path, ".["); i > 0 {
		return path[:i]
	}
	return ""
}

var keyForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// shown is a key as messages may hold it: what looks like no key may be a value
// that slipped into its place.
func shown(key string) string {
	if keyForm.MatchString(key) {
		return key
	}
	return "[…]"
}

// Nearest is the option that word was probably meant to be; empty: none is near.
func Nearest(word string, options []string) string {
	best, least := "", 3
	for _, o := range slices.Sorted(slices.Values(options)) {
		if d := distance(word, o); d < least && d <= max(1, len(o)/3) {
			best, least = o, d
		}
	}
	return best
}

// meant is the end of a message about an unknown word.
func meant(word string, options []string) string {
	if n := Nearest(word, options); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

// distance counts the letters to add, remove, change or swap (of neighbours).
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := prev[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, prev[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(b)]
}
