// Package bolt keeps the archive in one bbolt file, acuse.bolt, inside the data folder.
// See DESIGN.md beside it for the layout and ../DESIGN.md for the write path.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	bbolt "go.etcd.io/bbolt"

	"acuse/store"
	"acuse/store/engine"
)

// The limits of what waits for one transaction: more gets store.ErrBusy.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 64 << 20
)

const (
	pageSize = 4096
	// manyFree is up to how many free pages their list is written with every commit: one
	// page of it holds 500. A longer one is left out, and found again at the next start by
	// reading the whole file.
	manyFree = 4096
	// mapBytes is the address space set aside for the file, so that it grows without
	// waiting for its readers. 64-bit machines only.
	mapBytes = 16 << 30
	// growBytes is by how much the file grows at once.
	growBytes = 4 << 20
	// capMargin is how much below its cap the file takes nothing new: leases and settles
	// go on in it. It is more than growBytes, or the file would be full before.
	capMargin = 16 << 20
)

// Options of Open; the zero value is the default.
type Options struct {
	Log *slog.Logger // default: none
	// MinFree is how many bytes stay free on the volume: below it Accept returns
	// store.ErrUnavailable. Default: the smaller of 100 MiB and 5 % of the volume;
	// negative is none.
	MinFree int64
	// MaxBytes is the cap of the data file: near it Accept returns store.ErrUnavailable.
	// Default: 1 GiB where addresses have 32 bits, else none.
	MaxBytes int64

	compact when
}

// DB is the store in a data folder.
type DB struct {
	dir, path string
	log       *slog.Logger
	lock      *os.File
	space     *engine.Space
	cap       int64
	committer *store.Committer[*write]
	file      atomic.Pointer[bbolt.DB]
	raw       *os.File     // the same file, to write its first pages again; see heal
	handle    *os.File     // the engine's own; tests break it
	before    int64        // bytes of the file when it was opened
	reading   sync.RWMutex // held for reading by every read transaction
	inUse     atomic.Int64 // bytes of the file that hold something, as of the last commit

	w *writer // of the committer's goroutine alone

	told     atomic.Int64 // unix second when caught logged last
	once     sync.Once    // of Close
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
	db := &DB{dir: dir, path: filepath.Join(dir, "acuse.bolt"), log: o.Log, lock: lock, cap: o.MaxBytes}
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	if db.cap == 0 && strconv.IntSize == 32 {
		db.cap = 1 << 30
	}
	if err := db.open(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", db.path, err), db.release())
	}
	return db, nil
}

func (d *DB) open(ctx context.Context, o Options) (err error) {
	d.space = engine.NewSpace(d.dir, o.MinFree)
	d.w = &writer{log: d.log, caught: d.caught, leasing: map[int64]bool{}}
	err = d.load()
	if err != nil && d.isFull(err) && d.space.GiveUp() { // a full disk must not keep us from starting
		err = d.load()
	}
	if err != nil {
		return err
	}
	if err := d.compactAtStart(o.compact); err != nil {
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

// load opens the file, migrates it and reads what is kept in memory.
func (d *DB) load() (err error) {
	if d.raw == nil {
		if d.raw, err = d.touch(); err != nil {
			return err
		}
	}
	if err := d.reopen(); err != nil {
		return err
	}
	// The last process may have ended before the page that made its last transaction valid was
	// synced. What that one freed must not be used before it is; see heal.
	if err := d.writeMetaAgain(); err != nil && !d.isFull(err) {
		return err
	}
	return d.reload()
}

// reload reads what is kept in memory beside the file.
func (d *DB) reload() error {
	return d.view(context.Background(), func(x *tx) error {
		var t engine.Tally
		if err := d.w.load(x, &t); err != nil {
			return err
		}
		d.mu.Lock()
		d.tally = t
		d.mu.Unlock()
		return nil
	})
}

// roomInside refuses what would bring the file near its cap.
func (d *DB) roomInside() error {
	if d.cap > 0 && d.inUse.Load() > d.cap-capMargin {
		return fmt.Errorf("%w: the data file may not grow beyond %d MiB; keep less, or use the other engine", store.ErrUnavailable, d.cap>>20)
	}
	return nil
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
	if file := d.file.Load(); file != nil {
		d.keepFree(file)
		errs = append(errs, file.Close())
	}
	if d.raw != nil {
		errs = append(errs, d.raw.Close())
	}
	return errors.Join(append(errs, engine.Unlock(d.lock))...)
}

// keepFree writes the list of the free pages if it was left out, so that the next start
// need not read the whole file for it. Without it that start is slower, no more.
func (d *DB) keepFree(file *bbolt.DB) {
	if !file.NoFreelistSync {
		return
	}
	file.NoFreelistSync = false
	if t, err := file.Begin(true); err == nil {
		_ = t.Commit()
	}
}
