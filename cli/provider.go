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
	dir := a.ownProviders
	if dir == "" {
		dir = filepath.Join(a.folder(), "providers")
		if _, err := os.Stat(dir); err != nil {
			return c, nil
		}
	} else if _, err := os.Stat(dir); err != nil {
		return nil, &failure{code: exitNotFound, what: dir, why: reason(err)}
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
			rows = append(rows, []string{p.Name, p.TitleIn(a.lang)})
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
	parent.PersistentFlags().StringVar(&a.ownProviders, "providers", "", a.w("flag.providers"))
	parent.AddCommand(list, show, test)
	return parent
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
