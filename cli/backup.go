package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) backupCommand() *cobra.Command {
	var to []string
	c := a.command("backup FILE", "backup", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		path, err := filepath.Abs(args[0])
		if err != nil {
			return err
		}
		if _, err := os.Lstat(path); err == nil {
			return &failure{code: exitMisuse, what: a.f("backup.exists", path), todo: a.w("backup.exists.todo")}
		}
		in := map[string]string{"path": path}
		if len(to) > 0 {
			in["encrypt_to"] = strings.Join(to, " ")
		}
		if err := a.backup(cmd.Context(), in); err != nil {
			return err
		}
		size := int64(0)
		if info, err := os.Stat(path); err == nil {
			size = info.Size()
		}
		if a.json {
			a.say(`{"path":%q,"bytes":%d}`, path, size)
		} else {
			a.say("%s", a.f("backup.done", path, a.size(size)))
		}
		return nil
	})
	c.Flags().StringSliceVar(&to, "encrypt-to", nil, a.w("flag.encrypt_to"))
	return c
}

// backup has the server make the copy, and shows how far it is.
func (a *app) backup(ctx context.Context, in map[string]string) error {
	resp, err := a.client().open(ctx, http.MethodPost, "/api/v1/backup", in, "Accept", "application/x-ndjson")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // was only read
	progress, done := a.progress("backup")
	defer done()
	cut := &failure{code: exitFailed, what: a.w("answer.cut"), todo: a.w("answer.cut.todo")}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var line struct {
			Done, Total int64
			Path, Error string
		}
		switch err := json.Unmarshal(lines.Bytes(), &line); {
		case err != nil:
			return cut
		case line.Error != "":
			return &failure{code: exitFailed, what: clean(line.Error)}
		case line.Path != "":
			return nil
		}
		progress(line.Done, line.Total)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return cut
}
