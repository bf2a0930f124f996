// Command peers lets the providers' own libraries, from npm, talk to a running acuse: what
// a library signs is taken, and what acuse delivers, the retry signed afresh, the library
// takes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"acuse/scripts/tools/load"
)

func main() {
	keep := flag.Bool("keep", false, "keep the folder with data and log")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/peers [--keep] [PROVIDER...]\n\nLets the providers' own libraries sign for acuse and verify what it delivers.\nExit 1 when one does not agree.")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := load.UntilSignal()
	defer stop()
	passed, failed, err := run(ctx, *keep, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
	_, err = fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 || err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, keep bool, names []string) (passed, failed int, err error) {
	dir, err := os.MkdirTemp("", "acuse-peers-")
	if err != nil {
		return 0, 0, err
	}
	if keep {
		fmt.Println("folder:", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	node := exec.CommandContext(ctx, "node", append([]string{"peers.mjs"}, names...)...)
	node.Dir, node.Stderr = "provider/peers", os.Stderr
	in, err := node.StdinPipe()
	if err != nil {
		return 0, 0, err
	}
	out, err := node.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := node.Start(); err != nil {
		return 0, 0, err
	}
	defer node.Process.Kill()
	lines := bufio.NewScanner(out)
	a, err := start(dir, lines)
	if err != nil {
		return 0, 0, err
	}
	defer a.Kill()
	if _, err := io.WriteString(in, "http://"+a.Public+"\n"); err != nil {
		return 0, 0, err
	}
	if passed, failed, err = results(lines); err != nil {
		return passed, failed, err
	}
	if err := node.Wait(); err != nil {
		return passed, failed, errors.Join(context.Cause(ctx), err)
	}
	return passed, failed, nil
}

// start starts acuse with the sources that the peers ask for. Each delivers to a path
// of the peers' app, and tries again a second or two later, so that a signed time differs.
func start(dir string, lines *bufio.Scanner) (*load.Acuse, error) {
	var ask struct {
		App     string            `json:"app"`
		Sources map[string]string `json:"sources"`
	}
	if !lines.Scan() {
		return nil, errors.New("the peers say nothing; are they installed? scripts/peers does it")
	}
	if err := json.Unmarshal(lines.Bytes(), &ask); err != nil {
		return nil, err
	}
	var conf strings.Builder
	conf.WriteString("public_url: https://hooks.example.org\nsources:\n")
	for _, name := range slices.Sorted(maps.Keys(ask.Sources)) {
		fmt.Fprintf(&conf, "  %s: {provider: %s, secrets: [%q], deliver_to: [%s]}\n", name, name, ask.Sources[name], name)
	}
	conf.WriteString("destinations:\n")
	for _, name := range slices.Sorted(maps.Keys(ask.Sources)) {
		fmt.Fprintf(&conf, "  %s: {url: %q, retry: {schedule: [1500ms, 1500ms]}}\n", name, ask.App+"/"+name)
	}
	bin, err := load.Build(dir, "")
	if err != nil {
		return nil, err
	}
	a := &load.Acuse{Bin: bin, Dir: dir}
	if err := a.Configure(conf.String()); err != nil {
		return nil, err
	}
	return a, a.Start()
}

func results(lines *bufio.Scanner) (passed, failed int, err error) {
	line := func(a ...any) error {
		_, err := fmt.Printf("%-18s  %-28s  %-26s  %-14s  %s\n", a...)
		return err // nobody reads on
	}
	if err := line("provider", "library", "signed by", "retry", "result"); err != nil {
		return 0, 0, err
	}
	for lines.Scan() {
		var r struct{ Name, Library, Signs, Fresh, Error string }
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return passed, failed, err
		}
		result := "both agree"
		if r.Error != "" {
			failed++
			result = "FAILED: " + r.Error
		} else {
			passed++
		}
		if err := line(r.Name, r.Library, r.Signs, r.Fresh, result); err != nil {
			return passed, failed, err
		}
	}
	return passed, failed, lines.Err()
}
