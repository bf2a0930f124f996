package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func (a *app) testCommand() *cobra.Command {
	var kind string
	var deliver bool
	c := a.command("test SOURCE", "test", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		in := map[string]any{"type": kind, "deliver": deliver}
		query := url.Values{}
		a.speak(query)
		path := address("/api/v1/sources/"+url.PathEscape(args[0])+"/test", query)
		resp, err := a.client().open(cmd.Context(), http.MethodPost, path, in)
		if err != nil {
			if f, ok := err.(*failure); ok && f.code == exitNotFound {
				return &failure{code: exitNotFound, what: a.f("no.source", clean(args[0]))}
			}
			return err
		}
		defer func() { _ = resp.Body.Close() }() // was only read
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		steps, failed := 0, false
		for lines.Scan() {
			var s testStep
			if json.Unmarshal(lines.Bytes(), &s) != nil {
				return &failure{code: exitFailed, what: a.w("answer.unknown")}
			}
			steps, failed = steps+1, failed || !s.OK
			if a.json {
				a.line(lines.Bytes())
			} else {
				a.say("%s", a.step(&s))
			}
		}
		switch {
		case lines.Err() != nil || steps == 0:
			return &failure{code: exitFailed, what: a.w("answer.cut")}
		case failed:
			return &failure{code: exitFailed, what: a.f("test.failed", clean(args[0]))}
		}
		return nil
	})
	c.Flags().StringVar(&kind, "type", "", a.w("flag.type"))
	c.Flags().BoolVar(&deliver, "deliver", false, a.w("flag.deliver"))
	return c
}

// step is one line of a test: what, the details, how long.
func (a *app) step(s *testStep) string {
	name := a.words["step."+s.Step]
	if name == "" {
		name = clean(s.Step)
	}
	text := clean(s.Text)
	pad := max(0, 24-utf8.RuneCountInString(text))
	line := fmt.Sprintf("%-9s  %s%s%7d ms", name, text, strings.Repeat(" ", pad), s.Ms)
	if !s.OK {
		return a.color.Red(line)
	}
	return line
}
