// Package sqlite keeps the archive in one SQLite file, acuse.db, inside the data folder.
// See ../DESIGN.md for the write path.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	sqlite "modernc.org/sqlite"

	"acuse/store"
	"acuse/store/engine"
)

// The limits of what waits for one transaction: more gets store.ErrBusy.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 64 << 20
)

// Options of Open; the zero value is the default.
type Options struct {
	Log *slog.Logger // default: none
	// MinFree is how many bytes stay free on the volume: below it Accept returns
	// store.ErrUnavailable. Default: the smaller of 100 MiB and 5 % of the volume;
	// negative is none.
	MinFree int64
}

// DB is the store in a data folder.
type DB struct {
	dir, path string
	log       *slog.Logger
	lock      *os.File
	space     *engine.Space
	committer *store.Committer[*write]
	read      *sql.DB
	hot       struct{ payload, nextDue, nextDeadline *sql.Stmt } // on read: asked for every lease
	schema    int

	w           *writer // of the committer's goroutine alone, as is
	file, wal   engine.Named
	walSize     int64 // after the last commit
	lost        bool  // one of them is: nothing is written any more
	doubted     bool  // the journal may read as what the disk does not have: a sync failed, or an earlier process ended
	journalHeld bool  // by another program's read; it was told
	readers     readers

	copies   sync.Mutex // held by a backup
	once     sync.Once  // of Close
	closeErr error
	gone     atomic.Bool // Close was called

	mu     sync.Mutex // guards what follows; held for moments only
	tally  engine.Tally
	broken error     // last write error while commits fail
	logged time.Time // when it was logged last
	counts struct {
		commits, writes uint64
		longest         time.Duration
	}
}

var _ store.Store = (*DB)(nil)

// Open opens the store in dir and makes folder (0700) and file (0600) when they are
// missing. It takes the folder for this process alone: store.ErrLocked when another one
// has it. It migrates an older file and refuses a newer one (store.ErrNewerSchema).
func Open(ctx context.Context, dir string, o Options) (*DB, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock, err := engine.Lock(filepath.Join(dir, "acuse.lock"))
	if err != nil {
		return nil, err
	}
	db := &DB{dir: dir, path: filepath.Join(dir, "acuse.db"), log: o.Log, lock: lock, doubted: true}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	if err := db.open(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", db.path, err), db.release())
	}
	return db, nil
}

func (d *DB) open(ctx context.Context, o Options) error {
	if err := touch(d.path); err != nil {
		return err
	}
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return err
	}
	d.space = engine.NewSpace(d.dir, o.MinFree)
	err := d.load(ctx)
	if d.isFull(err) && d.space.GiveUp() { // a full disk must not keep us from starting
		d.w.recover()
		err = d.load(ctx)
	}
	if err != nil {
		return err
	}
	if err := d.openReaders(ctx); err != nil {
		return err
	}
	d.space.Reserve()
	d.committer = store.NewCommitter(maxWaiting, maxWaitingBytes, d.commit)
	problems, err := d.Check(ctx, false)
	for _, p := range problems {
		d.log.Error("check", "problem", p)
	}
	return err
}

// load opens the writer's connection, migrates the file and reads what is kept in memory.
func (d *DB) load(ctx context.Context) (err error) {
	if d.w == nil {
		d.w = d.newWriter(ctx)
	}
	if err := d.w.connected(); err != nil {
		return err
	}
	if d.schema, err = migrate(d.w.conn, d.path); err != nil {
		return err
	}
	return d.w.load(&d.tally)
}

// Close waits for the writes under way and closes the files.
func (d *DB) Close() error {
	d.once.Do(func() {
		d.gone.Store(true)
		d.closeErr = d.release()
	})
	return d.closeErr
}

func (d *DB) release() error {
	var errs []error
	if d.committer != nil {
		d.committer.Close()
	}
	if d.read != nil {
		errs = append(errs, d.read.Close())
	}
	if d.w != nil && d.w.conn != nil {
		if d.w.copying != nil {
			errs = append(errs, d.w.copying.end(d.w))
		}
		errs = append(errs, d.w.conn.close())
	}
	return errors.Join(append(errs, engine.Unlock(d.lock))...)
}

