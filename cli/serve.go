package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acuse/config"
	"acuse/store"
)

func (a *app) serveCommand() *cobra.Command {
	return a.command("serve", "serve", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		first, load, err := a.firstRun(cmd.Flags().Changed("config"))
		if err != nil {
			return err
		}
		c, warnings, err := load()
		if err == nil && a.opt.Check != nil {
			more, problems := a.opt.Check(c)
			warnings = append(warnings, more...)
			if len(problems) > 0 {
				err = problems
			}
		}
		a.warn(warnings)
		if err != nil {
			return a.badConfig(err)
		}
		if a.opt.Serve == nil {
			return errors.New("this build cannot serve")
		}
		return a.folderTaken(a.opt.Serve(cmd.Context(), ServeOptions{
			ConfigFile: a.configFile, FirstRun: first, Config: c, Warnings: warnings, Language: a.lang, Load: load,
			Stdout: a.opt.Stdout, Stderr: a.opt.Stderr,
		}))
	})
}

// folderTaken says what to do where another process works with the data folder.
func (a *app) folderTaken(err error) error {
	var l *store.Locked
	switch {
	case !errors.As(err, &l):
		return err
	case l.Process == "":
		return &failure{code: exitFailed, what: a.f("folder.taken.unknown", l.Dir), todo: a.w("folder.taken.todo")}
	}
	return &failure{code: exitFailed, what: a.f("folder.taken", l.Dir, l.Process), todo: a.w("folder.taken.todo")}
}

// firstRun writes the commented acuse.yaml where none is there. A file that was named
// must be there. Where it cannot be written, the environment alone configures.
func (a *app) firstRun(named bool) (first bool, load func() (*config.Config, []config.Warning, error), err error) {
	env := a.environ()
	load = func() (*config.Config, []config.Warning, error) { return config.Load(a.configFile, env) }
	if named {
		return false, load, nil
	}
	f, err := os.OpenFile(a.configFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return false, load, nil
	case err != nil:
		a.note("%s", a.f("config.unwritable", a.configFile, reason(err)))
		return true, func() (*config.Config, []config.Warning, error) { return config.Defaults(a.configFile, env) }, nil
	}
	_, err = f.Write(config.Example(a.lang))
	if err = errors.Join(err, f.Close()); err != nil {
		return false, nil, &failure{code: exitFailed, what: a.configFile, why: reason(err)}
	}
	a.remark("%s", a.f("config.written", a.configFile))
	return true, load, nil
}

// environ is the environment with --data-dir put in, which wins over both.
func (a *app) environ() []string {
	if a.dataDir == "" {
		return a.opt.Env
	}
	return append(append([]string{}, a.opt.Env...), "ACUSE_DATA_DIR="+a.dataDir)
}

func (a *app) warn(ws []config.Warning) {
	for _, w := range ws {
		a.remark("%s: %s", a.w("warning"), w.String())
	}
}

// badConfig is the failure of a file that is not used; its problems hold no value.
func (a *app) badConfig(err error) error {
	var ps config.Problems
	switch {
	case errors.As(err, &ps):
		return &failure{code: exitFailed, what: ps.Error(), todo: a.w("config.fix")}
	case errors.Is(err, fs.ErrNotExist):
		return &failure{code: exitNotFound, what: a.f("config.missing", a.configFile), todo: a.w("config.missing.todo")}
	}
	return &failure{code: exitFailed, what: a.f("config.unreadable", a.configFile), why: reason(err)}
}

// readConfig loads and checks as serve would.
func (a *app) readConfig() (*config.Config, error) {
	c, warnings, err := config.Load(a.configFile, a.environ())
	if err == nil && a.opt.Check != nil {
		more, problems := a.opt.Check(c)
		warnings = append(warnings, more...)
		if len(problems) > 0 {
			err = problems
		}
	}
	a.warn(warnings)
	if err != nil {
		return nil, a.badConfig(err)
	}
	return c, nil
}

func (a *app) checkCommand() *cobra.Command {
	return a.command("check", "check", cobra.NoArgs, func(*cobra.Command, []string) error {
		c, err := a.readConfig()
		if err != nil {
			return err
		}
		if a.json {
			a.say(`{"ok":true,"sources":%d,"destinations":%d}`, len(c.Sources), len(c.Destinations))
			return nil
		}
		a.say("%s", a.f("check.well", a.configFile, a.n("sources", len(c.Sources)), a.n("destinations", len(c.Destinations))))
		return nil
	})
}

func (a *app) configCommand() *cobra.Command {
	parent := a.command("config", "config", nil, nil)
	parent.AddCommand(a.command("show", "config.show", cobra.NoArgs, func(*cobra.Command, []string) error {
		c, err := a.readConfig()
		if err != nil {
			return err
		}
		show := c.Redacted
		if a.json {
			show = c.RedactedJSON
		}
		b, err := show()
		if err != nil {
			return err
		}
		a.say("%s", strings.TrimRight(string(b), "\n"))
		return nil
	}))
	parent.AddCommand(a.command("example", "config.example", cobra.NoArgs, func(*cobra.Command, []string) error {
		a.say("%s", strings.TrimRight(string(config.Example(a.lang)), "\n"))
		return nil
	}))
	return parent
}

func (a *app) demoCommand() *cobra.Command {
	var length time.Duration
	c := a.command("demo", "demo", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		if a.opt.Demo == nil {
			return errors.New("this build has no demo")
		}
		if length < 0 {
			return a.misuse(cmd, a.w("demo.for"))
		}
		return a.opt.Demo(cmd.Context(), DemoOptions{For: length, Language: a.lang, Stdout: a.opt.Stdout, Stderr: a.opt.Stderr})
	})
	c.Flags().DurationVar(&length, "for", 0, a.w("flag.for"))
	return c
}

func (a *app) versionCommand() *cobra.Command {
	return a.command("version", "version", cobra.NoArgs, func(*cobra.Command, []string) error {
		v := struct {
			Version  string `json:"version"`
			Commit   string `json:"commit"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{a.opt.Version, a.opt.Commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		if v.Commit == "" {
			v.Commit = builtFrom()
		}
		if a.json {
			b, err := json.Marshal(v)
			if err != nil {
				return err
			}
			a.line(b)
			return nil
		}
		text := "acuse " + v.Version
		if v.Commit != "" {
			text += fmt.Sprintf(" (%s)", v.Commit[:min(12, len(v.Commit))])
		}
		a.say("%s, %s, %s", text, v.Go, v.Platform)
		return nil
	})
}

// builtFrom is the commit that Go wrote into the binary; empty for none.
func builtFrom() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}

// healthTimeout is shorter than what Docker gives a health check by default.
const healthTimeout = 5 * time.Second

func (a *app) healthCommand() *cobra.Command {
	return a.command("health", "health", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
		defer cancel()
		if err := a.client().call(ctx, http.MethodGet, "/readyz", nil, nil); err != nil {
			if ctx.Err() != nil && cmd.Context().Err() == nil {
				return &failure{code: exitFailed, what: a.w("health.slow")}
			}
			return err
		}
		if a.json {
			a.say(`{"ok":true}`)
			return nil
		}
		a.say("%s", a.w("health.well"))
		return nil
	})
}
