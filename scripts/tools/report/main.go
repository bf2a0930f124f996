// Command report reads the output of go test -json, prints a line a package and the
// output of what failed, and writes "PASSED FAILED SKIPPED PACKAGES" to the file
// named. Exit 1 when a test or a package failed, or when no test ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// report is what was seen so far.
type report struct {
	out                               io.Writer
	passed, failed, skipped, packages int
	output                            map[string][]string // by package and test, until it ends
	broken                            map[string]bool     // packages with a failed test
}

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | report FILE\n\nPrints what failed and writes \"PASSED FAILED SKIPPED PACKAGES\" to FILE.")
		os.Exit(2)
	}
	r := &report{out: os.Stdout, output: map[string][]string{}, broken: map[string]bool{}}
	err := r.read(os.Stdin)
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(r.counts()+"\n"), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	if r.failed > 0 || r.passed == 0 {
		os.Exit(1)
	}
}

func (r *report) counts() string {
	return fmt.Sprint(r.passed, " ", r.failed, " ", r.skipped, " ", r.packages)
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(r.out, lines.Text()) // not of go test: shown as it is
			continue
		}
		r.event(&e)
	}
	return lines.Err()
}

func (r *report) event(e *event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
		return
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	if e.Test == "" {
		r.packageEnd(e, r.output[key])
	} else {
		r.testEnd(e, r.output[key])
	}
	delete(r.output, key)
}

func (r *report) testEnd(e *event, output []string) {
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		fmt.Fprintf(r.out, "skipped  %s %s\n", e.Package, e.Test)
	case "fail":
		r.failed++
		r.broken[e.Package] = true
		fmt.Fprintf(r.out, "\nFAILED   %s %s\n%s", e.Package, e.Test, strings.Join(output, ""))
	}
}

func (r *report) packageEnd(e *event, output []string) {
	if e.Action == "skip" { // no test files
		return
	}
	r.packages++
	if e.Action == "pass" {
		fmt.Fprintf(r.out, "ok       %s  %.1f s\n", e.Package, e.Elapsed)
		return
	}
	if !r.broken[e.Package] { // it did not build, panicked or ran out of time
		r.failed++
	}
	fmt.Fprintf(r.out, "FAILED   %s  %.1f s\n%s", e.Package, e.Elapsed, strings.Join(output, ""))
	for key, lines := range r.output { // of tests that never ended
		if strings.HasPrefix(key, e.Package+" ") && !strings.HasSuffix(key, " ") {
			fmt.Fprintf(r.out, "without an end: %s\n%s", key, strings.Join(lines, ""))
			delete(r.output, key)
		}
	}
}
