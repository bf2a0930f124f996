// Package rule holds the expressions that an owner writes into the configuration: which
// events go where, in which order. They are compiled when the configuration is read and
// bounded when they run, in steps, in memory and in time, so that neither a rule nor a body
// can hold up the edge.
//
// An error of this package holds parts of the rule, never a value it was run over: it may
// be logged.
package rule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

// Kind is what a name stands for.
type Kind int

// The kinds of names.
const (
	Text   Kind = iota + 1
	Number      // a whole one
	Flag        // true or false
	Texts       // texts by name, such as headers; the case of a name written in the rule does not matter
	Any         // a JSON document
)

// Names are what a rule may name.
type Names map[string]Kind

// Values are the values of the names for one run. Texts are a map[string]string with
// names in small letters, a Number is an int.
type Values = map[string]any

// Rule is a compiled expression. It may be run by many at once.
type Rule struct {
	text    string
	program *vm.Program
	uses    map[string]bool
}

// Bounds of the text of a rule.
const (
	maxText    = 4096
	maxNodes   = 300
	maxPattern = 256 // bytes of a pattern behind matches
)

// Compile reads a rule. An error is an *Error that names line and column.
func Compile(text string, names Names) (*Rule, error) {
	if strings.TrimSpace(text) == "" {
		return nil, &Error{Line: 1, Column: 1, Text: "the rule is empty"}
	}
	if len(text) > maxText {
		return nil, &Error{Line: 1, Column: 1, Text: fmt.Sprintf("the rule has %d bytes, more than the %d that are taken", len(text), maxText)}
	}
	guard := &guard{names: names, uses: map[string]bool{}}
	options := []expr.Option{expr.Env(guard.types()), expr.MaxNodes(maxNodes), expr.DisableAllBuiltins()}
	for _, name := range builtins {
		if _, taken := names[name]; !taken {
			options = append(options, expr.EnableBuiltin(name))
		}
	}
	// Once as it was written, for errors in its own terms, and once with the counts put in.
	if _, err := expr.Compile(text, options...); err != nil {
		return nil, compileError(err)
	}
	program, err := expr.Compile(text, append(append(options, functions...), expr.MaxNodes(0), expr.Patch(guard))...)
	if guard.refused != nil { // said better than by what follows from it
		err = guard.refused.Bind(file.NewSource(text))
	}
	if err != nil {
		return nil, compileError(err)
	}
	return &Rule{text: text, program: program, uses: guard.uses}, nil
}

// builtins are those that may be used: none depends on the clock, and what each costs is in
// proportion to what it is given. They are the language's own.
var builtins = []string{
	"all", "none", "any", "one", "filter", "map", "find", "findIndex", "findLast", "findLastIndex", "count", "sum",
	"len", "type", "abs", "ceil", "floor", "round", "int", "float", "string", "trim", "trimPrefix", "trimSuffix", "upper", "lower",
	"split", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix", "max", "min", "first", "last", "get", "keys", "values",
}

func (g *guard) types() types.Map {
	m := types.Map{budgetName: types.Any}
	for name, kind := range g.names {
		switch kind {
		case Text:
			m[name] = types.String
		case Number:
			m[name] = types.Int
		case Flag:
			m[name] = types.Bool
		case Texts:
			m[name] = types.TypeOf(map[string]string{})
		default:
			m[name] = types.Any
		}
	}
	return m
}

// String is the rule as it was written.
func (r *Rule) String() string { return r.text }

// Uses tells whether the rule names name: what it does not name need not be there.
func (r *Rule) Uses(name string) bool { return r.uses[name] }

// Decide runs a rule that says yes or no. Anything but true and false is an *Error.
func (r *Rule) Decide(v Values) (bool, error) {
	out, err := r.run(v)
	if err != nil {
		return false, err
	}
	yes, ok := out.(bool)
	if !ok {
		return false, &Error{Line: 1, Column: 1, Text: "the rule gave " + kindOf(out) + ", neither true nor false", Word: "result"}
	}
	return yes, nil
}

// maxValue is how many bytes a value may have.
const maxValue = 1024

// Value runs a rule that gives a text, a number or a truth value, as text. Nothing (null,
// or a field that is absent) is "".
func (r *Rule) Value(v Values) (string, error) {
	out, err := r.run(v)
	if err != nil {
		return "", err
	}
	text := ""
	switch out := out.(type) {
	case nil:
	case string:
		text = out
	case bool:
		text = strconv.FormatBool(out)
	case int:
		text = strconv.Itoa(out)
	case float64:
		text = strconv.FormatFloat(out, 'g', -1, 64)
	default:
		return "", &Error{Line: 1, Column: 1, Text: "the rule gave " + kindOf(out) + ", not a text or a number", Word: "result"}
	}
	if len(text) > maxValue {
		return "", &Error{Line: 1, Column: 1, Text: fmt.Sprintf("the rule gave a text of more than %d bytes", maxValue), Word: "result"}
	}
	return text, nil
}

func (r *Rule) run(v Values) (out any, err error) {
	b := newBudget()
	v[budgetName] = b
	machine := vm.VM{MemoryBudget: maxItems}
	out, err = machine.Run(r.program, v)
	if err == nil {
		err = b.late() // the last operation may have been the one too many
	}
	if err != nil {
		return nil, runError(err, b)
	}
	return out, nil
}

// kindOf is the kind of a value in words; it does not hold the value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing (null, or a field that is absent)"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case int, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "something else"
}

// Error is what is wrong with a rule, or went wrong when it ran.
type Error struct {
	Line, Column int // from 1
	Text         string
	// Word is the machine word of what went wrong in a run: steps, time, memory, long (a text
	// for matches), kind (it works on something absent or of another kind), result (it gave
	// something else than is wanted). Empty for an error of Compile.
	Word string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Text)
}

func compileError(err error) *Error {
	var at *file.Error
	if !errors.As(err, &at) {
		return &Error{Line: 1, Column: 1, Text: err.Error()}
	}
	return &Error{Line: max(at.Line, 1), Column: at.Column + 1, Text: at.Message}
}

// runError keeps the place and, of the engine's own words, nothing: they may quote values.
func runError(err error, b *budget) *Error {
	e := &Error{Line: 1, Column: 1, Text: "it works on something absent or of another kind, such as a number where a text stands", Word: "kind"}
	var at *file.Error
	if errors.As(err, &at) {
		e.Line, e.Column = max(at.Line, 1), at.Column+1
		if at.Message == "memory budget exceeded" {
			b.spent = errMemory
		}
	}
	if b.spent != nil {
		e.Text, e.Word = b.spent.text, b.spent.word
	}
	return e
}
