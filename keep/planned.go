package keep

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"acuse/store"
)

const (
	lookAtPlan  = time.Minute
	retryBackup = 10 * time.Minute // after one that failed
	tardy       = time.Hour        // beyond Every before a person is told
)

// settingPlanned names the setting that holds when the last planned backup was made.
const settingPlanned = "backup.planned"

// planned is the name of a planned backup, by the instant in UTC; they sort by time.
var planned = regexp.MustCompile(`^acuse-\d{8}T\d{6}Z\.(db|bolt)(\.age)?$`)

// Run makes the planned backups until ctx ends.
func (b *Backups) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := lookAtPlan
		if made, err := b.Due(ctx); err != nil && ctx.Err() == nil {
			b.opt.Log.Error("planned backup", "err", err)
			wait = retryBackup
		} else if made != "" {
			b.opt.Log.Info("planned backup", "file", made)
		}
		pause(ctx, wait, nil)
	}
}

// Due makes the planned backup if it is time, removes those over the number to keep, and
// returns the name of the new file; empty: it was not time.
func (b *Backups) Due(ctx context.Context) (string, error) {
	p := b.opt.Plan()
	if p.Every <= 0 {
		return "", nil
	}
	last, err := b.last(ctx, settingPlanned)
	if err != nil {
		return "", err
	}
	now := b.opt.Now().UTC()
	if age := now.Sub(last); age >= 0 && age < p.Every {
		return "", nil
	}
	path, err := b.into(ctx, p)
	if err != nil {
		return "", err
	}
	if err := b.opt.Source.PutSetting(ctx, settingPlanned, now.Format(time.RFC3339Nano)); err != nil {
		return "", err
	}
	return path, rotate(p.Dir, p.Keep)
}

// Now makes a backup where the planned ones go, without waiting for its time, and returns
// its name.
func (b *Backups) Now(ctx context.Context) (string, error) {
	p := b.opt.Plan()
	path, err := b.into(ctx, p)
	if err != nil || p.Every <= 0 {
		return path, err
	}
	return path, rotate(p.Dir, p.Keep)
}

// into makes a backup in the plan's folder.
func (b *Backups) into(ctx context.Context, p Plan) (string, error) {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return "", err
	}
	sweep(p.Dir, ".acuse-backup-*", ".acuse-sealed-*") // of a crash
	name := "acuse-" + b.opt.Now().UTC().Format("20060102T150405Z") + filepath.Ext(dataFiles[b.opt.Source.Health().Engine])
	if p.EncryptTo != "" {
		name += ".age"
	}
	path := filepath.Join(p.Dir, name)
	return path, b.Make(ctx, path, p.EncryptTo, nil)
}

// Newest is the newest backup in the plan's folder; empty: there is none.
func (b *Backups) Newest() string {
	names := plannedIn(b.opt.Plan().Dir)
	if len(names) == 0 {
		return ""
	}
	return filepath.Join(b.opt.Plan().Dir, names[len(names)-1])
}

// rotate removes the oldest planned backups; other files of the folder stay.
func rotate(dir string, keep int) error {
	names := plannedIn(dir)
	for len(names) > max(keep, 1) {
		if err := os.Remove(filepath.Join(dir, names[0])); err != nil {
			return err
		}
		names = names[1:]
	}
	return nil
}

// plannedIn names the planned backups of a folder, oldest first.
func plannedIn(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // it is not there yet, or cannot be read: making a backup tells
	}
	for _, e := range entries {
		if e.Type().IsRegular() && planned.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

func (b *Backups) last(ctx context.Context, setting string) (time.Time, error) {
	v, ok, err := b.opt.Source.Setting(ctx, setting)
	if err != nil || !ok {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return time.Time{}, nil // as if there were none
	}
	return t, nil
}

// Last is when the last backup was made, planned or not; zero: never.
func (b *Backups) Last(ctx context.Context) (time.Time, error) {
	return b.last(ctx, store.SettingLastBackup)
}

// Late tells since when a planned backup is overdue; ok is false when none is.
func (b *Backups) Late(ctx context.Context) (since time.Time, ok bool) {
	p := b.opt.Plan()
	if p.Every <= 0 {
		return time.Time{}, false
	}
	last, err := b.last(ctx, settingPlanned)
	if err != nil {
		return time.Time{}, false // the storage's own alert says so
	}
	if last.IsZero() {
		last = b.since.Add(-p.Every) // the first is due at the start
	}
	due := last.Add(p.Every)
	return due, b.opt.Now().After(due.Add(tardy))
}
