package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The bounds of a config file. The parser takes time that grows with the square of
// the depth, so depth is counted before it.
const (
	maxConfig = 1 << 20
	maxDepth  = 40
	maxIndent = 200
)

// parseYAML returns the mapping of a file's only document; nil for an empty one.
func (r *reader) parseYAML(text []byte) *ast.MappingNode {
	if len(text) > maxConfig {
		r.add(position{}, "", "file is larger than 1 MiB")
		return nil
	}
	file, err := parseGuarded(text)
	if err != nil {
		r.syntax(err, string(text))
		return nil
	}
	var body ast.Node
	for _, d := range file.Docs {
		switch {
		case d.Body == nil:
		case body != nil:
			r.add(r.at(d.Body, ""), "", "one document is wanted: remove the line ---")
			return nil
		default:
			body = d.Body
		}
	}
	switch n := body.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.MappingNode:
		return n
	case *ast.MappingValueNode:
		return &ast.MappingNode{BaseNode: &ast.BaseNode{}, Values: []*ast.MappingValueNode{n}}
	default:
		r.add(position{file: r.file, line: line(n)}, "", "keys with values are wanted, such as: listen: \":8080\"")
		return nil
	}
}

// parseGuarded refuses what is nested too deeply, and takes a panic of the parser
// for a file that cannot be read.
func parseGuarded(text []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, errNotYAML
		}
	}()
	tokens := lexer.Tokenize(string(text))
	if t := tooDeep(tokens); t != nil {
		return nil, &yaml.SyntaxError{Message: "nested too deeply", Token: t}
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

var errNotYAML = errors.New("this is not YAML")

func tooDeep(tokens token.Tokens) *token.Token {
	flow, dashes, onLine := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != onLine {
			dashes, onLine = 0, t.Position.Line
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		case token.MappingValueType:
			if flow == 0 && t.Position.IndentNum > maxIndent {
				return t
			}
		}
		if flow > maxDepth || dashes > maxDepth {
			return t
		}
	}
	return nil
}

// syntax tells where the file stops being YAML. The parser's own message may hold a
// part of the file, so it is told only when it is one of its fixed texts.
func (r *reader) syntax(err error, text string) {
	pos, message := position{file: r.file}, "this is not YAML"
	var s *yaml.SyntaxError
	if errors.As(err, &s) {
		if fixedMessage.MatchString(s.Message) {
			message += ": " + s.Message
		}
		if s.Token != nil && s.Token.Position != nil {
			pos.line = s.Token.Position.Line
		}
	}
	p := Problem{File: r.file, Line: pos.line, Text: message}
	if lines := strings.Split(text, "\n"); pos.line > 0 && pos.line <= len(lines) {
		p.Quote = maskLine(lines[pos.line-1])
	}
	*r.problems = append(*r.problems, p)
}

// fixedMessage fits the parser's messages that quote nothing but punctuation.
var fixedMessage = regexp.MustCompile(`^(?:nested too deeply|(?:could not find|found an? invalid|unexpected|undefined|mapping value|value is not|value cannot|sequence end|sequence entries|non-map|block sequence|expected|map key|anchor|tag is|',' or)[a-z ,.:'\-\]\[{}]*)$`)

var lineForm = regexp.MustCompile(`^(\s{0,40}(?:- )?)([A-Za-z0-9_]+)\s*:(?:\s|$)`)

// maskLine quotes a line that could not be parsed: its key, when it is one of ours,
// and nothing else.
func maskLine(line string) string {
	m := lineForm.FindStringSubmatch(line)
	if m == nil || !knownKeys[m[2]] {
		return "…"
	}
	return fmt.Sprintf("%s%s: …", m[1], m[2])
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}
