package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fence is a snippet of a page: ```json file=x is a file, ```console a session, ```http a
// request that is refused.
var fence = regexp.MustCompile("(?ms)^```([a-z]*)( file=(\\S+))?\n(.*?)^```$")

// TestSnippetsOfTheHowTosDoWhatTheySay writes every file of a page and runs every
// command, from top to bottom, and compares what is printed.
func TestSnippetsOfTheHowTosDoWhatTheySay(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/how-to/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlace(t, "")
			for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
				switch lang, file, body := m[1], m[3], m[4]; {
				case file == "acuse.yaml":
					p.configure(body)
				case file != "":
					p.write(file, body)
				case lang == "console":
					p.session(body)
				case lang == "http":
					p.refusedRequest(body)
				}
			}
		})
	}
}

func (p *place) write(file, body string) {
	p.t.Helper()
	name := filepath.Join(p.Dir, filepath.FromSlash(file))
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, []byte(body), 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// refusedRequest sends a request as a page shows it, and waits until its refusal is kept.
func (p *place) refusedRequest(text string) {
	p.t.Helper()
	head, body, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n\n")
	lines := strings.Split(head, "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	var header []string
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		header = append(header, name, value)
	}
	before := len(p.refusals(""))
	p.must(method, "http://"+p.Public+target, []byte(body), header...).is(p.t, 401)
	until(p.t, "its refusal is kept", func() bool { return len(p.refusals("")) == before+1 })
}

// session runs the lines that begin with "$" and wants what stands beneath each in what
// it prints, numbers and spaces aside.
func (p *place) session(text string) {
	p.t.Helper()
	for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
		command, want, _ := strings.Cut(step, "\n")
		if command == "acuse serve" {
			p.start()
			continue
		}
		args := strings.Fields(command)
		name := args[0]
		if name == "acuse" {
			name = p.Bin
		}
		cmd := exec.CommandContext(p.t.Context(), name, args[1:]...)
		cmd.Dir = p.Dir
		cmd.Env = append(os.Environ(), "ACUSE_LANG=en")
		out, _ := cmd.CombinedOutput() // a command may fail on purpose: what it says counts
		for line := range strings.Lines(want) {
			if line = strings.TrimSpace(line); line != "" && !loose(line).Match(out) {
				p.t.Errorf("$ %s\nno line %q in\n%s", command, line, out)
			}
		}
	}
}

// varies is what differs from run to run: durations, delivery numbers, times, addresses.
var varies = []*regexp.Regexp{regexp.MustCompile(`[0-9]+ ms`), regexp.MustCompile(`#[0-9]+`),
	regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}`), regexp.MustCompile(`[0-9]+(?:\.[0-9]+){3}`)}

// loose matches a line of output in which what varies, and spaces, may differ.
func loose(line string) *regexp.Regexp {
	rest := regexp.QuoteMeta(line)
	for _, v := range varies {
		rest = regexp.MustCompile(quoted(v)).ReplaceAllLiteralString(rest, v.String())
	}
	return regexp.MustCompile("(?m)^ *" + regexp.MustCompile(" +").ReplaceAllLiteralString(rest, " +") + " *$")
}

// quoted is an expression that finds in a quoted text what v finds in the text itself.
func quoted(v *regexp.Regexp) string { return strings.ReplaceAll(v.String(), `\.`, `\\\.`) }
