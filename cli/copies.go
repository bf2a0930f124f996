package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"acuse/store"
)

// Copies are what works on data files without a server. main has the engines.
type Copies struct {
	Verify  func(ctx context.Context, o VerifyOptions) (Contents, error)
	Restore func(ctx context.Context, o RestoreOptions) (Contents, error)
	Migrate func(ctx context.Context, o MigrateOptions) (Contents, error)
	// Sealed and Foreign are the errors that a file is encrypted, or no backup.
	Sealed, Foreign error
}

// ErrHoldsData reports a folder that holds an archive already.
var ErrHoldsData = errors.New("the folder holds an archive already")

// VerifyOptions say what to verify; Identity names a file of age identities.
type VerifyOptions struct {
	File, Identity string
	Progress       func(done, total int64)
}

// RestoreOptions say what to restore, and where to.
type RestoreOptions struct {
	File, Identity, Dir string
	Force               bool
	Progress            func(done, total int64)
}

// MigrateOptions say from which engine to which.
type MigrateOptions struct {
	Dir, From, To string
	Progress      func(done, total int64)
}

// Contents is what a data file holds.
type Contents struct {
	Engine   string
	Schema   int
	Counts   store.Counts
	Problems []string // none: all is well
	Replaced []string // where that is now which was there before
}

func (a *app) verifyCommand() *cobra.Command {
	var identity string
	c := a.command("verify FILE", "verify", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		if a.opt.Copies.Verify == nil {
			return errors.New(a.w("copy.absent"))
		}
		progress, done := a.progress("verify")
		out, err := a.opt.Copies.Verify(cmd.Context(), VerifyOptions{File: args[0], Identity: identity, Progress: progress})
		done()
		return a.contents(cmd, args[0], out, err, a.f("copy.good", args[0]))
	})
	c.Flags().StringVar(&identity, "identity", "", a.w("flag.identity"))
	return c
}

func (a *app) restoreCommand() *cobra.Command {
	var identity, into string
	var force bool
	c := a.command("restore FILE", "restore", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		if a.opt.Copies.Restore == nil {
			return errors.New(a.w("copy.absent"))
		}
		if into == "" {
			into = a.folder()
		}
		dir, err := filepath.Abs(into)
		if err != nil {
			return err
		}
		progress, done := a.progress("restore")
		out, err := a.opt.Copies.Restore(cmd.Context(), RestoreOptions{File: args[0], Identity: identity, Dir: dir, Force: force, Progress: progress})
		done()
		return a.contents(cmd, args[0], out, err, a.f("copy.restored", dir))
	})
	c.Flags().StringVar(&identity, "identity", "", a.w("flag.identity"))
	c.Flags().StringVar(&into, "into", "", a.w("flag.into"))
	c.Flags().BoolVar(&force, "force", false, a.w("flag.force"))
	return c
}

func (a *app) migrateCommand() *cobra.Command {
	var from, to string
	c := a.command("migrate --from ENGINE --to ENGINE", "migrate", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		known := map[string]bool{"sqlite": true, "bbolt": true}
		if from == to || !known[from] || !known[to] {
			return a.misuse(cmd, a.w("migrate.engines"))
		}
		if a.opt.Copies.Migrate == nil {
			return errors.New(a.w("copy.absent"))
		}
		dir, err := filepath.Abs(a.folder())
		if err != nil {
			return err
		}
		progress, done := a.progress("migrate")
		out, err := a.opt.Copies.Migrate(cmd.Context(), MigrateOptions{Dir: dir, From: from, To: to, Progress: progress})
		done()
		return a.contents(cmd, dir, out, err, a.f("migrate.done", to))
	})
	c.Flags().StringVar(&from, "from", "", a.w("flag.from"))
	c.Flags().StringVar(&to, "to", "", a.w("flag.to"))
	return c
}

// contents tells what was found in a copy, or why not.
func (a *app) contents(cmd *cobra.Command, file string, c Contents, err error, well string) error {
	switch {
	case errors.Is(err, a.opt.Copies.Sealed) && a.opt.Copies.Sealed != nil:
		return &failure{code: exitFailed, what: a.f("copy.sealed", file), todo: a.f("copy.sealed.todo", cmd.Name(), file)}
	case errors.Is(err, a.opt.Copies.Foreign) && a.opt.Copies.Foreign != nil:
		return &failure{code: exitFailed, what: a.f("copy.foreign", file)}
	case errors.Is(err, store.ErrLocked):
		return &failure{code: exitFailed, what: a.w("copy.running"), todo: a.w("copy.running.todo")}
	case errors.Is(err, ErrHoldsData):
		return &failure{code: exitMisuse, what: a.f("copy.holds", strings.TrimPrefix(err.Error(), ErrHoldsData.Error()+": ")), todo: a.w("copy.holds.todo")}
	case errors.Is(err, fs.ErrNotExist):
		return &failure{code: exitNotFound, what: err.Error()}
	case err != nil:
		return err
	}
	if a.json {
		if err := a.contentsJSON(c); err != nil {
			return err
		}
	} else if n := c.Counts; len(c.Problems) == 0 {
		a.say("%s", a.f("copy.counts", c.Engine, c.Schema, n.Deliveries, n.Payloads, n.Jobs, n.Attempts, n.Keys, n.Rejections, n.Queued, n.Dead, n.Quarantined))
	}
	if len(c.Problems) > 0 {
		return &failure{code: exitFailed, what: a.f("copy.damaged", file), why: strings.Join(c.Problems, "; ")}
	}
	a.remark("%s", well)
	for _, path := range c.Replaced {
		a.remark("%s", a.f("copy.kept", path))
	}
	return nil
}

func (a *app) contentsJSON(c Contents) error {
	n := c.Counts
	raw, err := json.Marshal(map[string]any{
		"engine": c.Engine, "schema": c.Schema, "problems": append([]string{}, c.Problems...), "replaced": append([]string{}, c.Replaced...),
		"deliveries": n.Deliveries, "payloads": n.Payloads, "jobs": n.Jobs, "attempts": n.Attempts, "dedup_keys": n.Keys,
		"rejections": n.Rejections, "queued": n.Queued, "leased": n.Leased, "dead": n.Dead, "quarantined": n.Quarantined,
	})
	if err != nil {
		return err
	}
	a.line(raw)
	return nil
}

// progress shows how far a long work is: a bar on a terminal, else a line every 10 s. done
// ends it.
func (a *app) progress(what string) (progress func(done, total int64), done func()) {
	if a.quiet {
		return func(int64, int64) {}, func() {}
	}
	if a.opt.Terminal || isTerminal(a.opt.Stderr) {
		bar := progressbar.NewOptions64(1, progressbar.OptionSetWriter(a.opt.Stderr), progressbar.OptionShowBytes(what != "migrate"),
			progressbar.OptionSetDescription(what), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish())
		return func(done, total int64) {
			bar.ChangeMax64(max(total, 1))
			_ = bar.Set64(min(done, max(total, 1))) // only what is on the screen
		}, func() { _ = bar.Finish() }
	}
	last := time.Now()
	return func(done, total int64) {
		if time.Since(last) >= 10*time.Second {
			last = time.Now()
			a.remark("%s", a.f("copy.so_far", what, 100*done/max(total, 1)))
		}
	}, func() {}
}
