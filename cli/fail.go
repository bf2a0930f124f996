package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitWell = iota
	exitFailed
	exitMisuse
	exitNotFound
	exitNotRunning
	exitPartly
)

// failure is an error in three parts: what, why as far as known, what to do next.
type failure struct {
	code int
	what string // empty: everything was said already
	why  string
	todo string

	status int // of an answer of the API; 0: there was none
}

func (f *failure) Error() string {
	if f.why == "" {
		return f.what
	}
	return f.what + ": " + f.why
}

// complain prints a failure.
func (a *app) complain(f *failure) {
	a.note("acuse: %s", f.Error())
	if f.todo != "" {
		a.note("  %s", f.todo)
	}
}

// misuse is the failure of a command that was called wrongly.
func (a *app) misuse(cmd *cobra.Command, what string) error {
	return &failure{code: exitMisuse, what: what, todo: a.f("see.help", cmd.CommandPath())}
}

// note prints a line on standard error.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.opt.Stderr, format+"\n", args...) }

// say prints a line on standard output.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.opt.Stdout, format+"\n", args...) }

// remark prints a line on standard error unless -q was given.
func (a *app) remark(format string, args ...any) {
	if !a.quiet {
		a.note(format, args...)
	}
}

// w is a word of the catalogue.
func (a *app) w(key string) string {
	s, ok := a.words[key]
	if !ok {
		return "[" + key + "]" // the tests find these
	}
	return s
}

// f is a word with its gaps filled.
func (a *app) f(key string, args ...any) string { return fmt.Sprintf(a.w(key), args...) }

// n is a word in the form for a number: KEY.one or KEY.other.
func (a *app) n(key string, n int) string {
	if n == 1 {
		return a.f(key+".one", n)
	}
	return a.f(key+".other", n)
}

// several reports on acts of which some failed: nil, partly, or the one failure.
func (a *app) several(done int, failed []error) error {
	switch {
	case len(failed) == 0:
		return nil
	case len(failed) == 1 && done == 0:
		return failed[0]
	}
	code := exitPartly
	if done == 0 {
		code = exitFailed
	}
	for i, err := range failed {
		if i == 10 {
			a.note("acuse: %s", a.f("and.more", len(failed)-i))
			break
		}
		var f *failure
		if errors.As(err, &f) {
			a.note("acuse: %s", f.Error())
		} else {
			a.note("acuse: %s", strings.TrimSpace(err.Error()))
		}
	}
	return &failure{code: code, what: a.f("partly", done, len(failed))}
}
