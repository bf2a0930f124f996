package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
)

func (a *app) exportCommand() *cobra.Command {
	var f filter
	var format string
	c := a.command("export", "export", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		if format != "jsonl" && format != "csv" {
			return a.misuse(cmd, a.w("export.format"))
		}
		query, err := a.values(cmd, &f)
		if err != nil {
			return err
		}
		query.Set("format", format)
		resp, err := a.client().open(cmd.Context(), http.MethodGet, "/api/v1/export?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }() // was only read
		if _, err := io.Copy(a.opt.Stdout, resp.Body); err != nil {
			if cmd.Context().Err() != nil {
				return cmd.Context().Err()
			}
			return &failure{code: exitFailed, what: a.w("export.cut"), why: reason(err)}
		}
		return nil
	})
	a.filterFlags(c, &f)
	a.timeFlags(c, &f)
	c.Flags().StringVar(&format, "format", "jsonl", a.w("flag.format"))
	return c
}

func (a *app) importCommand() *cobra.Command {
	var requeue bool
	c := a.command("import FILE", "import", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		in := a.opt.Stdin
		if args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return &failure{code: exitNotFound, what: err.Error()}
			}
			defer func() { _ = f.Close() }() // was only read
			in = f
		}
		path := "/api/v1/import"
		if requeue {
			path += "?requeue=true"
		}
		// A reader of its own: the HTTP client would close the file, or know its size.
		resp, err := a.client().open(cmd.Context(), http.MethodPost, path, io.MultiReader(in), "Content-Type", "application/x-ndjson")
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }() // was only read
		var raw json.RawMessage
		var out struct {
			Imported, Renumbered, Duplicates, Cancelled int
			Error                                       string
		}
		if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&raw); err != nil {
			return a.unreachable(cmd.Context(), err)
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			return err
		}
		if a.json {
			a.line(raw)
		} else {
			a.say("%s", a.f("import.done", out.Imported, out.Renumbered, out.Duplicates))
			if out.Cancelled > 0 {
				a.remark("%s", a.f("import.cancelled", out.Cancelled))
			}
		}
		if out.Error != "" {
			return &failure{code: exitPartly, what: a.f("import.stopped", clean(out.Error)), todo: a.w("import.stopped.todo")}
		}
		return nil
	})
	c.Flags().BoolVar(&requeue, "requeue", false, a.w("flag.requeue"))
	return c
}
