// Command acuse receives webhooks, keeps them, and hands them over until they are
// done.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"acuse/cli"
	"acuse/config"
	"acuse/keep"
	"acuse/provider"
	"acuse/queue/command"
)

func main() {
	if command.Guarding() {
		os.Exit(command.Guard())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is main without the process: it executes one command line.
func run(ctx context.Context, args []string) int {
	tune()
	return cli.Run(ctx, cli.Options{
		Version: version,
		Commit:  commit(),
		Serve:   serve,
		Demo: func(ctx context.Context, o cli.DemoOptions) error {
			return runDemo(ctx, o.For, o.Language, o.Stdout)
		},
		Check:   check,
		Workers: workers,
		Copies:  cli.Copies{Verify: verify, Restore: restore, Migrate: migrate, Sealed: keep.ErrSealed, Foreign: keep.ErrNoBackup},
	}, args)
}

// check finds what the file alone cannot show: whether the providers and the
// destinations can be used as configured.
func check(cfg *config.Config) (warnings []config.Warning, problems config.Problems) {
	cat, err := loadCatalogue(cfg)
	if err != nil {
		return nil, ownFileProblems(cfg, err)
	}
	sources, problems := compileSources(cfg, cat, nil)
	_, more := lanes(cfg, nil, nil)
	_, wrong := compileRules(cfg)
	problems = append(append(problems, more...), wrong...)
	if b := cfg.Backup; b != nil {
		if _, err := keep.Recipients(b.EncryptTo); err != nil {
			problems = append(problems, cfg.Problem("backup.encrypt_to", "%v", err))
		}
	}
	for name, src := range sources {
		for _, text := range src.warnings(cfg) {
			warnings = append(warnings, config.Warning{Problem: cfg.Problem("sources."+name, "%s", text)})
		}
	}
	return warnings, problems
}

// ownFileProblems tells what is wrong with the user's own provider files, each by its
// path.
func ownFileProblems(cfg *config.Config, err error) (problems config.Problems) {
	dir := filepath.Join(cfg.DataDir, "providers")
	list := []error{err}
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		list = all.Unwrap()
	}
	for _, one := range list {
		var file *provider.FileError
		if errors.As(one, &file) {
			problems = append(problems, config.Problem{File: filepath.Join(dir, file.File), Text: file.Err.Error()})
		} else {
			problems = append(problems, config.Problem{File: dir, Text: one.Error()})
		}
	}
	return problems
}