// touch makes the file with its owner's rights only; SQLite gives the journal the same.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil // never opened here: closing it would drop SQLite's locks
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// layout counts only before the first table, and costs a write after it.
var layout = []string{fmt.Sprintf("PRAGMA page_size = %d", pageSize), "PRAGMA auto_vacuum = INCREMENTAL"}

// connectWriter opens the writer's connection.
func (d *DB) connectWriter(ctx context.Context) (*conn, error) {
	// Once no connection is left the journal counts as far as it can be read: no further than
	// the disk has it, then.
	if d.doubted {
		if err := engine.Again(d.path + "-wal"); err != nil {
			return nil, err
		}
	}
	c, err := connect(ctx, d.path, "mode=rw", []string{"PRAGMA busy_timeout = 5000"})
	if err != nil {
		return nil, err
	}
	pages, err := c.number("PRAGMA page_count")
	if err == nil && pages == 0 {
		err = c.scripts(layout)
	}
	if err == nil {
		err = c.scripts(d.pragmas())
	}
	if err == nil {
		err = d.named(c)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	d.doubted = false
	return c, nil
}

// named sees that the names of data file and journal survive power loss: SQLite takes no
// notice when syncing the folder fails. It remembers which files have them, so that a
// commit to a file without a name is noticed.
func (d *DB) named(c *conn) error {
	if _, err := c.number("SELECT count(*) FROM sqlite_schema"); err != nil { // opens the journal
		return err
	}
	if d.file.Known() && !d.lost {
		_, kept := d.file.Kept()
		d.lost = !kept
	}
	if d.lost {
		return engine.ErrReplaced
	}
	if err := engine.SyncNames(d.dir); err != nil {
		return err
	}
	var err error
	if d.file, err = engine.NameOf(d.path); err != nil {
		return err
	}
	d.wal, err = engine.NameOf(d.path + "-wal")
	return err
}

// kept looks whether both files still have their names, and how long the journal is.
func (d *DB) kept() bool {
	_, file := d.file.Kept()
	size, wal := d.wal.Kept()
	d.walSize = size
	return file && wal
}

// pragmas of the writer.
func (d *DB) pragmas() []string {
	p := []string{
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = " + synchronous,
		fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", checkpointPages(d.space.Total)),
		"PRAGMA journal_size_limit = 33554432", // after a burst the journal file shrinks to 32 MiB
		"PRAGMA temp_store = MEMORY",
		"PRAGMA trusted_schema = OFF",
		"PRAGMA secure_delete = FAST", // what is removed is overwritten where the page is written anyway
	}
	if runtime.GOOS == "darwin" {
		p = append(p, "PRAGMA fullfsync = ON", "PRAGMA checkpoint_fullfsync = ON")
	}
	return p
}

const pageSize = 8192

// checkpointPages is how long the journal grows before a commit copies it back: 8 MB,
// less on a tiny volume, where the journal must not be what fills it.
func checkpointPages(volume int64) int64 {
	if volume == 0 {
		return 1000
	}
	return max(16, min(1000, volume/32/pageSize))
}

// openReaders opens the pool that pages and the API read from. It cannot write.
func (d *DB) openReaders(ctx context.Context) (err error) {
	d.read, err = sql.Open("sqlite", dsn(d.path, "mode=ro&_pragma=busy_timeout(5000)&_pragma=temp_store(MEMORY)&_pragma=trusted_schema(OFF)&_query_only=1"))
	if err != nil {
		return err
	}
	d.read.SetMaxOpenConns(4)
	d.read.SetMaxIdleConns(2)
	d.read.SetConnMaxIdleTime(5 * time.Minute)
	for text, stmt := range map[string]**sql.Stmt{
		selectPayload: &d.hot.payload, selectNextDue: &d.hot.nextDue, selectNextDeadline: &d.hot.nextDeadline,
	} {
		if *stmt, err = d.read.PrepareContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}
