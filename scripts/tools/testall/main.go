// Command testall starts acuse with one source for every provider of the catalogue and
// runs "acuse test" for each sample of each: signed as the provider would, sent through
// the public listener, followed to the built-in echo.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"acuse/provider"
	"acuse/scripts/tools/load"
)

func main() {
	keep := flag.Bool("keep", false, "keep the folder with data and log")
	first := flag.Bool("first", false, "only the first sample of each provider")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/testall [--first] [--keep]\n\nSends a test event of every provider through a running acuse. Exit 1 when one\nis not delivered.")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := load.UntilSignal()
	defer stop()
	passed, failed, err := run(ctx, *first, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testall:", err)
		os.Exit(1)
	}
	_, err = fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 || err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, first, keep bool) (passed, failed int, err error) {
	cat, err := provider.Embedded()
	if err != nil {
		return 0, 0, err
	}
	dir, err := os.MkdirTemp("", "acuse-testall-")
	if err != nil {
		return 0, 0, err
	}
	if keep {
		fmt.Println("folder:", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	bin, err := load.Build(dir, "")
	if err != nil {
		return 0, 0, err
	}
	conf, err := configuration(cat)
	if err != nil {
		return 0, 0, err
	}
	a := &load.Acuse{Bin: bin, Dir: dir}
	if err := a.Configure(conf); err != nil {
		return 0, 0, err
	}
	if err := a.Start(); err != nil {
		return 0, 0, err
	}
	defer a.Kill()
	for _, name := range cat.Names() {
		p, _ := cat.Get(name)
		types := p.Types()
		if first && len(types) > 1 {
			types = types[:1]
		}
		if len(types) == 0 {
			types = []string{""}
		}
		for _, typ := range types {
			begin := time.Now()
			n, err := test(ctx, a, name, typ)
			result, count := fmt.Sprintf("delivered, %d ms", time.Since(begin).Milliseconds()), fmt.Sprint(n)
			if ctx.Err() != nil {
				return passed, failed, context.Cause(ctx)
			}
			if err != nil {
				failed++
				result, count = "FAILED: "+err.Error(), "-"
			} else {
				passed++
			}
			if _, err := fmt.Printf("%-22s  %-40s  %2s  %s\n", name, typ, count, result); err != nil {
				return passed, failed, err // nobody reads on
			}
		}
	}
	return passed, failed, nil
}

// test runs "acuse test" and counts the events that it saw delivered.
func test(ctx context.Context, a *load.Acuse, source, typ string) (events int, err error) {
	args := []string{"test", source, "--json", "--config", a.Config()}
	if typ != "" {
		args = append(args, "--type", typ)
	}
	cmd := exec.CommandContext(ctx, a.Bin, args...)
	cmd.Dir = a.Dir
	cmd.Env = append(os.Environ(), "ACUSE_LANG=en")
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	ended := cmd.Run()
	var last struct {
		Step, Text string
		OK         bool
	}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			return 0, err
		}
		if !last.OK {
			return 0, errors.New(last.Step + ": " + last.Text)
		}
		if last.Step == "delivered" {
			events++
		}
	}
	switch {
	case ended != nil:
		return 0, fmt.Errorf("%v: %s", ended, strings.Join(strings.Fields(diag.String()), " "))
	case events == 0:
		return 0, errors.New("nothing was delivered; the last step was " + last.Step)
	}
	return events, nil
}
