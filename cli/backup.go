package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

func (a *app) backupCommand() *cobra.Command {
	return a.command("backup FILE", "backup", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		path, err := filepath.Abs(args[0])
		if err != nil {
			return err
		}
		if _, err := os.Lstat(path); err == nil {
			return &failure{code: exitMisuse, what: a.f("backup.exists", path), todo: a.w("backup.exists.todo")}
		}
		var s status
		if err := a.client().call(cmd.Context(), http.MethodGet, "/api/v1/status", nil, &s); err != nil {
			return err
		}
		done := make(chan error, 1)
		go func() {
			done <- a.client().call(cmd.Context(), http.MethodPost, "/api/v1/backup", map[string]string{"path": path}, nil)
		}()
		if err := a.watch(path, s.Bytes, done); err != nil {
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
}

// watch shows how far a copy got, until done tells its end: a bar on a terminal, else
// a line every 10 s.
func (a *app) watch(path string, total int64, done <-chan error) error {
	every, show := 10*time.Second, func(got int64) { a.remark("%s", a.f("backup.so_far", a.size(got), a.size(total))) }
	if a.opt.Terminal || isTerminal(a.opt.Stderr) {
		bar := progressbar.NewOptions64(max(total, 1), progressbar.OptionSetWriter(a.opt.Stderr), progressbar.OptionShowBytes(true),
			progressbar.OptionSetDescription("backup"), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish())
		defer func() { _ = bar.Finish() }() // only what is on the screen
		every, show = 200*time.Millisecond, func(got int64) { _ = bar.Set64(min(got, max(total, 1))) }
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if info, err := os.Stat(path); err == nil && !a.quiet {
				show(info.Size())
			}
		}
	}
}
