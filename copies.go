package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"

	"acuse/cli"
	"acuse/keep"
	"acuse/store"
	"acuse/store/bolt"
	"acuse/store/engine"
	"acuse/store/sqlite"
)

// openFolder opens the data of an engine in a folder, whatever the configuration says.
// Nothing is held back for new events: this is no server.
func openFolder(ctx context.Context, name, dir string) (store.Store, error) {
	switch name {
	case "bbolt":
		return opened(bolt.Open(ctx, dir, bolt.Options{MinFree: -1}))
	case "sqlite":
		return opened(sqlite.Open(ctx, dir, sqlite.Options{MinFree: -1}))
	}
	return nil, fmt.Errorf("store: no engine %q", name)
}

// unpack puts what a backup holds into an empty folder, as an engine's data file.
func unpack(ctx context.Context, file, identity, dir string, progress func(done, total int64)) (name string, err error) {
	var ids []age.Identity
	if identity != "" {
		if ids, err = keep.Identities(identity); err != nil {
			return "", err
		}
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	in, name, size, err := keep.Unseal(f, ids)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	out, err := os.OpenFile(filepath.Join(dir, keep.DataFile(name)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	err = keep.Copy(ctx, out, in, func(done int64) {
		if progress != nil {
			progress(done, size)
		}
	})
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return name, nil
}

// inspect opens the data in a folder and looks at all of it.
func inspect(ctx context.Context, name, dir string) (c cli.Contents, err error) {
	s, err := openFolder(ctx, name, dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	c.Engine, c.Schema = name, s.Health().Schema
	if c.Problems, err = s.Check(ctx, true); err != nil {
		return c, err
	}
	c.Counts, err = s.Counts(ctx)
	return c, err
}

// verify unpacks a backup beside the system's other temporary files and opens it: that is
// what a restore would do.
func verify(ctx context.Context, o cli.VerifyOptions) (c cli.Contents, err error) {
	dir, err := os.MkdirTemp("", "acuse-verify-*") // 0700
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	name, err := unpack(ctx, o.File, o.Identity, dir, o.Progress)
	if err != nil {
		return c, err
	}
	return inspect(ctx, name, dir)
}

// restore puts a backup into a data folder, once it was verified there.
func restore(ctx context.Context, o cli.RestoreOptions) (c cli.Contents, err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return c, err
	}
	lock, err := engine.Lock(filepath.Join(o.Dir, "acuse.lock"))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, engine.Unlock(lock)) }()
	if there := holding(o.Dir); there != "" && !o.Force {
		return c, fmt.Errorf("%w: %s", cli.ErrHoldsData, there)
	}
	scratch, err := os.MkdirTemp(o.Dir, ".restore-*")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(scratch)
	name, err := unpack(ctx, o.File, o.Identity, scratch, o.Progress)
	if err != nil {
		return c, err
	}
	if c, err = inspect(ctx, name, scratch); err != nil || len(c.Problems) > 0 {
		return c, err
	}
	c.Replaced, err = swap(o.Dir, scratch, name, "replaced")
	return c, err
}

// holding names the data file of a folder; empty: there is none.
func holding(dir string) string {
	for _, name := range []string{"sqlite", "bbolt"} {
		path := filepath.Join(dir, keep.DataFile(name))
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return ""
}

// swap puts the data file of the folder scratch into dir. What dir held stays beside it
// under a name that tells when, and that nothing had. The other engine's file goes last: a
// crash before that leaves it where it was.
func swap(dir, scratch, name, why string) (kept []string, err error) {
	stamp := unused(dir, "."+why+"-"+time.Now().UTC().Format("20060102T150405Z"))
	other := "sqlite"
	if name == other {
		other = "bbolt"
	}
	if kept, err = aside(dir, name, stamp); err != nil {
		return kept, err
	}
	if err := os.Rename(filepath.Join(scratch, keep.DataFile(name)), filepath.Join(dir, keep.DataFile(name))); err != nil {
		return kept, err
	}
	if err := engine.Sync(dir); err != nil {
		return kept, err
	}
	more, err := aside(dir, other, stamp)
	return append(kept, more...), errors.Join(err, engine.Sync(dir))
}

// aside renames an engine's files, if there are any, and tells the data file's new path.
func aside(dir, name, stamp string) (kept []string, err error) {
	path := filepath.Join(dir, keep.DataFile(name))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Rename(path+suffix, path+stamp+suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return kept, err
		}
		if suffix == "" {
			kept = append(kept, path+stamp)
		}
	}
	return kept, nil
}

// unused is the stamp, with a number where a data file of dir has it already: two restores
// within a second, or a clock that was set back.
func unused(dir, stamp string) string {
	for n, s := 2, stamp; ; n++ {
		if list, err := filepath.Glob(filepath.Join(dir, "acuse.*"+s+"*")); err != nil || len(list) == 0 {
			return s
		}
		s = fmt.Sprint(stamp, "-", n)
	}
}

// migrate copies a store from one engine to the other, record by record, and compares.
func migrate(ctx context.Context, o cli.MigrateOptions) (c cli.Contents, err error) {
	path := filepath.Join(o.Dir, keep.DataFile(o.From))
	if _, err := os.Stat(path); err != nil {
		return c, fmt.Errorf("nothing to migrate: %w", err)
	}
	if other := filepath.Join(o.Dir, keep.DataFile(o.To)); o.From != o.To {
		if _, err := os.Lstat(other); err == nil {
			return c, fmt.Errorf("%w: %s", cli.ErrHoldsData, other)
		}
	}
	scratch, err := os.MkdirTemp(o.Dir, ".migrate-*")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(scratch)
	if c, err = transfer(ctx, o, scratch); err != nil || len(c.Problems) > 0 {
		return c, err
	}
	lock, err := engine.Lock(filepath.Join(o.Dir, "acuse.lock"))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, engine.Unlock(lock)) }()
	c.Replaced, err = swap(o.Dir, scratch, o.To, "migrated")
	return c, err
}

func transfer(ctx context.Context, o cli.MigrateOptions, scratch string) (c cli.Contents, err error) {
	from, err := openFolder(ctx, o.From, o.Dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := openFolder(ctx, o.To, scratch)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	want, err := from.Counts(ctx)
	if err != nil {
		return c, err
	}
	if err := pour(ctx, from, to, want, o.Progress); err != nil {
		return c, err
	}
	c.Engine, c.Schema = o.To, to.Health().Schema
	if c.Problems, err = to.Check(ctx, true); err != nil {
		return c, err
	}
	if c.Counts, err = to.Counts(ctx); err == nil && c.Counts != want {
		err = fmt.Errorf("the copy holds %+v, the original %+v: nothing was changed", c.Counts, want)
	}
	return c, err
}

// pour loads the one store with what the other dumps.
func pour(ctx context.Context, from, to store.Dumper, counts store.Counts, progress func(done, total int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	records, ended := make(chan store.Record, 64), make(chan error, 1)
	go func() {
		err := from.Dump(ctx, func(r store.Record) error {
			select {
			case records <- r:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		ended <- err
		close(records)
	}()
	total := counts.Deliveries + counts.Payloads + counts.Jobs + counts.Attempts + counts.Keys + counts.Rejections
	var done int64
	return to.Load(ctx, func() (store.Record, error) {
		r, ok := <-records
		if !ok {
			if err := <-ended; err != nil {
				return r, err
			}
			return r, io.EOF
		}
		if done++; progress != nil && done%1000 == 0 {
			progress(min(done, total), total)
		}
		return r, nil
	})
}
