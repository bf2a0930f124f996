// Package bolt keeps the archive in one bbolt file, acuse.bolt, inside the data folder.
// See DESIGN.md beside it for the layout and ../DESIGN.md for the write path.
package bolt

import (
	"context"
	"encoding/binary"
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
	berrors "go.etcd.io/bbolt/errors"

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
	// go on in it.
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
	reading   sync.RWMutex // held for reading by every read transaction
	inUse     atomic.Int64 // bytes of the file that hold something, as of the last commit

	w *writer // of the committer's goroutine alone

	once     sync.Once // of Close
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
	d.w = &writer{log: d.log, leasing: map[int64]bool{}}
	err = d.load()
	if err != nil && d.isFull(err) && d.space.GiveUp() { // a full disk must not keep us from starting
		err = d.load()
	}
	if err != nil {
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
	return d.reload()
}

// touch makes the file, for its owner alone, and sees that its name survives power loss.
func (d *DB) touch() (*os.File, error) {
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = engine.Sync(d.dir)
	if above := engine.Sync(filepath.Dir(d.dir)); !errors.Is(above, os.ErrPermission) {
		err = errors.Join(err, above)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// reopen opens the file, after closing it if need be. It waits for its readers.
func (d *DB) reopen() error {
	if old := d.file.Load(); old != nil {
		_ = old.Close() // whatever state it is in; what matters is the new one
	}
	o := &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType, PageSize: pageSize, MaxSize: int(d.cap)}
	if strconv.IntSize == 64 {
		o.InitialMmapSize = int(min(mapBytes, 1<<(strconv.IntSize-2)))
	}
	file, err := openFile(d.path, o)
	if err != nil && o.InitialMmapSize > 0 { // the process may have less room to address
		o.InitialMmapSize = 0
		file, err = openFile(d.path, o)
	}
	if errors.Is(err, berrors.ErrTimeout) {
		err = fmt.Errorf("%w: another program has %s open", store.ErrLocked, d.path)
	}
	if err != nil {
		return err
	}
	file.AllocSize = growBytes
	if err := migrate(file); err != nil {
		return errors.Join(err, file.Close())
	}
	d.file.Store(file)
	return nil
}

// openFile is bbolt's Open, which panics on some damage.
func openFile(path string, o *bbolt.Options) (file *bbolt.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
		}
	}()
	return bbolt.Open(path, 0o600, o)
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

// heal makes the engine fit for the next commit after one failed. That one may have
// reached the file all the same: then the page that says so was perhaps never synced,
// and what it freed must not be used before it is. So the two first pages are written
// again, as they are, and synced; and what is kept in memory is read anew.
func (d *DB) heal() error {
	w := d.w
	t, err := d.file.Load().Begin(false)
	switch {
	case err != nil || w.torn:
		if err == nil {
			err = t.Rollback()
		}
		if again := d.reopen(); again != nil {
			return errors.Join(err, again)
		}
		w.torn, w.committed = false, 0 // unknown
	default:
		number := t.ID()
		if err := t.Rollback(); err != nil {
			return err
		}
		if number == w.committed {
			w.sick = false
			return nil
		}
	}
	if err := d.writeMetaAgain(); err != nil {
		return err
	}
	if err := d.reload(); err != nil {
		return err
	}
	w.cache = engine.Cache{}
	w.sick = false
	return nil
}

func (d *DB) writeMetaAgain() error {
	page := make([]byte, pageSize)
	for at := int64(0); at < 2*pageSize; at += pageSize {
		if _, err := d.raw.ReadAt(page, at); err != nil {
			return err
		}
		if _, err := d.raw.WriteAt(page, at); err != nil {
			return err
		}
		if err := d.raw.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// removed tells that the file has no name any more, or that another has its name: what
// is written then is lost with the process.
func (d *DB) removed() bool {
	mine, err := d.raw.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(d.path)
	return err != nil || !os.SameFile(mine, named)
}

// roomInside refuses what would bring the file near its cap.
func (d *DB) roomInside() error {
	if d.cap > 0 && d.inUse.Load() > d.cap-min(capMargin, d.cap/4) {
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

// schema is the version of the data file.
const schema = 1

// The keys of the bucket "meta".
var (
	keyApplication = []byte("application")
	keySchema      = []byte("schema")
)

const application = "acuse"

// migrate brings the file to the newest version in one transaction.
func migrate(file *bbolt.DB) error {
	version, err := versionOf(file)
	if err != nil {
		return err
	}
	switch {
	case version > schema:
		return fmt.Errorf("%w: its version is %d, this acuse knows %d", store.ErrNewerSchema, version, schema)
	case version == schema:
		return nil
	}
	return file.Update(func(t *bbolt.Tx) error {
		for _, name := range tableNames {
			if _, err := t.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		meta := t.Bucket([]byte(tableNames[tMeta]))
		return errors.Join(meta.Put(keyApplication, []byte(application)), meta.Put(keySchema, binary.BigEndian.AppendUint64(nil, schema)))
	})
}

// versionOf reads the version, 0 of an empty file, and refuses a file that another
// program made.
func versionOf(file *bbolt.DB) (version uint64, err error) {
	err = file.View(func(t *bbolt.Tx) error {
		first, _ := t.Cursor().First()
		if first == nil {
			return nil
		}
		meta := t.Bucket([]byte(tableNames[tMeta]))
		if meta == nil || string(meta.Get(keyApplication)) != application || len(meta.Get(keySchema)) != 8 {
			return errors.New("not a data file of acuse")
		}
		version = binary.BigEndian.Uint64(meta.Get(keySchema))
		return nil
	})
	return version, err
}
