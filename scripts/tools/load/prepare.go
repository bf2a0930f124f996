package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Prepare makes a folder for a tool's run, with acuse in it, built with the tags given. done
// removes it, unless it is to be kept; then where it is is printed.
func Prepare(tool, tags string, keep bool) (dir, bin string, done func(), err error) {
	if dir, err = os.MkdirTemp("", "acuse-"+tool+"-"); err != nil {
		return "", "", nil, err
	}
	done = func() { os.RemoveAll(dir) }
	if keep {
		fmt.Println("folder:", dir)
		done = func() {}
	}
	if bin, err = Build(dir, tags); err != nil {
		done()
		return "", "", nil, err
	}
	return dir, bin, done, nil
}

// Counted is an acuse whose senders keep a ledger and whose events go to a sink, so that
// all that was acknowledged can be looked for at the end.
type Counted struct {
	*Acuse
	Ledger *Ledger
	Sink   *Sink
	file   *os.File // the ledger's: beside the data, not in what is cut or broken
}

// NewCounted prepares one in dir; prefix begins every event id.
func NewCounted(bin, dir, engine, prefix string) (*Counted, error) {
	sink, err := NewSink()
	if err != nil {
		return nil, err
	}
	c := &Counted{Sink: sink}
	again := strings.TrimSuffix(strings.Repeat("1s, ", 20), ", ")
	c.Acuse, err = New(bin, dir, engine, fmt.Sprintf("  app:\n    url: %s\n    concurrency: 4\n    retry: {schedule: [%s]}", sink.URL, again), "app")
	if err == nil {
		c.file, err = os.Create(filepath.Join(dir, "acknowledged"))
	}
	if err != nil {
		sink.Close()
		return nil, err
	}
	c.Ledger = NewLedger(c.file, prefix)
	return c, nil
}

// Count sends what never got its 2xx, as a provider would, then compares.
func (c *Counted) Count() (*Result, error) {
	c.Ledger.Resend(c.Acuse)
	return Count(c.Acuse, c.Ledger, c.Sink)
}

// Close ends the process, if it runs, and closes the rest.
func (c *Counted) Close() {
	c.Kill()
	c.Sink.Close()
	c.file.Close()
}
