package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acuse/config"
	"acuse/provider"
)

// providers are those of the binary and the user's own in DATA/providers.
func (a *app) providers() (*provider.Catalogue, error) {
	c, err := provider.Embedded()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(a.folder(), "providers")
	if _, err := os.Stat(dir); err != nil {
		return c, nil
	}
	own, err := provider.Load(os.DirFS(dir))
	if err != nil {
		return nil, &failure{code: exitFailed, what: dir, why: err.Error()}
	}
	return c.With(own), nil
}

func (a *app) providerCommand() *cobra.Command {
	parent := a.command("provider", "provider", nil, nil)
	list := a.command("list", "provider.list", cobra.NoArgs, func(*cobra.Command, []string) error {
		c, err := a.providers()
		if err != nil {
			return err
		}
		rows := [][]string{}
		for _, name := range c.Names() {
			p, _ := c.Get(name)
			if a.json {
				b, err := json.Marshal(map[string]string{"name": p.Name, "title": p.Title})
				if err != nil {
					return err
				}
				a.line(b)
				continue
			}
			rows = append(rows, []string{p.Name, p.Title})
		}
		a.columns(rows, nil)
		return nil
	})
	show := a.command("show NAME", "provider.show", cobra.ExactArgs(1), func(_ *cobra.Command, args []string) error {
		c, err := a.providers()
		if err != nil {
			return err
		}
		p, ok := c.Get(args[0])
		if !ok {
			f := &failure{code: exitNotFound, what: a.f("no.provider", clean(args[0])), todo: a.w("no.provider.todo")}
			if near := config.Nearest(args[0], c.Names()); near != "" {
				f.what += a.f("meant", near)
			}
			return f
		}
		return a.facts(p)
	})
	test := a.command("test PATH...", "provider.test", cobra.MinimumNArgs(1), func(_ *cobra.Command, args []string) error {
		return a.judge(args)
	})
	parent.AddCommand(list, show, test)
	return parent
}

// facts prints what a person wants to know of a provider.
func (a *app) facts(p *provider.Provider) error {
	f := p.Facts()
	if a.json {
		weak := append([]provider.Weakness{}, f.Weaknesses...)
		b, err := json.Marshal(map[string]any{"name": p.Name, "title": p.Title, "schemes": f.Schemes, "places": f.Places, "id": f.ID,
			"tolerance_seconds": int64(f.Tolerance / time.Second), "attempts": f.Attempts, "horizon_seconds": int64(f.Horizon / time.Second),
			"dedup_window_seconds": int64(f.Window / time.Second), "weaknesses": weak, "confidence": f.Confidence, "docs": p.Docs()})
		if err != nil {
			return err
		}
		a.line(b)
		return nil
	}
	none := func(s string) string {
		if s == "" {
			return a.w("facts.unknown")
		}
		return s
	}
	signs := strings.Join(f.Schemes, ", ")
	if len(f.Places) > 0 {
		signs += " (" + strings.Join(f.Places, ", ") + ")"
	}
	if f.Tolerance > 0 {
		signs += ", " + a.f("facts.tolerance", a.long(f.Tolerance))
	}
	id := strings.Join(f.ID, ", ")
	if id == "" {
		id = a.w("facts.no_id")
	}
	retries := ""
	if f.Horizon > 0 {
		retries = a.long(f.Horizon)
	}
	if f.Attempts > 0 {
		retries = strings.TrimPrefix(retries+", "+a.n("attempts", int(f.Attempts)), ", ")
	}
	weak := make([]string, len(f.Weaknesses))
	for i, w := range f.Weaknesses {
		weak[i] = a.w("weak." + string(w))
	}
	if len(weak) == 0 {
		weak = []string{a.w("facts.nothing")}
	}
	rows := [][]string{{p.Name, p.Title}, {a.w("facts.signs"), none(signs)}, {a.w("facts.id"), id}, {a.w("facts.retries"), none(retries)},
		{a.w("facts.window"), a.long(f.Window)}, {a.w("facts.weak"), weak[0]}}
	for _, w := range weak[1:] {
		rows = append(rows, []string{"", w})
	}
	for _, d := range p.Docs() {
		rows = append(rows, []string{a.w("facts.docs"), d})
	}
	a.columns(rows, nil)
	return nil
}

// long is a duration in the unit that suits it.
func (a *app) long(d time.Duration) string {
	switch {
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return a.n("days", int(d/(24*time.Hour)))
	case d >= time.Hour:
		return a.number(d.Hours(), 1) + " h"
	}
	return a.span(d)
}

// judge runs vector files and ends with the line "N passed, N failed".
func (a *app) judge(paths []string) error {
	c, err := a.providers()
	if err != nil {
		return err
	}
	files, err := vectorFiles(paths)
	if err != nil {
		return &failure{code: exitNotFound, what: a.w("vectors.missing"), why: err.Error()}
	}
	passed, failed := 0, 0
	for _, file := range files {
		p, f, err := a.judgeFile(c, file)
		if err != nil {
			a.say("%s: %v", file, err)
			f++
		}
		passed, failed = passed+p, failed+f
	}
	a.say("%d passed, %d failed", passed, failed)
	switch {
	case failed > 0:
		return &failure{code: exitFailed}
	case passed == 0:
		return &failure{code: exitFailed, what: a.w("vectors.none")}
	}
	return nil
}

func (a *app) judgeFile(c *provider.Catalogue, file string) (passed, failed int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, 0, errors.New(reason(err))
	}
	defer func() { _ = f.Close() }() // was only read
	vectors, err := provider.ReadVectors(f)
	if err != nil {
		return 0, 0, err
	}
	for i := range vectors {
		diffs := c.Judge(vectors[i], providerOf(c, vectors[i].Name, file))
		if len(diffs) == 0 {
			passed++
			continue
		}
		failed++
		for _, d := range diffs {
			a.say("%s: %s", clean(vectors[i].Name), clean(d))
		}
	}
	return passed, failed, nil
}

// providerOf is the provider of a vector: the part of its name before the slash,
// else the name of its file.
func providerOf(c *provider.Catalogue, vector, file string) string {
	name, _, _ := strings.Cut(vector, "/")
	if _, ok := c.Get(name); ok {
		return name
	}
	return strings.TrimSuffix(filepath.Base(file), ".json")
}

// vectorFiles are the files named, and every *.json of the folders named.
func vectorFiles(paths []string) (files []string, err error) {
	for _, p := range paths {
		err := filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (path == p || filepath.Ext(path) == ".json") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %s", p, reason(err))
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
