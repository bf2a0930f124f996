// Command clock runs the built acuse under a clock that is set while it runs, and under
// one that starts in 1970. Go asks the kernel for the time, not the C library, so the
// binary runs under qemu's user emulation, which asks the C library, where libfaketime
// answers. The monotonic clock stays true.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"acuse/scripts/tools/load"
)

// steps are how far the clock is set while acuse runs.
var steps = []time.Duration{2 * time.Hour, -2 * time.Hour, 25 * time.Hour, -25 * time.Hour}

func main() {
	engine := flag.String("store", "sqlite", "storage engine: sqlite or bbolt")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scripts/clock [--store sqlite|bbolt]\n\nSets the clock of a running acuse by ±2 h and ±25 h, and starts one in 1970; a wait and\na lease last as long as they should, keys hold, and the answers say whose fault it is.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*engine); err != nil {
		fmt.Fprintln(os.Stderr, "clock:", err)
		os.Exit(1)
	}
}

// faked finds the emulator of this machine's own processor, and the library that fakes.
func faked() (emulator, library string, err error) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if emulator, err = exec.LookPath("qemu-" + arch); err != nil {
		return "", "", err
	}
	list, err := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if err == nil && len(list) == 0 {
		err = errors.New("no libfaketimeMT.so.1: install faketime")
	}
	if err != nil {
		return "", "", err
	}
	return emulator, list[0], nil
}

func run(engine string) error {
	emulator, library, err := faked()
	if err != nil {
		return err
	}
	dir, bin, done, err := load.Prepare("clock", "", false)
	if err != nil {
		return err
	}
	defer done()
	var wg sync.WaitGroup
	errs := make([]error, len(steps)+1)
	hands := make(chan struct{}, runtime.NumCPU()) // an emulator each
	each := func(i int, name string, f func(*faketime) error) {
		wg.Go(func() {
			hands <- struct{}{}
			defer func() { <-hands }()
			p, err := newFaketime(filepath.Join(dir, fmt.Sprint(i)), bin, emulator, library, engine)
			if err == nil {
				err = f(p)
				p.close()
			}
			if err != nil {
				errs[i] = fmt.Errorf("%s, %s: %w\n%s", engine, name, err, p.log())
			}
		})
	}
	for i, by := range steps {
		each(i, fmt.Sprint("set by ", by), func(p *faketime) error { return stepped(p, by) })
	}
	each(len(steps), "start in 1970", startsIn1970)
	wg.Wait()
	return errors.Join(errs...)
}
