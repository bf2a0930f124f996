package rule

import (
	"fmt"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm/runtime"
)

// Bounds of one run. Steps decide first: they are the same on every machine, so a rule that
// passes here passes there. The clock catches the rest: a few steps over very large values.
const (
	maxSteps   = 200_000 // turns of all loops together
	maxItems   = 200_000 // of lists that the rule itself makes
	maxJoined  = 1 << 20 // bytes of texts that the rule itself makes
	maxMatched = 64 << 10
	maxTime    = 250 * time.Millisecond
)

// bound is what ended a run.
type bound struct{ word, text string }

func (b *bound) Error() string { return b.text }

var (
	errSteps   = &bound{"steps", fmt.Sprintf("it took more than %d steps", maxSteps)}
	errTime    = &bound{"time", fmt.Sprintf("it took longer than %v", maxTime)}
	errMemory  = &bound{"memory", "it needs too much memory"}
	errMatched = &bound{"long", fmt.Sprintf("matches and split look at texts of at most %d bytes", maxMatched)}
)

// budget is what is left to one run.
type budget struct {
	began  time.Time
	steps  int
	joined int
	spent  *bound // which bound ended the run
}

func newBudget() *budget { return &budget{began: time.Now()} }

func (b *budget) late() error {
	if b.spent == nil && time.Since(b.began) > maxTime {
		b.spent = errTime
	}
	if b.spent == nil {
		return nil
	}
	return b.spent
}

func (b *budget) step() error {
	if b.steps++; b.steps > maxSteps && b.spent == nil {
		b.spent = errSteps
	}
	if b.spent == nil && b.steps%16 != 0 {
		return nil
	}
	return b.late()
}

// Names that no rule can write, since they hold a blank.
const (
	budgetName = "this run"
	turnName   = "one turn"
	plusName   = "join texts"
	shortName  = "short enough"
)

// functions are put into every rule by guard.
var functions = []expr.Option{
	expr.Function(turnName, func(p ...any) (any, error) {
		return p[1], p[0].(*budget).step()
	}, new(func(any, any) any)),
	expr.Function(plusName, func(p ...any) (any, error) {
		b := p[0].(*budget)
		x, isText := p[1].(string)
		if y, ok := p[2].(string); ok && isText {
			if b.joined += len(x) + len(y); b.joined > maxJoined {
				b.spent = errMemory
				return nil, b.spent
			}
		}
		return runtime.Add(p[1], p[2]), b.late()
	}, new(func(any, any, any) any)),
	expr.Function(shortName, func(p ...any) (any, error) {
		b := p[0].(*budget)
		if s, ok := p[1].(string); ok && len(s) > maxMatched {
			b.spent = errMatched
			return nil, b.spent
		}
		return p[1], b.late()
	}, new(func(any, any) any)),
}

// guard walks a rule before it is compiled. It notes the names, refuses what cannot be
// bounded, and puts a count into what can: each turn of a loop, each sum of texts.
type guard struct {
	names   Names
	uses    map[string]bool
	refused *file.Error
}

// Visit is called once for each node of the rule as it was written, the innermost first.
func (g *guard) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		g.identifier(n)
	case *ast.MemberNode:
		g.lowerName(n.Node, &n.Property)
	case *ast.BinaryNode:
		g.binary(node, n)
	case *ast.PredicateNode:
		g.wrap(&n.Node, turnName, n.Node)
	case *ast.BuiltinNode:
		switch {
		case n.Name == "get" && len(n.Arguments) == 2:
			g.lowerName(n.Arguments[0], &n.Arguments[1])
		case n.Name == "split" && len(n.Arguments) > 0:
			g.wrap(&n.Arguments[0], shortName, n.Arguments[0])
		}
	}
}

func (g *guard) identifier(n *ast.IdentifierNode) {
	if n.Value == "$env" {
		g.refuse(n, "$env is not known; name the values themselves")
	}
	g.uses[n.Value] = true
}

func (g *guard) binary(node *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "in":
		g.lowerName(n.Right, &n.Left)
	case "+":
		g.wrap(node, plusName, n.Left, n.Right)
	case "matches":
		pattern, ok := n.Right.(*ast.StringNode)
		switch {
		case !ok:
			g.refuse(n, "matches wants a pattern that stands in the rule")
		case len(pattern.Value) > maxPattern:
			g.refuse(n, fmt.Sprintf("the pattern has more than %d bytes", maxPattern))
		}
		g.wrap(&n.Left, shortName, n.Left)
	case "**", "^":
		g.refuse(n, "powers are not known")
	}
}

// lowerName writes the name of a header as the headers are kept.
func (g *guard) lowerName(of ast.Node, name *ast.Node) {
	id, ok := of.(*ast.IdentifierNode)
	if !ok || g.names[id.Value] != Texts {
		return
	}
	if s, ok := (*name).(*ast.StringNode); ok {
		s.Value = strings.ToLower(s.Value)
	}
}

// wrap replaces a node by a call of ours with the budget in front.
func (g *guard) wrap(node *ast.Node, function string, args ...ast.Node) {
	run := &ast.IdentifierNode{Value: budgetName}
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: function}, Arguments: append([]ast.Node{run}, args...)}
	for _, n := range []ast.Node{run, call.Callee, call} {
		n.SetLocation((*node).Location())
	}
	*node = call
}

func (g *guard) refuse(n ast.Node, text string) {
	if g.refused == nil {
		g.refused = &file.Error{Location: n.Location(), Message: text}
	}
}
