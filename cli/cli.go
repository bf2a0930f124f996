// Package cli is the command line: thin commands that parse, call the running
// server over its Unix socket, and print. Results go to standard output, all else
// to standard error.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/labstack/gommon/color"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"acuse/config"
)

// Options are what main hands in. Zero fields mean the process's own.
type Options struct {
	Version string // "1.2.0"
	Commit  string // of the build; may be empty

	// Serve runs the server until ctx ends.
	Serve func(ctx context.Context, o ServeOptions) error
	// Demo runs the demonstration until ctx ends or its time is over.
	Demo func(ctx context.Context, o DemoOptions) error
	// Check finds what config alone cannot: providers, rules. It may be nil.
	Check func(c *config.Config) ([]config.Warning, config.Problems)
	// Copies work on data files without a server.
	Copies Copies
	// Workers handle the jobs that pull and listen fetch.
	Workers Workers

	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Env      []string         // default os.Environ()
	Now      func() time.Time // default time.Now
	Zone     *time.Location   // of times on a terminal; default time.Local
	tailWait time.Duration    // of tail before it connects again; default 1 s
	Terminal bool             // treat Stdin, Stdout and Stderr as a terminal; default: looked up
}

// ServeOptions are what serve was asked for.
type ServeOptions struct {
	ConfigFile string // as named; Load reads it again at a reload
	FirstRun   bool   // the file was written just now
	Config     *config.Config
	Warnings   []config.Warning
	Language   string // "es" or "en", of what serve prints for people
	Load       func() (*config.Config, []config.Warning, error)
	Stdout     io.Writer
	Stderr     io.Writer
}

// DemoOptions are what demo was asked for.
type DemoOptions struct {
	For      time.Duration // 0: until interrupted
	Language string
	Stdout   io.Writer
	Stderr   io.Writer
}

// app is one run of the command line.
type app struct {
	opt          Options
	env          map[string]string
	lang         string
	ownProviders string // folder of provider files; empty: that of the data folder
	words        map[string]string
	color        *color.Color
	tty          bool // stdout is a terminal

	configFile string
	dataDir    string
	json       bool
	quiet      bool
}

// New makes the commands. main calls Run, which also prints errors and finds the
// exit code.
func New(o Options) *cobra.Command { return newApp(o).root() }

// Run executes the command line and returns the exit code: 0 well, 1 failed, 2 wrong
// use, 3 not found, 4 not running, 5 partly.
func Run(ctx context.Context, o Options, args []string) int {
	a := newApp(o)
	root := a.root()
	root.SetArgs(splitExec(args))
	err := root.ExecuteContext(ctx)
	var f *failure
	switch {
	case err == nil:
		return exitWell
	case errors.As(err, &f):
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitWell // interrupted, and what was under way ended
	default:
		f = &failure{code: exitFailed, what: err.Error()}
	}
	if f.what != "" {
		a.complain(f)
	}
	return f.code
}

func newApp(o Options) *app {
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.tailWait == 0 {
		o.tailWait = time.Second
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	a := &app{opt: o, env: map[string]string{}, color: color.New()}
	for _, kv := range o.Env {
		if k, v, ok := strings.Cut(kv, "="); ok {
			a.env[k] = v
		}
	}
	a.lang = Language(a.env)
	a.words = catalogue[a.lang]
	a.tty = o.Terminal || isTerminal(o.Stdout)
	if a.tty && a.env["NO_COLOR"] == "" {
		a.color.Enable()
	} else {
		a.color.Disable()
	}
	return a
}

// Language is that of the terminal: "es" or "en", by ACUSE_LANG, LC_ALL, LANG.
func Language(env map[string]string) string {
	for _, name := range []string{"ACUSE_LANG", "LC_ALL", "LANG"} {
		if v := strings.ToLower(env[name]); v != "" {
			if strings.HasPrefix(v, "es") {
				return "es"
			}
			return "en"
		}
	}
	return "en"
}

func isTerminal(x any) bool {
	f, ok := x.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (a *app) root() *cobra.Command {
	root := a.command("acuse", "root", nil, nil)
	root.PersistentFlags().StringVar(&a.configFile, "config", config.DefaultFile, a.w("flag.config"))
	root.PersistentFlags().StringVar(&a.dataDir, "data-dir", "", a.w("flag.data_dir"))
	root.PersistentFlags().BoolVar(&a.json, "json", false, a.w("flag.json"))
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, a.w("flag.quiet"))
	root.Version = a.opt.Version
	root.SetOut(a.opt.Stdout)
	root.SetErr(a.opt.Stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return a.misuse(cmd, err.Error()) })
	root.AddCommand(
		a.serveCommand(), a.checkCommand(), a.configCommand(), a.demoCommand(), a.versionCommand(), a.healthCommand(),
		a.statusCommand(), a.listCommand(), a.showCommand(), a.bodyCommand(), a.tailCommand(),
		a.resendCommand(), a.cancelCommand(), a.deadCommand(), a.rejectionsCommand(), a.releaseCommand(),
		a.pullCommand(), a.listenCommand(), a.testCommand(), a.sourceCommand(), a.destinationsCommand(), a.laneCommand("pause"), a.laneCommand("resume"), a.tokenCommand(), a.userCommand(), a.setupLinkCommand(), a.backupCommand(), a.eraseCommand(), a.verifyCommand(), a.restoreCommand(), a.migrateCommand(), a.exportCommand(), a.importCommand(), a.providerCommand(),
	)
	a.localize(root)
	return root
}

// command makes a command whose texts are the words "cmd.KEY" and "example.KEY".
// args and run may be nil for one that only holds others.
func (a *app) command(use, key string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: a.w("cmd." + key), Example: examples[key], DisableFlagsInUseLine: true}
	if run == nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return a.misuse(cmd, a.f("unknown.command", clean(args[0]))+a.meant(cmd, args[0]))
		}
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		return c
	}
	c.Args = func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return a.misuse(cmd, a.f("arguments", cmd.UseLine()))
		}
		return nil
	}
	c.RunE = run
	return c
}

func (a *app) meant(cmd *cobra.Command, word string) string {
	names := []string{}
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if near := config.Nearest(word, names); near != "" {
		return a.f("meant", near)
	}
	return ""
}
