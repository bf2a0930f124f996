package command

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// record is a group that was running when it was written. Its file needs no sync: a
// machine that loses power has no group left.
type record struct {
	Group int    `json:"group"`
	Start string `json:"start"` // identity of the guard, which leads the group
	Boot  string `json:"boot"`
	Mark  string `json:"mark"` // in the environment of the command
}

// newMark is a variable for a command's environment by which its processes are known
// again when their guard is gone.
func newMark() string { return "ACUSE_GROUP=" + rand.Text() }

// writeRecord records a group, and returns the file.
func writeRecord(dir string, group int, mark string) (file string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	b, err := json.Marshal(record{Group: group, Start: identity(group), Boot: boot(), Mark: mark})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, strconv.Itoa(group)+".json")
	return file, os.WriteFile(file, append(b, '\n'), 0o600)
}

// Reclaim kills the groups in the folder that an earlier run of acuse left running. It
// returns when they are gone: only then may their jobs be queued again.
func Reclaim(dir string, log *slog.Logger) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("exec groups of an earlier run: %w", err)
	}
	var all []error
	for _, e := range list {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		if err := reclaim(filepath.Join(dir, e.Name()), log); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

func reclaim(file string, log *slog.Logger) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("exec groups of an earlier run: %w", err)
	}
	var r record
	if json.Unmarshal(b, &r) == nil && r.ours() {
		log.Warn("a command of an earlier run was still alive: killed", "group", r.Group)
		if err := syscall.Kill(-r.Group, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill the exec group %d of an earlier run: %w", r.Group, err)
		}
		if !waitGone(r.Group, 2*goneTime) {
			log.Error("a killed command hangs in the kernel; it will not run again", "group", r.Group)
		}
	}
	// One cut short by a crash named a group whose command was not yet started.
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("exec groups of an earlier run: %w", err)
	}
	return nil
}

// ours tells whether the group that has the number now is the one that was recorded.
// While a group has a member, no other process gets its number: so one sure member is
// enough.
func (r *record) ours() bool {
	if r.Group <= 1 || r.Boot != boot() || !exists(r.Group) {
		return false
	}
	if now := identity(r.Group); now != "" {
		return now == r.Start
	}
	return r.Mark != "" && marked(r.Group, r.Mark)
}
